// SPDX-License-Identifier: Apache-2.0
#include "cache/layout.h"

#include <algorithm>
#include <bit>

namespace cutwater::cache {
namespace {

constexpr std::uint64_t kBytesPerEntry = 4096;
constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 31;  // their numbers have 32 bits

constexpr std::uint64_t aligned(std::uint64_t at) {
  return (at + kGranule - 1) / kGranule * kGranule;
}

}  // namespace

Shape Shape::of(std::uint64_t limit, int most_clients) {
  const auto one_for = [limit](std::uint64_t bytes, std::uint64_t least, std::uint64_t most) {
    return std::clamp(limit / bytes, least, most);
  };
  Shape shape;
  shape.limit = limit;
  shape.clients =
      std::min(static_cast<std::uint64_t>(most_clients), one_for(1 << 17, 8, kMostClients));
  shape.pins = std::bit_floor(one_for(shape.clients * kBytesPerEntry, 64, 1024));
  shape.seats = one_for(1 << 16, 2, kMostSeats);
  shape.making = std::bit_floor(one_for(kBytesPerEntry, 16, 4096));
  shape.ring = std::bit_floor(one_for(8 * kBytesPerEntry, 16, 1 << 16));
  // A small segment may be one of small values, and has more entries for its size.
  const std::uint64_t entries =
      std::max(one_for(kBytesPerEntry, kWays, kMostEntries), one_for(512, kWays, 256));
  shape.sets = entries / kWays;
  return shape;
}

std::uint64_t Shape::clients_at() const { return sizeof(Header); }
std::uint64_t Shape::seats_at() const {
  return clients_at() + clients * (sizeof(ClientRecord) + pins * sizeof(Word));
}
std::uint64_t Shape::making_at() const { return seats_at() + seats * sizeof(SeatRecord); }
std::uint64_t Shape::ring_at() const { return aligned(making_at() + making * sizeof(MakingMark)); }
std::uint64_t Shape::roll_at() const { return aligned(ring_at() + ring * sizeof(Arrival)); }
std::uint64_t Shape::index_at() const { return aligned(roll_at() + entries() * sizeof(Word)); }
std::uint64_t Shape::arena_at() const { return index_at() + sets * sizeof(IndexSet); }
std::uint64_t Shape::end() const {
  const std::uint64_t outside = entries() * kWriterBytes;
  const std::uint64_t inside = limit > outside ? (limit - outside) / kGranule * kGranule : 0;
  return std::max(inside, arena_at());
}

}  // namespace cutwater::cache
