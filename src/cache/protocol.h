// SPDX-License-Identifier: Apache-2.0
// What a client and the daemon of the shared cache say to each other: one message a packet, each
// kind of a fixed size. PROTOCOL.md has it byte by byte. Nothing that comes in is trusted: a packet
// is a message only where its size, version and kind are right, and values are checked where used.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "cache/layout.h"
#include "cutwater/cache.h"

namespace cutwater::cache::wire {

inline constexpr std::uint32_t kVersion = 1;

enum class Kind : std::uint32_t {
  kHello = 1,
  kReserve = 2,
  kCommit = 3,
  kAbort = 4,
  kDrop = 5,
  kJoin = 6,
  kLeave = 7,
  kStat = 8,
  kList = 9,
  kClear = 10,
};

enum class Status : std::uint32_t {
  kDone = 0,
  kRefused = 1,       // no room, or the key is taken; of a seat or a client: there are too many
  kOtherVersion = 2,  // the daemon speaks the version of this reply's head
};

// Every message begins with it, in every version. A question has one reply, of its own kind.
struct Head {
  std::uint32_t version = kVersion;
  Kind kind{};
};

// The first message of a client. A reply that is done brings the descriptor of the memory along
// where it was wanted.
struct Hello {
  Head head{kVersion, Kind::kHello};
  std::uint32_t wants_memory = 0;  // 0, 1
  std::uint32_t unused = 0;
};
struct HelloReply {
  Head head{kVersion, Kind::kHello};
  Status status{};
  std::uint32_t client = 0;         // the number that its pins carry
  std::uint64_t segment_bytes = 0;  // of the memory
  std::uint64_t limit = 0;          // as the daemon was told
};

struct Reserve {
  Head head{kVersion, Kind::kReserve};
  CacheKey key;
  std::uint64_t size = 0;
  double seconds = 0;  // what a hit saves: finite, not negative
};
struct ReserveReply {
  Head head{kVersion, Kind::kReserve};
  Status status{};
  std::uint32_t unused = 0;
  std::uint64_t token = 0;
  std::uint64_t offset = 0;  // of the value's first byte in the memory
};

// Of a reservation that is filled, or given up.
struct Commit {
  Head head{kVersion, Kind::kCommit};
  std::uint64_t token = 0;
};
struct CommitReply {
  Head head{kVersion, Kind::kCommit};
};
struct Abort {
  Head head{kVersion, Kind::kAbort};
  std::uint64_t token = 0;
};
struct AbortReply {
  Head head{kVersion, Kind::kAbort};
};

struct Drop {
  Head head{kVersion, Kind::kDrop};
  CacheKey key;
};
struct DropReply {
  Head head{kVersion, Kind::kDrop};
};

struct Join {
  Head head{kVersion, Kind::kJoin};
  std::array<char, kNameBytes> name{};  // ends at the first 0
  std::uint64_t data = 0;
  std::int64_t samples = 0;
  std::uint32_t forms_count = 0;  // at most kMostForms
  std::uint32_t unused = 0;
  std::array<std::uint64_t, kMostForms> forms{};
};
struct JoinReply {
  Head head{kVersion, Kind::kJoin};
  Status status{};
  std::uint32_t seat = 0;
};

struct Leave {
  Head head{kVersion, Kind::kLeave};
  std::uint32_t seat = 0;
  std::uint32_t unused = 0;
};
struct LeaveReply {
  Head head{kVersion, Kind::kLeave};
};

struct Stat {
  Head head{kVersion, Kind::kStat};
};
struct StatReply {
  Head head{kVersion, Kind::kStat};
  std::uint64_t bytes = 0, limit = 0;
  std::int64_t entries = 0, hits = 0, misses = 0, refused = 0, evicted = 0;
  std::uint32_t clients = 0;
  std::uint32_t pid = 0;  // the daemon's
};

enum class Listed : std::uint32_t { kForms = 0, kUsers = 1, kJobs = 2 };

// A row of a list, by what is listed; rows come in the order of (a, b).
//          a     b     entries       bytes   limit             seats         name
//   forms  data  form  entries       bytes   0                 jobs at it    -
//   users  uid   0     entries       bytes   quota, 0 if none  0             -
//   jobs   seat  data  had, of this  samples pid               forms         the job's
struct Row {
  std::uint64_t a = 0, b = 0;
  std::int64_t entries = 0;
  std::uint64_t bytes = 0, limit = 0, seats = 0;
  std::array<char, kNameBytes> name{};
};

inline constexpr std::size_t kMostRows = 32;

// The rows after (a, b), or all from the first.
struct List {
  Head head{kVersion, Kind::kList};
  Listed what{};
  std::uint32_t from_start = 0;  // 1: a and b do not count
  std::uint64_t a = 0, b = 0;
};
struct ListReply {
  Head head{kVersion, Kind::kList};
  std::uint32_t count = 0;  // of rows
  std::uint32_t more = 0;   // 1: ask again after the last one
  std::array<Row, kMostRows> rows{};
};

struct Clear {
  Head head{kVersion, Kind::kClear};
  std::uint32_t by_data = 0, by_form = 0;  // 1: only those; 0: whatever they are
  std::uint64_t data = 0, form = 0;
};
struct ClearReply {
  Head head{kVersion, Kind::kClear};
  std::int64_t entries = 0;
  std::uint64_t bytes = 0;
};

// No packet is larger.
inline constexpr std::size_t kMostBytes = 8192;

template <class Message>
concept Sendable = std::is_trivially_copyable_v<Message> && std::is_standard_layout_v<Message> &&
                       sizeof(Message) <= kMostBytes
                   && sizeof(Message) % 8 == 0;

static_assert(sizeof(CacheKey) == 32 && sizeof(Head) == 8 && sizeof(Hello) == 16 &&
              sizeof(HelloReply) == 32 && sizeof(Reserve) == 56 && sizeof(ReserveReply) == 32 &&
              sizeof(Commit) == 16 && sizeof(Abort) == 16 && sizeof(Drop) == 40 &&
              sizeof(CommitReply) == 8 && sizeof(AbortReply) == 8 && sizeof(DropReply) == 8 &&
              sizeof(LeaveReply) == 8 && sizeof(Join) == 352 && sizeof(JoinReply) == 16 &&
              sizeof(Leave) == 16 && sizeof(Stat) == 8 && sizeof(StatReply) == 72 &&
              sizeof(Row) == 112 && sizeof(List) == 32 && sizeof(ListReply) == 16 + 32 * 112 &&
              sizeof(Clear) == 32 && sizeof(ClearReply) == 24);

template <Sendable Message>
std::span<const std::uint8_t> bytes_of(const Message& message) {
  return {reinterpret_cast<const std::uint8_t*>(&message), sizeof(Message)};
}

// Nothing: too short to be anything, of any version.
inline std::optional<Head> head_of(std::span<const std::uint8_t> packet) {
  if (packet.size() < sizeof(Head)) return {};
  Head head;
  std::memcpy(&head, packet.data(), sizeof head);
  return head;
}

// Nothing: the packet is no such message of this version.
template <Sendable Message>
std::optional<Message> read(std::span<const std::uint8_t> packet) {
  Message message;
  const Head expected = message.head;
  if (packet.size() != sizeof(Message)) return {};
  std::memcpy(&message, packet.data(), sizeof message);
  if (message.head.version != expected.version || message.head.kind != expected.kind) return {};
  return message;
}

inline std::array<char, kNameBytes> name_field(std::string_view name) {
  std::array<char, kNameBytes> field{};
  name.copy(field.data(), field.size() - 1);
  return field;
}
inline std::string name_of(const std::array<char, kNameBytes>& field) {
  return {field.data(), strnlen(field.data(), field.size())};
}

}  // namespace cutwater::cache::wire
