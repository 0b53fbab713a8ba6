// SPDX-License-Identifier: Apache-2.0
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <string>

#include "cutwater/cache.h"

namespace cutwater {
namespace {

std::uint64_t number_of(const std::string& text) { return XXH3_64bits(text.data(), text.size()); }

}  // namespace

std::uint64_t data_number(std::string_view identity) {
  return number_of("cutwater data 1\n" + std::string(identity));
}

std::uint64_t form_number(std::string_view fingerprint, const Codec& codec) {
  return number_of("cutwater form 1\n" + to_string(codec) + "\n" + std::string(fingerprint));
}

std::uint64_t draw_number(std::uint64_t seed, std::uint32_t epoch) {
  const std::array<std::uint64_t, 2> words = {seed, epoch};
  const std::uint64_t number = XXH3_64bits(words.data(), sizeof(words));
  return number != 0 ? number : 1;
}

}  // namespace cutwater
