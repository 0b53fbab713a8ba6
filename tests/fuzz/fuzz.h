// SPDX-License-Identifier: Apache-2.0
// What a fuzz target is: a function of any bytes at all, which throws where a promise is broken.
// Each fuzz_NAME.cc has one. The preset `fuzz` makes of each a libFuzzer program; the tests link
// them all, and replay the inputs in found/NAME that once broke a promise.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cutwater::fuzz {

using Input = std::span<const std::uint8_t>;

struct Target {
  std::string_view name;
  void (*run)(Input);
};

// Those linked into this program.
inline std::vector<Target>& targets() {
  static std::vector<Target> list;
  return list;
}

struct Registration {
  Registration(std::string_view name, void (*run)(Input)) { targets().push_back({name, run}); }
};

// A number that depends on every byte: what a target draws, it draws from this.
inline std::uint32_t hash_of(Input input) {
  std::uint32_t hash = 2166136261U;
  for (const std::uint8_t byte : input) hash = (hash ^ byte) * 16777619U;
  return hash;
}

inline void require(bool holds, const std::string& promise) {
  if (!holds) throw std::logic_error("broken promise: " + promise);
}

}  // namespace cutwater::fuzz

// FUZZ_TARGET(name) { … input … }
#define FUZZ_TARGET(name)                                                               \
  static void fuzz_##name(::cutwater::fuzz::Input input);                               \
  static const ::cutwater::fuzz::Registration kRegistration_##name(#name, fuzz_##name); \
  static void fuzz_##name(::cutwater::fuzz::Input input)
