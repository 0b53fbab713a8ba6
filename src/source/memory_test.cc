// SPDX-License-Identifier: Apache-2.0
// Samples from memory: what went in comes out, lent and not copied; and the arena they lie in.
#include <cstring>
#include <string>

#include "source/arena.h"
#include "source/test_folder.h"

namespace cutwater {
namespace {

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::shared_ptr<const Source> open(const std::vector<std::string>& texts,
                                   std::vector<std::int64_t> labels = {},
                                   std::vector<std::string> classes = {}) {
  std::vector<std::span<const std::uint8_t>> samples;
  for (const std::string& text : texts) samples.push_back(bytes_of(text));
  return open_memory(samples, std::move(labels), std::move(classes));
}

TEST(Memory, GivesTheBytesAndTheLabels) {
  const std::vector<std::string> texts = {"first", std::string(100'000, 'x'), "third"};
  const auto source = open(texts, {2, 0, 1}, {"a", "b", "c"});
  ASSERT_EQ(source->size(), 3);
  EXPECT_EQ(source->cut(), 0);
  EXPECT_EQ(source->path(2), "memory:2");
  EXPECT_THAT(labels_of(*source), testing::ElementsAre(2, 0, 1));
  EXPECT_THAT(source->classes(), testing::ElementsAre("a", "b", "c"));
  for (SampleId id = 0; id < 3; ++id) {
    EXPECT_EQ(image_of(*source, id), texts[static_cast<std::size_t>(id)]);
    const auto pool = BufferPool::create(0);
    Result<Sample> sample = source->read(id, *pool);
    std::int64_t label = -1;
    std::memcpy(&label, sample.value().find(kLabelField)->view().bytes(), sizeof label);
    EXPECT_EQ(label, source->label(id));
    EXPECT_FALSE(sample.value().find(kImageField)->owns_bytes()) << "a copy was made";
  }
}

TEST(Memory, IsACopyOfWhatWasGiven) {
  std::vector<std::string> texts = {"before"};
  const auto source = open(texts);
  texts[0].replace(0, 6, "after!");
  EXPECT_EQ(image_of(*source, 0), "before");
  EXPECT_FALSE(source->has_labels());
}

TEST(Memory, AnEmptySampleIsBadAsAnEmptyFileIs) {
  const auto source = open({"one", ""});
  const auto pool = BufferPool::create(0);
  const Result<Sample> sample = source->read(1, *pool);
  ASSERT_FALSE(sample);
  EXPECT_EQ(sample.failure().message(),
            Failure({Code::kBadSample, "is empty (0 bytes)", 1, "memory:1", "read"}).message());
  EXPECT_EQ(sample.failure().code, Code::kBadSample);
}

TEST(Memory, IdentityIsOfEveryByteLabelAndName) {
  const std::string same = open({"a", "b"}, {0, 1}, {"x", "y"})->identity();
  EXPECT_EQ(open({"a", "b"}, {0, 1}, {"x", "y"})->identity(), same);
  EXPECT_NE(open({"a", "c"}, {0, 1}, {"x", "y"})->identity(), same);
  EXPECT_NE(open({"ab", ""}, {0, 1}, {"x", "y"})->identity(), same);
  EXPECT_NE(open({"a", "b"}, {1, 0}, {"x", "y"})->identity(), same);
  EXPECT_NE(open({"a", "b"}, {0, 1}, {"x", "z"})->identity(), same);
  EXPECT_NE(open({"a", "b"})->identity(), same);
}

TEST(Memory, RefusesWhatCannotBe) {
  constexpr Code kCode = Code::kInvalidArgument;
  EXPECT_THAT(failure_of([] { open({}); }), FailsWith(kCode, "there is none"));
  EXPECT_THAT(failure_of([] {
                open({"a", "b"}, {1});
              }),
              FailsWith(kCode, "samples in memory: 1 labels for 2 samples"));
  EXPECT_THAT(failure_of([] {
                open({"a", "b"}, {0, 7}, {"x"});
              }),
              FailsWith(kCode, "label 7 of memory:1 is outside the 1 classes"));
}

TEST(Arena, PlacesAreAlignedApartAndStayWhereTheyAre) {
  Arena arena;
  std::vector<std::pair<std::uint8_t*, std::size_t>> places;
  for (const std::size_t bytes : {0u, 1u, 63u, 64u, 65u, 40u << 20, 7u, 33u << 20, 20u << 20})
    places.emplace_back(arena.allocate(bytes), bytes);
  for (std::size_t i = 0; i < places.size(); ++i)
    std::memset(places[i].first, static_cast<int>(i + 1), places[i].second);
  for (std::size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(places[i].first) % 64, 0u);
    if (places[i].second == 0) continue;
    EXPECT_EQ(places[i].first[0], i + 1);
    EXPECT_EQ(places[i].first[places[i].second - 1], i + 1);
  }
}

TEST(Arena, GivesAwayAgainWhatWasRewound) {
  Arena arena;
  std::uint8_t* const kept = arena.allocate(100);
  const Arena::Mark mark = arena.mark();
  std::uint8_t* const first = arena.allocate(1000);
  arena.rewind(mark);
  EXPECT_EQ(arena.allocate(1000), first);
  EXPECT_NE(kept, first);

  const Arena::Mark before_large = arena.mark();
  std::uint8_t* const large = arena.allocate(50 << 20);
  arena.rewind(before_large);
  EXPECT_EQ(arena.allocate(50 << 20), large);
}

}  // namespace
}  // namespace cutwater
