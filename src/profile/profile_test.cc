// SPDX-License-Identifier: Apache-2.0
#include "cutwater/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "core/test_ops.h"
#include "profile/summary.h"
#include "source/test_folder.h"

namespace cutwater {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::SizeIs;

// A test op that refuses samples whose first byte is odd.
struct OnlyEven {
  static constexpr std::tuple<> kParams{};
  void check() const {}
  TensorSpec out_spec(const TensorView& in) const { return in.spec(); }
  void apply(const TensorView& in, const TensorSpan& out) const {
    if (*in.bytes() % 2 != 0) throw Error(Code::kBadSample, "is odd");
    std::copy_n(in.bytes(), in.spec().bytes(), out.bytes());
  }
};
constexpr OpDef kOnlyEven = define_op<OnlyEven>(test::test_op("only_even"));
constexpr std::array<const OpDef*, 4> kOps = {&kOnlyEven, &test::kPixels, &test::kJitter,
                                              &test::kWindow};
constexpr OpTable kTable{kOps, {}};

std::shared_ptr<const Source> source_of(int samples, int bytes = 5,
                                        std::vector<std::int64_t> labels = {}) {
  std::vector<std::vector<std::uint8_t>> stored;
  std::vector<std::span<const std::uint8_t>> views;
  for (int i = 0; i < samples; ++i)
    stored.emplace_back(static_cast<std::size_t>(bytes), static_cast<std::uint8_t>(i));
  for (const auto& each : stored) views.emplace_back(each);
  return open_memory(views, std::move(labels));
}

Profile profile_of(std::shared_ptr<const Source> source, const char* text,
                   ProfileOptions options = {}) {
  if (!options.threads) options.threads = 2;
  return make_profile(std::move(source), Pipeline::parse(text, kTable), options);
}

// Every column is as long as the list of samples, and has nothing but measures in it.
void expect_sound(const Profile& profile) {
  const auto column = [&](const std::vector<double>& values) {
    EXPECT_THAT(values, SizeIs(profile.ids.size()));
    for (const double value : values) EXPECT_TRUE(std::isfinite(value) && value >= 0) << value;
  };
  for (const CutProfile& cut : profile.cuts) {
    SCOPED_TRACE(cut.name);
    column(cut.bytes);
    column(cut.op_s);
    column(cut.prefix_s);
    column(cut.finish_s);
    for (const auto* values : {&cut.first_s, &cut.memory_s})
      if (cut.stable)
        column(*values);
      else
        EXPECT_THAT(*values, SizeIs(0));
    ASSERT_FALSE(cut.variants.empty());
    EXPECT_TRUE(cut.variants[0].codec.is_none());
    EXPECT_EQ(cut.variants[0].bytes, cut.bytes);
    EXPECT_THAT(cut.variants[0].encode_s, Each(0));
    EXPECT_THAT(cut.variants[0].decode_s, Each(0));
    for (const VariantProfile& variant : cut.variants) {
      column(variant.bytes);
      column(variant.encode_s);
      column(variant.decode_s);
    }
  }
}

TEST(Profile, HasTheSizesAndNamesOfEveryCut) {
  const Profile profile =
      profile_of(source_of(20, 5), "pixels(height=4, width=6) | window | jitter");
  expect_sound(profile);
  ASSERT_THAT(profile.cuts, SizeIs(4));
  EXPECT_THAT(profile.cuts[0].bytes, Each(5));
  EXPECT_THAT(profile.cuts[1].bytes, Each(72));
  EXPECT_THAT(profile.cuts[2].bytes, Each(3));
  EXPECT_THAT(profile.cuts[3].bytes, Each(3));
  std::vector<std::string> names, after;
  std::vector<bool> stable;
  for (const CutProfile& cut : profile.cuts) {
    names.push_back(cut.name);
    after.push_back(cut.after);
    stable.push_back(cut.stable);
  }
  EXPECT_THAT(names, ElementsAre("source", "pixels", "window", "jitter"));
  EXPECT_THAT(after, ElementsAre("", "pixels", "window", "jitter"));
  EXPECT_THAT(stable, ElementsAre(true, true, true, false));
  EXPECT_EQ(profile.data_samples, 20);
  EXPECT_EQ(profile.pipeline, Pipeline::parse(profile.pipeline, kTable).to_string());
  EXPECT_FALSE(profile.reads_files);
  EXPECT_THAT(profile.excerpt.bytes, SizeIs(0));  // none of these ops has any
  EXPECT_GT(profile.whole_s, 0);
  EXPECT_GT(profile.memory_bytes_per_s, 0);
  EXPECT_GT(profile.fresh_memory_bytes_per_s, 0);
  EXPECT_GT(profile.shared_memory_bytes_per_s, 0);
  EXPECT_GT(profile.shared_checked_bytes_per_s, 0);
  EXPECT_GT(profile.checked_memory_bytes_per_s, 0);
}

TEST(Profile, LabelsWeighAndAreNotEncoded) {
  const Profile profile = profile_of(source_of(3, 1000, {4, 5, 6}), "pixels(height=40, width=40)");
  expect_sound(profile);
  EXPECT_THAT(profile.cuts[0].bytes, Each(1008));
  EXPECT_THAT(profile.cuts[1].bytes, Each(4808));
  for (const VariantProfile& variant : profile.cuts[0].variants) {
    if (variant.codec.is_none()) continue;
    std::vector<std::uint8_t> packed;
    const std::vector<std::uint8_t> stored(1000, static_cast<std::uint8_t>(profile.ids[0]));
    encode(variant.codec, {DType::kU8, {1000}}, stored, packed);
    EXPECT_EQ(variant.bytes[0], static_cast<double>(packed.size() + 8)) << to_string(variant.codec);
  }
}

TEST(Profile, OfOneSampleAndOfEqualOnes) {
  const Profile one = profile_of(source_of(1), "pixels(height=4, width=6)");
  expect_sound(one);
  EXPECT_THAT(one.ids, ElementsAre(0));
  EXPECT_EQ(one.relative_error, 0);
  EXPECT_EQ(one.threads, 2);  // as asked for, though one has measured
  const std::vector<std::uint8_t> same(7, 1);
  const Profile equal =
      profile_of(open_memory(std::vector<std::span<const std::uint8_t>>(40, same)),
                 "pixels(height=4, width=6)");
  expect_sound(equal);
  EXPECT_GE(equal.ids.size(), 16u);
}

TEST(Profile, WithoutThreadsHasThoseOfEveryLoader) {
  ASSERT_EQ(::setenv("CUTWATER_THREADS", "3", 1), 0);
  const Profile profile = make_profile(source_of(5), Pipeline::parse("jitter", kTable));
  ::unsetenv("CUTWATER_THREADS");
  EXPECT_EQ(profile.threads, 3);
}

TEST(Profile, ThatDrawsAtOnceHasOneStableCut) {
  const Profile profile = profile_of(source_of(5), "jitter");
  expect_sound(profile);
  EXPECT_TRUE(profile.cuts[0].stable);
  EXPECT_FALSE(profile.cuts[1].stable);
}

TEST(Profile, WithoutOpsIsOfTheStoredBytes) {
  const Profile profile = profile_of(source_of(5), "");
  expect_sound(profile);
  EXPECT_THAT(profile.cuts, SizeIs(1));
}

TEST(Profile, TheSeedFixesWhichSamplesAreDrawn) {
  ProfileOptions options;
  options.samples = 30;
  const auto ids = [&](std::uint64_t seed, int threads) {
    options.seed = seed;
    options.threads = threads;
    return profile_of(source_of(200), "pixels(height=4, width=6)", options).ids;
  };
  const std::vector<std::int64_t> first = ids(1, 2);
  EXPECT_EQ(first, ids(1, 1));
  EXPECT_NE(first, ids(2, 2));
  EXPECT_THAT(std::set(first.begin(), first.end()), SizeIs(30));
  options.samples = 500;  // more than there are: all of them
  EXPECT_THAT(ids(1, 2), testing::UnorderedElementsAreArray([] {
                std::vector<std::int64_t> all(200);
                for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
                return all;
              }()));
}

TEST(Profile, BadSamplesAreNamedAndLeftOut) {
  const Profile profile = profile_of(source_of(20), "only_even | pixels(height=4, width=6)");
  expect_sound(profile);
  for (const std::int64_t id : profile.ids) EXPECT_EQ(id % 2, 0);
  EXPECT_EQ(profile.ids.size() + profile.bad.size(), 20u);
  ASSERT_THAT(profile.bad, SizeIs(10));
  for (const Failure& failure : profile.bad) {
    EXPECT_EQ(failure.sample % 2, 1);
    EXPECT_EQ(failure.path, "memory:" + std::to_string(failure.sample));
    EXPECT_EQ(failure.op, "only_even");
    EXPECT_EQ(failure.reason, "is odd");
  }
  EXPECT_THAT(profile_table(profile), HasSubstr("is odd"));
  EXPECT_EQ(profile.relative_error, 0);  // all of them were drawn
}

TEST(Profile, WhereAllAreBadTheFirstFailureIsThrown) {
  const std::vector<std::uint8_t> odd(3, 1);
  const auto source = open_memory(std::vector<std::span<const std::uint8_t>>(4, odd));
  EXPECT_THAT(failure_of([&] { profile_of(source, "only_even"); }),
              FailsWith(Code::kBadSample, "is odd"));
}

TEST(Profile, ShortTimeMeansFewSamples) {
  ProfileOptions options;
  options.max_seconds = 1e-9;
  const Profile profile = profile_of(source_of(100), "pixels(height=4, width=6)", options);
  expect_sound(profile);
  EXPECT_THAT(profile.ids, SizeIs(4));  // the first group of two threads
}

TEST(Profile, WhatIsThrownWhileItGoesOnEndsIt) {
  ProfileOptions options;
  options.on_progress = [](std::int64_t, std::int64_t most) {
    EXPECT_EQ(most, 100);
    throw Error(Code::kCancelled, "interrupted");
  };
  EXPECT_THAT(failure_of([&] { profile_of(source_of(100), "pixels(height=4, width=6)", options); }),
              FailsWith(Code::kCancelled, "interrupted"));
}

TEST(Profile, OfFilesKnowsThatTheyAreFiles) {
  const TestFolder folder;
  std::vector<std::string> paths;
  for (int i = 0; i < 20; ++i)
    paths.push_back(folder.file("f" + std::to_string(i), std::string(3000, 'x')));
  const Profile profile = profile_of(open_files(paths), "pixels(height=4, width=6)");
  expect_sound(profile);
  EXPECT_TRUE(profile.reads_files);
  EXPECT_GT(profile.storage.warm_file_s, 0);
  EXPECT_THAT((std::vector<double>{profile.storage.warm_part_s, profile.storage.warm_per_byte_s,
                                   profile.storage.cold_random.reads_per_s,
                                   profile.storage.cold_sequential.bytes_per_s,
                                   profile.storage.write_bytes_per_s}),
              Each(Ge(0)));
}

TEST(Profile, WrongOptionsAreRefusedByName) {
  const auto refused = [](auto change) {
    ProfileOptions options;
    change(options);
    return failure_of([&] { profile_of(source_of(3), "jitter", options); });
  };
  EXPECT_THAT(refused([](auto& o) { o.samples = 0; }),
              FailsWith(Code::kInvalidArgument, "samples must be at least 1, got 0"));
  EXPECT_THAT(refused([](auto& o) { o.max_seconds = -1; }),
              FailsWith(Code::kInvalidArgument, "max_seconds"));
  EXPECT_THAT(refused([](auto& o) { o.threads = 0; }),
              FailsWith(Code::kInvalidArgument, "threads"));
  EXPECT_THAT(refused([](auto& o) { o.consumer_samples_per_s = 0; }),
              FailsWith(Code::kInvalidArgument, "consumer"));
}

}  // namespace
}  // namespace cutwater
