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

void read_whole(Connection& link, std::span<std::uint8_t> place, Checksum* checksum,
                Deadline deadline) {
  while (!place.empty()) {
    const std::size_t got = link.read_text(place, deadline);
    if (checksum != nullptr) checksum->add(place.first(got));
    place = place.subspan(got);
  }
}

// Calls `work(first, end)` for all chunks but the first, some at a time, until it returns false.
bool in_groups(const ValueHeader& header,
               const std::function<bool(std::size_t first, std::size_t end)>& work) {
  for (std::size_t first = 1; first < header.chunks(); first += kAtOnce)
    if (!work(first, std::min(first + kAtOnce, header.chunks()))) return false;
  return true;
}

// False: they are not there, or not as they should be.
bool fetch_rest(Connection& link, const std::string& name, const ValueHeader& header,
                std::span<std::uint8_t> place, Checksum& checksum, Deadline deadline,
                std::string& error) {
  return in_groups(header, [&](std::size_t first, std::size_t end) {
    Commands commands = link.commands();
    for (std::size_t i = first; i < end; ++i) commands.add({"GET", chunk_name(name, header, i)});
    link.send(commands, deadline);
    for (std::size_t i = first; i < end; ++i) {
      const Connection::Head head = link.read_head(deadline);
      error = head.error;
      if (head.size != header.chunk_size(i)) return false;
      read_whole(link, place.subspan(i * header.chunk_bytes, *head.size), &checksum, deadline);
      link.read_tail(deadline);
    }
    return true;
  });
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
  const Connection::Head head = link.read_head(deadline);
  fetched.damaged = head.size.has_value() || head.error.starts_with("WRONGTYPE");
  if (!head.size) return fetched.damaged ? std::string() : head.error;
  if (*head.size < ValueHeader::kBytes) return {};
  std::array<std::uint8_t, ValueHeader::kBytes> bytes;
  read_whole(link, bytes, nullptr, deadline);
  const std::optional<ValueHeader> header = decode(bytes);
  if (!header || *head.size - ValueHeader::kBytes != header->chunk_size(0)) return {};

  auto buffer = std::make_shared<Buffer>(pool.allocate(header->size));
  Checksum checksum(key);
  read_whole(link, buffer->span().first(header->chunk_size(0)), &checksum, deadline);
  link.read_tail(deadline);
  std::string error;
  if (!fetch_rest(link, name, *header, buffer->span(), checksum, deadline, error)) return error;
  if (checksum.value() != header->check) return {};
  fetched.damaged = false;
  const std::span<const std::uint8_t> view = buffer->view();
  fetched.value = CacheValue(view, std::move(buffer));
  return {};
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
