// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_transfer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cutwater/error.h"

namespace cutwater::redis {
namespace {

// Chunks in one round trip: bounds what the server queues for one client.
constexpr std::size_t kAtOnce = 64;

// Where a value comes to land. Memory follows what has come: a header may announce anything.
class Landing {
 public:
  Landing(BufferPool& pool, const CacheKey& key, std::size_t size)
      : pool_(pool),
        checksum_(key),
        size_(size),
        buffer_(pool.allocate(std::min(size, kAtFirst))) {}

  void read(Connection& link, std::size_t bytes, Deadline deadline) {
    while (bytes > 0) {
      if (filled_ == buffer_.size()) grow();
      const std::span<std::uint8_t> room = buffer_.span().subspan(filled_);
      const std::size_t got = link.read_text(room.first(std::min(bytes, room.size())), deadline);
      checksum_.add(room.first(got));
      filled_ += got;
      bytes -= got;
    }
  }
  std::uint64_t checksum() const { return checksum_.value(); }
  CacheValue value() && {
    const auto hold = std::make_shared<Buffer>(std::move(buffer_));
    return {hold->view(), hold};
  }

 private:
  static constexpr std::size_t kAtFirst = std::size_t{16} << 20;

  void grow() {
    Buffer larger = pool_.allocate(std::min(size_, 2 * filled_));
    std::copy_n(buffer_.data(), filled_, larger.data());
    buffer_ = std::move(larger);
  }

  BufferPool& pool_;
  Checksum checksum_;
  const std::size_t size_;
  Buffer buffer_;
  std::size_t filled_ = 0;
};

// Calls `work(first, end)` for all chunks but the first, some at a time, until it returns false.
bool in_groups(const ValueHeader& header,
               const std::function<bool(std::size_t first, std::size_t end)>& work) {
  for (std::size_t first = 1; first < header.chunks(); first += kAtOnce)
    if (!work(first, std::min(first + kAtOnce, header.chunks()))) return false;
  return true;
}

// False: they are not there, or not as they should be; `fetched` says which.
bool fetch_rest(Connection& link, const std::string& name, const ValueHeader& header,
                Landing& landing, Deadline deadline, Fetched& fetched, std::string& error) {
  return in_groups(header, [&](std::size_t first, std::size_t end) {
    Commands commands = link.commands();
    for (std::size_t i = first; i < end; ++i) commands.add({"GET", chunk_name(name, header, i)});
    link.send(commands, deadline);
    for (std::size_t i = first; i < end; ++i) {
      const Connection::Head head = link.read_head(deadline);
      if (!head.error.starts_with("WRONGTYPE")) error = head.error;
      fetched.incomplete = !head.size && head.error.empty();
      fetched.damaged = !fetched.incomplete;
      if (head.size != header.chunk_size(i)) return false;
      landing.read(link, *head.size, deadline);
      link.read_tail(deadline);
    }
    return true;
  });
}

// The answer to GET, and the other chunks in trips of their own.
std::string land(Connection& link, const std::string& name, const CacheKey& key, BufferPool& pool,
                 Deadline deadline, Fetched& fetched) {
  const Connection::Head head = link.read_head(deadline);
  fetched.damaged = head.size.has_value() || head.error.starts_with("WRONGTYPE");
  if (!head.size) return fetched.damaged ? std::string() : head.error;
  if (*head.size < ValueHeader::kBytes) return {};
  std::array<std::uint8_t, ValueHeader::kBytes> bytes;
  for (std::span<std::uint8_t> place = bytes; !place.empty();)
    place = place.subspan(link.read_text(place, deadline));
  const std::optional<ValueHeader> header = decode(bytes);
  if (!header || *head.size - ValueHeader::kBytes != header->chunk_size(0)) return {};

  Landing landing(pool, key, header->size);
  landing.read(link, header->chunk_size(0), deadline);
  link.read_tail(deadline);
  std::string error;
  if (!fetch_rest(link, name, *header, landing, deadline, fetched, error)) return error;
  if (landing.checksum() != header->check) return {};
  fetched = {.value = std::move(landing).value()};
  return {};
}

// The answer to a GET whose value nobody needs. Whether there is one.
bool skip(Connection& link, Deadline deadline) {
  const Connection::Head head = link.read_head(deadline);
  if (!head.size) return head.error.starts_with("WRONGTYPE");
  std::array<std::uint8_t, 4096> bytes;
  for (std::size_t left = *head.size; left > 0;)
    left -= link.read_text(std::span(bytes).first(std::min(left, bytes.size())), deadline);
  link.read_tail(deadline);
  return true;
}

void remove_chunks(Connection& link, const std::string& name, const ValueHeader& header,
                   Deadline deadline) {
  in_groups(header, [&](std::size_t first, std::size_t end) {
    Commands commands = link.commands();
    for (std::size_t i = first; i < end; ++i) commands.add({"UNLINK", chunk_name(name, header, i)});
    (void)link.exchange(commands, deadline);
    return true;
  });
}

void add_set(Commands& commands, const std::string& name, std::string_view head,
             std::span<const std::uint8_t> body, const std::string& ttl, bool only_if_none) {
  commands.begin(only_if_none ? 6 : 5);
  commands.word("SET");
  commands.word(name);
  commands.word(head, body);
  commands.word("PX");
  commands.word(ttl);
  if (only_if_none) commands.word("NX");
}

}  // namespace

std::string fetch(Connection& link, const std::string& name, const CacheKey& key, BufferPool& pool,
                  Deadline deadline, Fetched& fetched) {
  fetched = {};
  Commands commands = link.commands();
  commands.add({"GET", name});
  link.send(commands, deadline);
  return land(link, name, key, pool, deadline, fetched);
}

std::string survey(Connection& link, std::span<const std::string> names, std::size_t guess,
                   const CacheKey& guessed, BufferPool& pool, Deadline deadline, Survey& found) {
  found = {std::vector<bool>(names.size()), {}};
  // The text comes last: then its other chunks can be asked for.
  Commands commands = link.commands();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (i != guess) commands.add({"EXISTS", names[i]});
  commands.add({"GET", names[guess]});
  link.send(commands, deadline);
  std::string error;
  bool is_first = true;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == guess) continue;
    const Connection::Head head = link.read_number(deadline);
    if (!head.error.empty()) error = head.error;
    found.there[i] = head.size.value_or(0) > 0;
    if (i < guess && found.there[i]) is_first = false;
  }
  if (!is_first || !error.empty()) {
    found.there[guess] = skip(link, deadline);
    return error;
  }
  error = land(link, names[guess], guessed, pool, deadline, found.guessed);
  found.there[guess] = found.guessed.is_something();
  return error;
}

std::string store(Connection& link, const std::string& name, const ValueHeader& header,
                  std::span<const std::uint8_t> bytes, std::chrono::milliseconds ttl,
                  Deadline deadline, Stored& stored) {
  stored = Stored::kRefused;
  const std::string time = std::to_string(ttl.count());
  std::string error;
  const auto say = [&](const std::vector<Reply>& replies) {
    for (const Reply& reply : replies)
      if (error.empty() && reply.is_error()) error = reply.text;
    return error.empty();
  };
  in_groups(header, [&](std::size_t first, std::size_t end) {
    Commands commands = link.commands();
    for (std::size_t i = first; i < end; ++i)
      add_set(commands, chunk_name(name, header, i), {},
              bytes.subspan(i * header.chunk_bytes, header.chunk_size(i)), time, false);
    return say(link.exchange(commands, deadline));
  });
  if (error.empty()) {
    const auto head = encode(header);
    Commands commands = link.commands();
    add_set(commands, name, {head.data(), head.size()}, bytes.first(header.chunk_size(0)), time,
            true);
    const std::vector<Reply> replies = link.exchange(commands, deadline);
    if (say(replies)) stored = replies.front().is_ok() ? Stored::kKept : Stored::kTaken;
  }
  // Chunks without a header are of use to nobody. Those of a value that came second are named as
  // the first one's, if both are equal: they stay, and otherwise expire.
  if (!error.empty()) remove_chunks(link, name, header, deadline);
  return error;
}

std::string remove(Connection& link, const std::string& name, Deadline deadline) {
  Commands commands = link.commands();
  commands.add({"GETRANGE", name, "0", std::to_string(ValueHeader::kBytes - 1)});
  const Reply reply = link.exchange(commands, deadline).front();
  std::optional<ValueHeader> header;
  if (reply.type == Reply::Type::kText && reply.text.size() == ValueHeader::kBytes) {
    std::array<std::uint8_t, ValueHeader::kBytes> bytes;
    std::copy(reply.text.begin(), reply.text.end(), bytes.begin());
    header = decode(bytes);
  } else if (reply.is_error() && !reply.text.starts_with("WRONGTYPE")) {
    return reply.text;
  }
  if (header) remove_chunks(link, name, *header, deadline);
  Commands unlink = link.commands();
  unlink.add({"UNLINK", name});
  return link.exchange(unlink, deadline).front().text;
}

}  // namespace cutwater::redis
