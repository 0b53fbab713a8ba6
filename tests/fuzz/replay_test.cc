// SPDX-License-Identifier: Apache-2.0
// Inputs that a fuzzer found, each of which once broke a promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz.h"

namespace cutwater::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<std::uint8_t> content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Fuzz, KeepsItsPromisesOnWhatWasFound) {
  for (const Target& target : targets()) {
    EXPECT_NO_THROW(target.run({})) << target.name << ": no bytes at all";
    const fs::path folder = fs::path(CUTWATER_FUZZ_FOUND) / target.name;
    if (!fs::exists(folder)) continue;
    for (const auto& file : fs::directory_iterator(folder)) {
      const std::vector<std::uint8_t> input = content_of(file);
      EXPECT_NO_THROW(target.run(input)) << file.path();
    }
  }
}

TEST(Fuzz, HasATargetForWhateverWasFound) {
  for (const auto& folder : fs::directory_iterator(CUTWATER_FUZZ_FOUND)) {
    const std::string name = folder.path().filename();
    EXPECT_EQ(std::ranges::count(targets(), name, &Target::name), 1) << name;
  }
}

}  // namespace
}  // namespace cutwater::fuzz
