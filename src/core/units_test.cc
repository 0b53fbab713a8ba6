// SPDX-License-Identifier: Apache-2.0
#include "core/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cutwater/error.h"

namespace cutwater {
namespace {

using ::testing::StrEq;
using ::testing::ThrowsMessage;

TEST(Units, ReadsSizesAsPeopleWriteThem) {
  const std::pair<const char*, std::uint64_t> table[] = {
      {"1", 1},
      {"1024", 1024},
      {"5b", 5},
      {"64k", 64'000},
      {"64kb", 64'000},
      {"64 KiB", 64 * 1024},
      {"64ki", 64 * 1024},
      {"500MB", 500'000'000},
      {"500 mb", 500'000'000},
      {"2MiB", 2 << 20},
      {"8GiB", 8ULL << 30},
      {"8gib", 8ULL << 30},
      {"1.5GiB", 3ULL << 29},
      {"1TB", 1'000'000'000'000},
      {"1PiB", 1ULL << 50},
      {"1e3", 1000},
  };
  for (const auto& [text, bytes] : table)
    EXPECT_EQ(parse_bytes("memory_limit", text), bytes) << text;
  EXPECT_EQ(parse_bytes("disk", "0 GB", 0), 0);  // where nothing is something, too
}

TEST(Units, RefusesEverythingElseByName) {
  for (const std::string text : {"", " ", "x", "GiB", "0", "-1", "0.4", "1x", "1kk", "1 20",
                                 "1Gi B x", "0x10", "inf", "nan", "1e30", "9e18k", "1.2.3", "1bb"})
    EXPECT_THAT([&] { parse_bytes("memory_limit", text); },
                ThrowsMessage<Error>(
                    StrEq("memory_limit must be a size like 8GiB or 500MB, got '" + text + "'")));
}

TEST(Units, RatesAreInBitsOrBytes) {
  const std::pair<const char*, double> table[] = {{"500Mb/s", 62.5e6},
                                                  {"200MB/s", 200e6},
                                                  {"1.5 GiB/s", 1.5 * (1 << 30)},
                                                  {"8b/s", 1},
                                                  {"80kb/s", 10e3}};
  for (const auto& [text, bytes] : table) EXPECT_EQ(parse_rate("--link", text), bytes) << text;
  for (const std::string text :
       {"", "500", "500M/s", "500Mb", "Mb/s", "0B/s", "-1MB/s", "/s", "b/s"})
    EXPECT_THAT(
        [&] { parse_rate("--link", text); },
        ThrowsMessage<Error>(StrEq(
            "--link must be a rate like 500Mb/s (bits) or 200MB/s (bytes), got '" + text + "'")));
}

TEST(Units, ReadsTimes) {
  const std::pair<const char*, double> table[] = {
      {"500ms", 0.5}, {"20s", 20}, {"1.5s", 1.5}, {"2m", 120}, {"1h", 3600}};
  for (const auto& [text, seconds] : table)
    EXPECT_EQ(parse_seconds("--patience", text), seconds) << text;
  for (const std::string text : {"", "20", "s", "0s", "-1s", "nans", "infs", "1e99h", "5 s", "3x"})
    EXPECT_THAT([&] { parse_seconds("--patience", text); },
                ThrowsMessage<Error>(StrEq(
                    "--patience must be a time like 500ms, 20s, 2m or 1h, got '" + text + "'")));
}

TEST(Units, PrintsWithOneDigit) {
  const std::pair<std::uint64_t, const char*> table[] = {
      {0, "0 bytes"},          {1023, "1023 bytes"},       {1024, "1.0 KiB"},
      {1536, "1.5 KiB"},       {5 << 20, "5.0 MiB"},       {3ULL << 29, "1.5 GiB"},
      {1ULL << 40, "1.0 TiB"}, {1ULL << 50, "1024.0 TiB"},
  };
  for (const auto& [bytes, text] : table) EXPECT_EQ(bytes_text(bytes), text);
}

TEST(Units, ReadsBackWhatItPrints) {
  for (int shift = 10; shift < 50; ++shift) {
    const std::uint64_t bytes = 1ULL << shift;
    EXPECT_EQ(parse_bytes("x", bytes_text(bytes)), bytes);
  }
}

}  // namespace
}  // namespace cutwater
