// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/npy.h"
#include "profile/summary.h"
#include "profile/test_profile.h"
#include "source/test_folder.h"

namespace cutwater {
namespace {

using nlohmann::ordered_json;
using test::small_profile;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_same(const Profile& a, const Profile& b) {
  EXPECT_EQ(profile_json(a), profile_json(b));
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.source_identity, b.source_identity);
  EXPECT_EQ(a.storage.warm_per_byte_s, b.storage.warm_per_byte_s);
  for (const auto column :
       {&ExcerptProfile::bytes, &ExcerptProfile::make_s, &ExcerptProfile::finish_s})
    EXPECT_EQ(a.excerpt.*column, b.excerpt.*column);
  ASSERT_EQ(a.cuts.size(), b.cuts.size());
  for (std::size_t k = 0; k < a.cuts.size(); ++k) {
    for (const auto column : {&CutProfile::bytes, &CutProfile::op_s, &CutProfile::prefix_s,
                              &CutProfile::finish_s, &CutProfile::first_s, &CutProfile::memory_s})
      EXPECT_EQ(a.cuts[k].*column, b.cuts[k].*column);
    ASSERT_EQ(a.cuts[k].variants.size(), b.cuts[k].variants.size());
    for (std::size_t v = 0; v < a.cuts[k].variants.size(); ++v) {
      const VariantProfile &one = a.cuts[k].variants[v], &other = b.cuts[k].variants[v];
      EXPECT_EQ(one.codec, other.codec);
      EXPECT_EQ(one.bytes, other.bytes);
      EXPECT_EQ(one.encode_s, other.encode_s);
      EXPECT_EQ(one.decode_s, other.decode_s);
    }
  }
}

void expect_saved(const Profile& profile, const TestFolder& folder) {
  save_profile(profile, folder.path("p"));
  expect_same(load_profile(folder.path("p")), profile);
}

TEST(ProfileFiles, WhatWasSavedIsLoaded) {
  const TestFolder folder;
  const std::string path = folder.path("new/profile");
  save_profile(small_profile(), path);
  expect_same(load_profile(path), small_profile());
  const Profile loaded = load_profile(path);
  ASSERT_EQ(loaded.bad.size(), 1u);
  EXPECT_EQ(loaded.bad[0].message(), small_profile().bad[0].message());
}

TEST(ProfileFiles, FreshCutsAndExcerptsMayBeUnknown) {
  const TestFolder folder;
  Profile older = small_profile();
  older.excerpt = {};
  expect_saved(older, folder);
  older.cuts.back().finish_s.clear();
  older.cuts.back().variants.clear();
  expect_saved(older, folder);
  EXPECT_FALSE(std::filesystem::exists(folder.path("p/fresh_finish_s.npy")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("p/excerpt_bytes.npy")));
}

TEST(ProfileFiles, ASecondSaveReplacesTheFirst) {
  const TestFolder folder;
  save_profile(small_profile(), folder.path("p"));
  Profile other = small_profile();
  other.cuts.pop_back();
  other.ids = {1, 2};
  save_profile(other, folder.path("p"));
  expect_same(load_profile(folder.path("p")), other);
}

TEST(ProfileFiles, ASaveThatFailsLeavesTheOldOne) {
  const TestFolder folder;
  save_profile(small_profile(), folder.path("p"));
  Profile torn = small_profile();
  torn.ids = {1, 2, 4};  // more than the columns have
  EXPECT_ANY_THROW(save_profile(torn, folder.path("p")));
  expect_same(load_profile(folder.path("p")), small_profile());
  const std::filesystem::directory_iterator entries(folder.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);  // nothing else is left
}

TEST(ProfileFiles, APathMayBeRelative) {
  const TestFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_NO_THROW(save_profile(small_profile(), "p"));
  EXPECT_NO_THROW(save_profile(small_profile(), "./p/"));
  std::filesystem::current_path(before);
  expect_same(load_profile(folder.path("p")), small_profile());
}

TEST(ProfileFiles, ALinkIsFollowed) {
  const TestFolder folder;
  folder.link("link", folder.folder("empty") + "/");
  save_profile(small_profile(), folder.path("link/"));
  save_profile(small_profile(), folder.path("link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  expect_same(load_profile(folder.path("empty")), small_profile());
}

TEST(ProfileFiles, WithoutMetaThereIsNoProfile) {
  const TestFolder folder;
  EXPECT_THAT(failure_of([&] { load_profile(folder.path("nowhere")); }),
              FailsWith(Code::kNotFound, "has no meta.json"));
  save_profile(small_profile(), folder.path("p"));
  std::filesystem::remove(folder.path("p/meta.json"));
  EXPECT_THAT(failure_of([&] { load_profile(folder.path("p")); }),
              FailsWith(Code::kNotFound, "has no meta.json"));
  save_profile(small_profile(), folder.path("p"));
  expect_same(load_profile(folder.path("p")), small_profile());
}

TEST(ProfileFiles, NothingElseIsOverwritten) {
  const TestFolder folder;
  folder.file("data/cat.jpg");
  EXPECT_THAT(failure_of([&] { save_profile(small_profile(), folder.path("data")); }),
              FailsWith(Code::kInvalidArgument, "has 'cat.jpg' in it"));
  EXPECT_THAT(failure_of([&] { save_profile(small_profile(), folder.path("data/cat.jpg")); }),
              FailsWith(Code::kInvalidArgument, "is a file"));
  EXPECT_THAT(failure_of([&] { save_profile(small_profile(), folder.path("data/cat.jpg/p")); }),
              FailsWith(Code::kNotFound, "make the folder"));
}

struct Hostile {
  const char* what;
  std::function<void(ordered_json& meta)> change;
  const char* message;
};

TEST(ProfileFiles, AHostileMetaIsRefusedByName) {
  const TestFolder folder;
  save_profile(small_profile(), folder.path("p"));
  const ordered_json good = ordered_json::parse(content(folder.path("p/meta.json")));
  const std::vector<Hostile> cases = {
      {"no object", [](auto& m) { m = ordered_json::array(); }, "is no JSON object"},
      {"other format", [](auto& m) { m["format"] = "plan"; }, "'format'"},
      {"newer", [](auto& m) { m["version"] = 2; }, "has version 2"},
      {"lacks", [](auto& m) { m.erase("threads"); }, "lacks 'threads'"},
      {"no text", [](auto& m) { m["data"] = 3; }, "'data' is no text"},
      {"negative", [](auto& m) { m["seconds"] = -1; }, "'seconds' is -1"},
      {"not finite", [](auto& m) { m["engine_s"] = nullptr; }, "'engine_s' is null"},
      {"no storage", [](auto& m) { m["storage"] = 1; }, "lacks 'cold_random'"},
      {"rate", [](auto& m) { m["storage"]["cold_random"]["reads_per_s"] = -2; }, "'reads_per_s'"},
      {"huge count", [](auto& m) { m["data_samples"] = 1e300; }, "'data_samples'"},
      {"beyond 63 bits", [](auto& m) { m["data_samples"] = ~std::uint64_t{0}; }, "'data_samples'"},
      {"more samples than rows", [](auto& m) { m["samples"] = 3; }, "ids.npy"},
      {"more samples than data", [](auto& m) { m["samples"] = 11; }, "'samples' is 11"},
      {"no samples", [](auto& m) { m["samples"] = 0; }, "'samples' is 0"},
      {"no cuts", [](auto& m) { m["cuts"] = ordered_json::array(); }, "has 0 cuts"},
      {"cuts missing", [](auto& m) { m["cuts"].erase(2); }, "'cut' is 2"},
      {"cuts and their variants missing",
       [](auto& m) {
         m["cuts"].erase(2);
         m.erase("fresh_variants");
       },
       "has another shape"},
      {"cuts out of order", [](auto& m) { m["cuts"][1]["cut"] = 2; }, "'cut' is 2"},
      {"stable behind fresh",
       [](auto& m) {
         m["cuts"][1]["stable"] = false;
         m["cuts"][2]["stable"] = true;
       },
       "behind a fresh one"},
      {"unstable source",
       [](auto& m) {
         for (auto& c : m["cuts"]) c["stable"] = false;
       },
       "cut 0 that is not stable"},
      {"unknown codec", [](auto& m) { m["variants"][1]["codec"] = "zip"; }, "codec 'zip'"},
      {"codec twice", [](auto& m) { m["variants"][1]["codec"] = "none"; }, "twice"},
      {"none is missing", [](auto& m) { m["variants"].erase(0); }, "no variant \"none\""},
      {"variant of a fresh cut", [](auto& m) { m["variants"][3]["cut"] = 2; }, "fresh cut 2"},
      {"fresh variant of a stable cut", [](auto& m) { m["fresh_variants"][0]["cut"] = 1; },
       "stable cut 1 in 'fresh_variants'"},
      {"no fresh variants", [](auto& m) { m["fresh_variants"].clear(); }, "no variant \"none\""},
      {"a part of an excerpt", [](auto& m) { m["files"].erase("excerpt_make_s"); },
       "lacks 'excerpt_make_s'"},
      {"variant of no cut", [](auto& m) { m["variants"][3]["cut"] = 3; }, "'cut' is 3"},
      {"bad id", [](auto& m) { m["bad"][0]["id"] = 10; }, "'id' is 10"},
      {"a way out", [](auto& m) { m["files"]["ids"] = "../p/ids.npy"; }, "leads out"},
      {"parent", [](auto& m) { m["files"]["ids"] = ".."; }, "leads out"},
      {"absolute", [](auto& m) { m["files"]["ids"] = "/etc/passwd"; }, "leads out"},
      {"other column", [](auto& m) { m["files"]["bytes"] = "finish_s.npy"; }, "has another shape"},
      {"file missing", [](auto& m) { m["files"]["bytes"] = "gone.npy"; }, "gone.npy"}};
  for (const Hostile& one : cases) {
    SCOPED_TRACE(one.what);
    ordered_json meta = good;
    one.change(meta);
    folder.file("p/meta.json", meta.dump());
    EXPECT_THAT(failure_of([&] { load_profile(folder.path("p")); }).reason,
                testing::HasSubstr(one.message));
  }
  folder.file("p/meta.json", "{\"format\": ");
  EXPECT_THAT(failure_of([&] { load_profile(folder.path("p")); }),
              FailsWith(Code::kInvalidArgument, "is no JSON object"));
}

TEST(ProfileFiles, HostileColumnsAreRefusedByName) {
  const TestFolder folder;
  save_profile(small_profile(), folder.path("p"));
  const auto array = [](const char* type, std::vector<std::int64_t> shape,
                        std::vector<double> values) {
    std::string bytes = npy_header(type, shape);
    return bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * 8);
  };
  const auto ids = [](std::vector<std::int64_t> values) {
    std::string bytes = npy_header("'<i8'", std::array<std::int64_t, 1>{2});
    return bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * 8);
  };
  const double nan = std::nan(""), endless = std::numeric_limits<double>::infinity();
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const std::vector<std::tuple<const char*, std::string, const char*>> cases = {
      {"bytes.npy", "", "not an .npy file"},
      {"bytes.npy", "text of some length, no array", "not an .npy file"},
      {"bytes.npy", array("'<f4'", {2, 3}, {1, 2, 3, 4, 5, 6}), "type '<f4'"},
      {"bytes.npy", array("'<f8'", {3, 2}, {1, 2, 3, 4, 5, 6}), "another shape"},
      {"bytes.npy", array("'<f8'", {kHuge, 3}, {1}), "another shape"},
      {"bytes.npy", array("'<f8'", {2, 3}, {1, 2, 3, 4, 5}), "40 bytes of elements"},
      {"bytes.npy", array("'<f8'", {2, 3}, {1, 2, 3, 4, 5, 6, 7}), "56 bytes of elements"},
      {"bytes.npy", array("'<f8'", {2, 3}, {1, 2, 3, nan, 5, 6}), "has nan in row 1"},
      {"op_s.npy", array("'<f8'", {2, 3}, {1, 2, 3, 4, 5, -6}), "has -6.000000 in row 1"},
      {"finish_s.npy", array("'<f8'", {2, 2}, {endless, 2, 3, 4}), "has inf in row 0"},
      {"ids.npy", ids({7, 7}), "id 7, which comes twice"},
      {"ids.npy", ids({7, 10}), "id 10"},
      {"ids.npy", ids({7, -1}), "id -1"}};
  for (const auto& [file, bytes, message] : cases) {
    SCOPED_TRACE(message);
    const std::string place = std::string("p/") + file, good = content(folder.path(place));
    folder.file(place, bytes);
    EXPECT_THAT(failure_of([&] { load_profile(folder.path("p")); }),
                FailsWith(Code::kInvalidArgument, message));
    folder.file(place, good);
  }
  EXPECT_NO_THROW(load_profile(folder.path("p")));
}

}  // namespace
}  // namespace cutwater
