// SPDX-License-Identifier: Apache-2.0
#include "core/units.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <utility>

#include "cutwater/error.h"

namespace cutwater {
namespace {

// What one of the unit is worth; 0 when there is no such unit.
double unit_bytes(std::string unit) {
  if (!unit.empty() && unit.back() == 'b') unit.pop_back();
  if (unit.empty()) return 1;
  constexpr std::string_view kPrefixes = "kmgtp";
  const std::size_t power = kPrefixes.find(unit.front());
  if (power == std::string_view::npos || unit.size() > 2 || (unit.size() == 2 && unit[1] != 'i'))
    return 0;
  double bytes = 1;
  for (std::size_t i = 0; i <= power; ++i) bytes *= unit.size() == 2 ? 1024 : 1000;
  return bytes;
}

}  // namespace

std::uint64_t parse_bytes(std::string_view what, std::string_view text, std::uint64_t least) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit;
  for (const char* c = read.ptr; c != text.data() + text.size(); ++c)
    if (*c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  const double bytes = number * unit_bytes(unit);
  if (read.ec != std::errc{} || !(bytes >= static_cast<double>(least)) || bytes > 9e18)
    throw Error(
        Code::kInvalidArgument,
        std::string(what) + " must be a size like 8GiB or 500MB, got '" + std::string(text) + "'");
  return static_cast<std::uint64_t>(bytes);
}

double parse_rate(std::string_view what, std::string_view text) try {
  if (!text.ends_with("b/s") && !text.ends_with("B/s"))
    throw Error(Code::kInvalidArgument, "no rate");
  const double bytes = static_cast<double>(
      parse_bytes(what, text.substr(0, text.size() - std::string_view("/s").size())));
  return text.ends_with("b/s") ? bytes / 8 : bytes;
} catch (const Error&) {
  throw Error(Code::kInvalidArgument,
              std::string(what) + " must be a rate like 500Mb/s (bits) or 200MB/s (bytes), got '" +
                  std::string(text) + "'");
}

double parse_seconds(std::string_view what, std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  for (const auto& [unit, worth] : kUnits)
    if (read.ec == std::errc{} && number > 0 && number < 1e9 &&
        std::string_view(read.ptr, end) == unit)
      return number * worth;
  throw Error(Code::kInvalidArgument, std::string(what) +
                                          " must be a time like 500ms, 20s, 2m or 1h, got '" +
                                          std::string(text) + "'");
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

}  // namespace cutwater
