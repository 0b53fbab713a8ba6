// SPDX-License-Identifier: Apache-2.0
// A saved profile, one file of it replaced by any bytes: it is refused by name, or what is loaded
// is sound and is the same when it is saved and loaded again.
#include <cmath>
#include <fstream>

#include "cutwater/profile.h"
#include "folder.h"
#include "profile/summary.h"
#include "profile/test_profile.h"

namespace cutwater::fuzz {
namespace {

constexpr std::string_view kFiles[] = {"meta.json",
                                       "ids.npy",
                                       "bytes.npy",
                                       "op_s.npy",
                                       "finish_s.npy",
                                       "memory_s.npy",
                                       "first_s.npy",
                                       "variant_bytes.npy",
                                       "variant_decode_s.npy",
                                       "fresh_finish_s.npy",
                                       "fresh_variant_bytes.npy",
                                       "excerpt_bytes.npy"};

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void check(const Profile& profile) {
  const auto column = [&](const std::vector<double>& values) {
    require(values.size() == profile.ids.size(), "columns have a value for each sample");
    for (const double value : values)
      require(std::isfinite(value) && value >= 0, "values are measures");
  };
  require(!profile.ids.empty() && !profile.cuts.empty(), "there are samples and cuts");
  for (const CutProfile& cut : profile.cuts) {
    for (const auto* values : {&cut.bytes, &cut.op_s, &cut.prefix_s}) column(*values);
    require(!cut.stable || !cut.variants.empty(), "stable cuts have variants");
    require(cut.finish_s.empty() == cut.variants.empty(), "both are known, or neither is");
    if (cut.stable)
      for (const auto* values : {&cut.finish_s, &cut.first_s, &cut.memory_s}) column(*values);
    if (!cut.finish_s.empty()) column(cut.finish_s);
    for (const VariantProfile& variant : cut.variants)
      for (const auto* values : {&variant.bytes, &variant.encode_s, &variant.decode_s})
        column(*values);
  }
  const ExcerptProfile& excerpt = profile.excerpt;
  if (!excerpt.bytes.empty())
    for (const auto* values : {&excerpt.bytes, &excerpt.make_s, &excerpt.finish_s}) column(*values);
}

}  // namespace

FUZZ_TARGET(profile) {
  static const Folder folder;
  static const std::string saved = [] {
    save_profile(test::small_profile(), folder.path("p"));
    return folder.path("p");
  }();
  if (input.empty()) return;
  const std::string file = saved + "/" + std::string(kFiles[input[0] % std::size(kFiles)]);
  const std::string good = content(file);
  write(file, {reinterpret_cast<const char*>(input.data()) + 1, input.size() - 1});
  try {
    const Profile profile = load_profile(saved);
    check(profile);
    save_profile(profile, folder.path("again"));
    require(profile_json(load_profile(folder.path("again"))) == profile_json(profile),
            "what was saved is loaded");
    require(!profile_table(profile).empty(), "there is a table");
  } catch (const Error& error) {
    require(error.code() == Code::kInvalidArgument || error.code() == Code::kNotFound,
            std::string("refused: ") + error.what());
  }
  write(file, good);
}

}  // namespace cutwater::fuzz
