// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_slots.h"

#include <array>
#include <charconv>

namespace cutwater::redis {
namespace {

// CRC-16/XMODEM, which Redis divides keys by.
constexpr std::array<std::uint16_t, 256> kCrc = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1) ^ ((crc & 0x8000U) != 0 ? 0x1021U : 0U);
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}();

bool is_in(const Reply& reply, std::int64_t least, std::int64_t most) {
  return reply.type == Reply::Type::kNumber && reply.number >= least && reply.number <= most;
}

}  // namespace

std::uint16_t slot_of(std::string_view tag) {
  unsigned crc = 0;
  for (const char c : tag)
    crc = ((crc << 8) & 0xffffU) ^ kCrc[((crc >> 8) ^ static_cast<unsigned char>(c)) & 0xffU];
  return static_cast<std::uint16_t>(crc % kSlots);
}

std::optional<std::vector<SlotRange>> slots_in(const Reply& reply, const Endpoint& asked) {
  if (reply.type != Reply::Type::kList) return std::nullopt;
  std::vector<SlotRange> ranges;
  for (const Reply& range : reply.parts) {
    if (!range.is_list(3) || !is_in(range.parts[0], 0, kSlots - 1) ||
        !is_in(range.parts[1], range.parts[0].number, kSlots - 1))
      return std::nullopt;
    const Reply& master = range.parts[2];
    if (!master.is_list(2) || !is_in(master.parts[1], 1, 65535)) return std::nullopt;
    // Who does not know his own name is the one that was asked.
    const std::string& host = master.parts[0].text;
    ranges.push_back({static_cast<std::uint16_t>(range.parts[0].number),
                      static_cast<std::uint16_t>(range.parts[1].number),
                      {host.empty() || host == "?" ? asked.host : host,
                       static_cast<std::uint16_t>(master.parts[1].number),
                       {}}});
  }
  return ranges;
}

std::optional<Redirect> redirect_in(std::string_view error, const Endpoint& asked) {
  Redirect redirect;
  redirect.is_ask = error.starts_with("ASK ");
  if (!redirect.is_ask && !error.starts_with("MOVED ")) return std::nullopt;
  error.remove_prefix(error.rfind(' ') + 1);  // "MOVED 3999 127.0.0.1:6381"
  const std::size_t colon = error.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view port = error.substr(colon + 1);
  const auto read = std::from_chars(port.data(), port.data() + port.size(), redirect.to.port);
  if (read.ec != std::errc{} || read.ptr != port.data() + port.size()) return std::nullopt;
  redirect.to.host = colon == 0 ? asked.host : std::string(error.substr(0, colon));
  return redirect;
}

}  // namespace cutwater::redis
