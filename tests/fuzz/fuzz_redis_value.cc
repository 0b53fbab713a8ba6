// SPDX-License-Identifier: Apache-2.0
// What a Redis server may answer, and URLs: a value comes back as it was put or not at all, and
// nothing else happens than an Error.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "cache/redis_seat.h"
#include "cache/redis_slots.h"
#include "cache/redis_transfer.h"
#include "cutwater/error.h"
#include "fuzz.h"

namespace cutwater::fuzz {
namespace {

using namespace redis;

constexpr CacheKey kKey = {1, 2, 3, 4};

// Runs `work` on a connection whose server says this and hangs up.
template <class Work>
void with_server(Input says, Work work) {
  constexpr std::size_t kMost = 64 << 10;  // fits in the socket's own memory
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0, "sockets can be made");
  const Input said = says.first(std::min(says.size(), kMost));
  const bool sent =
      ::send(ends[1], said.data(), said.size(), 0) == static_cast<ssize_t>(said.size());
  require(sent && ::shutdown(ends[1], SHUT_WR) == 0, "what is said can be sent");
  try {
    Connection link(ends[0]);
    work(link, Clock::now() + std::chrono::seconds(10));
  } catch (const Error& error) {
    require(error.code() == Code::kUnavailable, std::string("refused: ") + error.what());
  }
  ::close(ends[1]);
}

// As a server would say it.
std::vector<std::uint8_t> as_text(const ValueHeader& header, Input value) {
  const auto head = encode(header);
  const std::string size = "$" + std::to_string(head.size() + value.size()) + "\r\n";
  std::vector<std::uint8_t> text(size.begin(), size.end());
  text.insert(text.end(), head.begin(), head.end());
  text.insert(text.end(), value.begin(), value.end());
  text.insert(text.end(), {'\r', '\n'});
  return text;
}

void fetch_by(Input says, BufferPool& pool, Fetched& fetched) {
  with_server(says, [&](Connection& link, Deadline deadline) {
    (void)fetch(link, "name", kKey, pool, deadline, fetched);
  });
}

void check_values(Input input) {
  const auto pool = BufferPool::create(1 << 20);
  Fetched fetched;
  fetch_by(input, *pool, fetched);
  if (fetched.value) {
    Checksum checksum(kKey);
    checksum.add(fetched.value.bytes());
    std::array<std::uint8_t, ValueHeader::kBytes> head{};
    const auto begin = std::find(input.begin(), input.end(), '\n') + 1;
    std::copy_n(begin, head.size(), head.begin());
    require(decode(head)->check == checksum.value(), "a value has its checksum");
  }
  // The input as a value, whole and with one bit changed.
  const Input value = input.first(std::min<std::size_t>(input.size(), ValueHeader::kLeastChunk));
  Checksum checksum(kKey);
  checksum.add(value);
  std::vector<std::uint8_t> text =
      as_text({value.size(), ValueHeader::kLeastChunk, checksum.value()}, value);
  fetch_by(text, *pool, fetched);
  require(fetched.value && std::ranges::equal(fetched.value.bytes(), value), "a value comes back");
  const std::uint32_t hash = hash_of(input);
  text[hash % text.size()] ^= static_cast<std::uint8_t>(1U << (hash >> 29));
  fetched = {};
  fetch_by(text, *pool, fetched);
  // Beside the value, a bit of the size of chunks does not matter to one that has a single chunk.
  if (fetched.value)
    require(std::ranges::equal(fetched.value.bytes(), value), "a changed value is not given");
}

void check_answers(Input input) {
  with_server(input, [](Connection& link, Deadline deadline) {
    const Reply reply = link.ask({"CLUSTER", "SLOTS"}, deadline);
    const auto ranges = slots_in(reply, {"here", 1, ""});
    for (const SlotRange& range : ranges ? *ranges : std::vector<SlotRange>())
      require(range.first <= range.last && range.last < kSlots && range.master.port != 0,
              "slots are in their range");
  });
  with_server(input, [](Connection& link, Deadline deadline) {
    Stored stored = Stored::kRefused;
    const std::array<std::uint8_t, 5000> bytes{};
    (void)store(link, "name", {bytes.size(), ValueHeader::kLeastChunk, 1}, bytes,
                std::chrono::seconds(1), deadline, stored);
    (void)remove(link, "name", deadline);
  });
}

void check_texts(const std::string& text) {
  (void)redirect_in(text, {"here", 1, ""});
  (void)decode_note(text);
  (void)decode_arrival(text);
  for (const char* const scheme : {"", "redis://", "rediss://u:p@h", "redis+unix:///"}) try {
      const Url url = parse_url(scheme + text);
      require(!url.endpoint.host.empty() || !url.endpoint.path.empty(), "there is a server");
      require(url.timeout.count() > 0 && url.ttl.count() > 0, "times are positive");
      require(url.chunk_bytes >= ValueHeader::kLeastChunk, "chunks are not too small");
    } catch (const Error& error) {
      require(error.code() == Code::kInvalidArgument, error.what());
    }
}

}  // namespace

FUZZ_TARGET(redis_value) {
  check_values(input);
  check_answers(input);
  check_texts(std::string(input.begin(), input.end()));
}

}  // namespace cutwater::fuzz
