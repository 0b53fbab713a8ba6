// SPDX-License-Identifier: Apache-2.0
// Kept hints, as they come and sealed as those of this very data set: what is read is within
// bounds, and reads back; what is not read leaves nothing behind.
#include <xxhash.h>

#include <cstring>

#include "fuzz.h"
#include "source/hint_book.h"

namespace cutwater::fuzz {
namespace {

constexpr std::int64_t kSamples = 100;
constexpr std::size_t kMostBytes = 4096, kHeader = 56;
constexpr std::string_view kOf = "ops";

std::string sealed(std::string bytes) {
  const HintBook empty(kSamples, 0);
  if (bytes.size() < kHeader) bytes.resize(kHeader);
  bytes.replace(0, kHeader - 8, empty.encode(kOf), 0, kHeader - 8);  // all but the count
  const std::uint64_t digest = XXH3_64bits(bytes.data(), bytes.size());
  return bytes.append(reinterpret_cast<const char*>(&digest), sizeof digest);
}

void check(std::string_view bytes) {
  HintBook book(kSamples, kMostBytes);
  if (!book.decode(bytes, kOf)) {
    require(book.entries() == 0 && book.bytes() == 0, "nothing is read from a bad file");
    return;
  }
  require(book.bytes() <= kMostBytes, "the bound is kept");
  HintBook again(kSamples, kMostBytes);
  require(again.decode(book.encode(kOf), kOf), "what was written is read");
  require(again.encode(kOf) == book.encode(kOf) && again.bytes() == book.bytes(),
          "what was read is the same");
}

}  // namespace

FUZZ_TARGET(hints) {
  const std::string bytes(input.begin(), input.end());
  check(bytes);
  check(sealed(bytes));
}

}  // namespace cutwater::fuzz
