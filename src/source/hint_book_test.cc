// SPDX-License-Identifier: Apache-2.0
// HintBook within its bounds, from many threads, as bytes; and KeptHints wherever it may write.
#include "source/hint_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <xxhash.h>

#include <barrier>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "source/kept_file.h"
#include "source/test_folder.h"

namespace cutwater {
namespace {

namespace fs = std::filesystem;

using Hint8 = std::vector<std::uint8_t>;

constexpr std::size_t kPlenty = std::size_t{1} << 30;
constexpr std::string_view kOf = "these ops";

Hint8 found(HintBook& book, SampleId id) {
  Hint8 into = {1, 2, 3};
  book.find(id, into);
  return into;
}

// Of a size and with bytes that depend on its id only.
Hint8 hint_of(SampleId id) {
  std::mt19937 random(static_cast<unsigned>(id));
  Hint8 hint(1 + random() % 60);
  for (std::uint8_t& byte : hint) byte = static_cast<std::uint8_t>(random());
  return hint;
}

void fill(HintBook& book, SampleId samples, SampleId step) {
  for (SampleId id = 0; id < samples; id += step) book.keep(id, hint_of(id));
}

TEST(HintBook, FindsWhatWasKeptLast) {
  HintBook book(1000, kPlenty);
  EXPECT_EQ(found(book, 7), Hint8{}) << "what was there before is replaced";
  book.keep(7, {5, 6});
  book.keep(71, {8});  // in the same shard
  book.keep(7, {9});
  EXPECT_EQ(found(book, 7), Hint8{9});
  EXPECT_EQ(found(book, 71), Hint8{8});
  EXPECT_EQ(found(book, 8), Hint8{});
  EXPECT_EQ(book.entries(), 2);
  EXPECT_EQ(book.changes(), 3);
  EXPECT_EQ(book.uses(), 2);
}

TEST(HintBook, KnowsNoOtherSamples) {
  HintBook book(10, kPlenty);
  constexpr SampleId kFar = std::numeric_limits<SampleId>::max();
  for (const SampleId id : {SampleId{-1}, SampleId{10}, SampleId{64}, kFar, -kFar}) {
    book.keep(id, {1});
    EXPECT_EQ(found(book, id), Hint8{}) << id;
  }
  book.keep(3, {});
  EXPECT_EQ(book.entries() + book.changes(), 0) << "nothing is no hint";
  EXPECT_EQ(book.bytes(), 0U);
}

TEST(HintBook, HoldsNoMoreThanItMay) {
  constexpr std::size_t kMost = 5000;
  HintBook book(1000, kMost);
  fill(book, 1000, 1);
  EXPECT_LE(book.bytes(), kMost);
  EXPECT_GT(book.bytes(), kMost - 200) << "and no less than fits";
  const std::int64_t entries = book.entries();
  EXPECT_EQ(found(book, 0), hint_of(0));
  book.keep(0, Hint8(kMost));
  EXPECT_EQ(found(book, 0), hint_of(0)) << "what does not fit replaces nothing";
  book.keep(0, {1});
  EXPECT_EQ(book.entries(), entries);
  const std::size_t before = book.bytes();
  book.keep(0, {1, 2, 3});
  EXPECT_EQ(book.bytes(), before + 2) << "what it replaces does not count";
  HintBook none(10, 0);
  none.keep(1, {1});
  EXPECT_EQ(none.entries(), 0);
}

TEST(HintBook, ManyThreadsKeepAndFindAtOnce) {
  constexpr SampleId kSamples = 400;
  for (const std::size_t most : {kPlenty, std::size_t{4000}}) {
    HintBook book(kSamples, most);
    std::vector<std::jthread> threads;
    for (unsigned seed = 0; seed < 6; ++seed)
      threads.emplace_back([&book, seed] {
        std::mt19937 random(seed);
        for (int i = 0; i < 3000; ++i) {
          const auto id = static_cast<SampleId>(random() % kSamples);
          if (random() % 2 == 0) book.keep(id, hint_of(id));
          const Hint8 hint = found(book, id);
          if (!hint.empty() && hint != hint_of(id)) ADD_FAILURE() << "a hint of another sample";
          if (i % 1000 == 0) book.encode(kOf);
        }
      });
    threads.clear();
    EXPECT_LE(book.bytes(), most);
    std::int64_t entries = 0;
    for (SampleId id = 0; id < kSamples; ++id) entries += found(book, id).empty() ? 0 : 1;
    EXPECT_EQ(entries, book.entries());
  }
}

// Threads that all come at once, for room that ends while they do.
TEST(HintBook, ThreadsTogetherKeepNoMoreThanItMayHold) {
  constexpr std::ptrdiff_t kThreads = 4;
  HintBook probe(1, kPlenty);
  probe.keep(0, {1});
  for (int round = 0; round < 40; ++round) {
    HintBook book(kThreads * 1000, 500 * probe.bytes());
    std::barrier start(kThreads);
    std::vector<std::jthread> threads;
    for (SampleId first = 0; first < kThreads; ++first)
      threads.emplace_back([&book, &start, first] {
        start.arrive_and_wait();
        for (SampleId id = first; id < kThreads * 1000; id += kThreads) book.keep(id, {1});
      });
    threads.clear();
    ASSERT_EQ(book.entries(), 500);
  }
}

// ---- Bytes ----

TEST(HintBook, ReadsBackWhatItWrote) {
  for (const SampleId samples : {0, 1, 63, 64, 65, 1000}) {
    HintBook book(samples, kPlenty), again(samples, kPlenty);
    fill(book, samples, 3);
    ASSERT_TRUE(again.decode(book.encode(kOf), kOf));
    EXPECT_EQ(again.entries(), book.entries());
    EXPECT_EQ(again.bytes(), book.bytes());
    for (SampleId id = 0; id < samples; ++id) EXPECT_EQ(found(again, id), found(book, id));
    EXPECT_EQ(again.encode(kOf), book.encode(kOf));
  }
}

TEST(HintBook, ReadsNoMoreThanItMayHold) {
  HintBook book(1000, kPlenty), small(1000, 3000);
  fill(book, 1000, 1);
  EXPECT_TRUE(small.decode(book.encode(kOf), kOf));
  EXPECT_LE(small.bytes(), 3000U);
  EXPECT_GT(small.entries(), 0);
}

TEST(HintBook, RefusesWhatIsOfOthers) {
  HintBook book(100, kPlenty), more(101, kPlenty), again(100, kPlenty);
  fill(book, 100, 7);
  EXPECT_FALSE(more.decode(book.encode(kOf), kOf)) << "of another number of samples";
  EXPECT_FALSE(again.decode(book.encode(kOf), "other ops"));
  EXPECT_FALSE(again.decode(book.encode(kOf), ""));
  const std::string long_name(40, 'x');
  EXPECT_TRUE(again.decode(book.encode(long_name), long_name)) << "32 bytes of it count";
}

TEST(HintBook, RefusesEveryDamageAndStaysAsItIs) {
  HintBook book(100, kPlenty), again(100, kPlenty);
  fill(book, 100, 9);
  const std::string sound = book.encode(kOf);
  for (std::size_t size = 0; size < sound.size(); ++size)
    ASSERT_FALSE(again.decode(std::string_view(sound).substr(0, size), kOf)) << size;
  ASSERT_FALSE(again.decode(sound + '\0', kOf));
  for (std::size_t at = 0; at < sound.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = sound;
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << bit);
      ASSERT_FALSE(again.decode(bytes, kOf)) << at;
    }
  EXPECT_EQ(again.changes(), 0);
}

// Sound digests over lies: counts, ids and sizes out of bounds.
TEST(HintBook, RefusesNumbersThatAreOutOfBounds) {
  HintBook book(100, kPlenty), again(100, kPlenty);
  book.keep(5, {1, 2, 3});
  const std::string sound = book.encode(kOf);
  const auto with = [&](std::size_t at, auto value) {
    std::string bytes = sound;
    std::memcpy(bytes.data() + at, &value, sizeof value);
    const std::size_t body = bytes.size() - 8;
    const std::uint64_t digest = XXH3_64bits(bytes.data(), body);
    std::memcpy(bytes.data() + body, &digest, sizeof digest);
    return bytes;
  };
  constexpr std::size_t kCount = 48, kId = 56, kSize = 64;
  ASSERT_TRUE(again.decode(with(kCount, std::uint64_t{1}), kOf)) << "as it is";
  const std::int64_t changes = again.changes();
  for (const std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{2}, ~std::uint64_t{0}})
    EXPECT_FALSE(again.decode(with(kCount, wrong), kOf)) << wrong;
  for (const std::uint64_t wrong : {std::uint64_t{100}, std::uint64_t{1} << 63, ~std::uint64_t{0}})
    EXPECT_FALSE(again.decode(with(kId, wrong), kOf)) << wrong;
  for (const std::uint32_t wrong : {0U, 2U, 4U, 0x80000000U, 0xFFFFFFFFU})
    EXPECT_FALSE(again.decode(with(kSize, wrong), kOf)) << wrong;
  EXPECT_EQ(again.changes(), changes);
}

// ---- Files ----

class KeptHintsTest : public testing::Test {
 protected:
  KeptHintsTest() { ::setenv("XDG_CACHE_HOME", folder_.path("cache").c_str(), 1); }
  ~KeptHintsTest() override {
    if (cache_)
      ::setenv("XDG_CACHE_HOME", cache_->c_str(), 1);
    else
      ::unsetenv("XDG_CACHE_HOME");
  }

  // How many hints a new book finds.
  static std::int64_t found_at(const std::string& home, const std::string& path = "") {
    HintBook book(100, kPlenty);
    const KeptHints kept(book, std::string(kOf), home, path);
    return book.entries();
  }
  static void learn(const std::string& home, const std::string& path = "") {
    HintBook book(100, kPlenty);
    KeptHints kept(book, std::string(kOf), home, path);
    fill(book, 100, 10);
    kept.save();
  }
  std::size_t files_in(const std::string& name) const {
    std::error_code none;
    const fs::directory_iterator all(folder_.path(name), none);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  // The file of a home.
  static std::string beside(const std::string& home) {
    return home + "/.cutwater-" + std::string(kOf.substr(0, 8)) + ".hints";
  }

  TestFolder folder_;

 private:
  static std::optional<std::string> cache_of_environment() {
    const char* value = ::getenv("XDG_CACHE_HOME");
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }
  const std::optional<std::string> cache_ = cache_of_environment();
};

TEST_F(KeptHintsTest, StandBesideTheData) {
  const std::string home = folder_.folder("data");
  EXPECT_EQ(found_at(home), 0);
  learn(home);
  EXPECT_TRUE(fs::exists(beside(home)));
  EXPECT_EQ(files_in("data"), 1U) << "nothing temporary is left";
  EXPECT_EQ(files_in("cache"), 0U);
  EXPECT_EQ(found_at(home), 10);
  EXPECT_EQ(found_at(home + "/"), 10);
}

TEST_F(KeptHintsTest, StandInTheCacheFolderWhereTheHomeCannotBeWrittenTo) {
  const std::string home = folder_.file("no folder");
  learn(home);
  EXPECT_EQ(files_in("cache/cutwater"), 1U);
  EXPECT_TRUE(fs::exists(cached_path(beside(home), ".hints")));
  EXPECT_EQ(found_at(home), 10);
  EXPECT_EQ(found_at(folder_.file("another")), 0) << "of that home only";
}

TEST_F(KeptHintsTest, StandWhereTheUserSays) {
  const std::string home = folder_.folder("data"), path = folder_.path("mine");
  learn(home, path);
  EXPECT_EQ(files_in("data"), 0U);
  EXPECT_EQ(found_at(home), 0);
  EXPECT_EQ(found_at(home, path), 10);
  EXPECT_EQ(found_at("", path), 10);
}

TEST_F(KeptHintsTest, DamagedFilesAreReplaced) {
  const std::string home = folder_.folder("data");
  folder_.file("data/" + fs::path(beside(home)).filename().string(), "no hints");
  EXPECT_EQ(found_at(home), 0);
  learn(home);
  EXPECT_EQ(found_at(home), 10);
}

TEST_F(KeptHintsTest, NothingIsWrittenWhereNothingIsNew) {
  const std::string home = folder_.folder("data");
  HintBook book(100, kPlenty);
  KeptHints kept(book, std::string(kOf), home, "");
  kept.save();
  EXPECT_EQ(files_in("data"), 0U);
  fill(book, 100, 50);
  kept.save();
  EXPECT_EQ(files_in("data"), 1U);
  fs::remove(beside(home));
  kept.save();
  EXPECT_EQ(files_in("data"), 0U);
}

TEST_F(KeptHintsTest, PlacesThatCannotBeWrittenToDoNoHarm) {
  const std::string file = folder_.file("file");
  for (const std::string& path : {file + "/hints", folder_.path("missing/hints")})
    EXPECT_THAT([&] { learn("", path); },
                testing::ThrowsMessage<Error>(testing::HasSubstr("cannot write '" + path + "'")));
  EXPECT_NO_THROW(learn("", folder_.folder("f")));
  EXPECT_EQ(found_at("", folder_.path("f")), 0);
  ::setenv("XDG_CACHE_HOME", file.c_str(), 1);
  EXPECT_NO_THROW(learn(folder_.path("missing")));
  EXPECT_EQ(found_at(folder_.path("missing")), 0);
}

}  // namespace
}  // namespace cutwater
