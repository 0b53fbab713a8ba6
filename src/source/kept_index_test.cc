// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <fstream>
#include <utility>

#include "core/sha256.h"
#include "cutwater/source.h"
#include "source/test_tar.h"

namespace cutwater {
namespace {

namespace fs = std::filesystem;

// An archive whose label is damaged after it was indexed, size and time kept: whoever reads label 7
// has used the kept index, whoever reads 8 has read the archive.
class KeptIndexTest : public TarTest {
 protected:
  KeptIndexTest() {
    shard_ = folder_.file("s.tar", archive("7"));
    const auto time = fs::last_write_time(shard_);
    open_tar({shard_});
    index_ = kept();
    folder_.file("s.tar", archive("8"));
    fs::last_write_time(shard_, time);
  }
  static std::string archive(const std::string& label) {
    return member("a.jpg", "image") + member("a.cls", label) + member("b.jpg", "other") +
           member("b.cls", label) + kEnd;
  }
  // The label seen when the index file has these bytes.
  std::int64_t label_with(const std::string& index) {
    folder_.file("s.tar.cwindex", index);
    return open_tar({shard_})->label(0);
  }
  // With the digest that the bytes ought to have.
  static std::string resealed(const std::string& index) {
    const std::string body = index.substr(0, index.size() - 64);
    return body + sha256_hex(body);
  }
  std::string with_number(std::size_t at, std::uint64_t value) const {
    std::string changed = index_;
    for (std::size_t i = 0; i < 8; ++i) changed[at + i] = static_cast<char>(value >> 8 * i & 0xff);
    return resealed(changed);
  }

  std::string shard_;
  std::string index_;
};

TEST_F(KeptIndexTest, IsUsedAndHasTheDocumentedLayout) {
  EXPECT_EQ(label_with(index_), 7);
  ASSERT_EQ(index_.size(), 48u + 2 * 32 + 10 + 64);
  EXPECT_EQ(index_.substr(0, 16), std::string("CWTARIDX\1\0\0\0\1\0\0\0", 16));
  EXPECT_EQ(index_.substr(32, 24),
            std::string("\2\0\0\0\0\0\0\0\12\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0", 24));
  EXPECT_EQ(index_.substr(48 + 64, 10), "a.jpgb.jpg");
  EXPECT_EQ(index_, resealed(index_));
}

TEST_F(KeptIndexTest, IsRebuiltWhenStale) {
  folder_.file("s.tar", archive("8"));
  fs::last_write_time(shard_, fs::last_write_time(shard_) + std::chrono::nanoseconds(1000));
  EXPECT_EQ(label_with(index_), 8);
  EXPECT_NE(kept(), index_);
}

TEST_F(KeptIndexTest, IsRebuiltWhenDamaged) {
  for (std::size_t size = 0; size < index_.size(); size += 7) {
    EXPECT_EQ(label_with(index_.substr(0, size)), 8) << size;
  }
  for (std::size_t at = 0; at < index_.size(); ++at) {
    std::string damaged = index_;
    damaged[at] ^= 1;
    ASSERT_EQ(label_with(damaged), 8) << at;
  }
  EXPECT_EQ(label_with(index_ + "x"), 8);
  EXPECT_EQ(label_with(std::string(100000, 'x')), 8);
}

TEST_F(KeptIndexTest, IsRebuiltWhenItsNumbersAreImpossible) {
  const std::uint64_t shard_size = fs::file_size(shard_);
  const std::vector<std::pair<std::size_t, std::vector<std::uint64_t>>> impossible = {
      {8, {0, 2, 0x300000001}},                                    // version; also flags
      {12, {0, 2, 3}},                                             // flags, lower shard size
      {16, {0, shard_size + 1}},                                   // shard size
      {32, {0, 1, 3, ~std::uint64_t{0}, std::uint64_t{1} << 59}},  // samples
      {40, {0, 9, 11, ~std::uint64_t{0}}},                         // bytes of names
      {48, {0, 1, 513, shard_size, shard_size + 512, ~std::uint64_t{511}}},  // offset
      {56, {shard_size, ~std::uint64_t{0}, 2000}},  // size: beyond, or into the next
      {72, {0, 10, 11, ~std::uint64_t{0}}},         // end of the first name
      {104, {5, 9, 11}},                            // end of the last name
  };
  EXPECT_EQ(label_with(with_number(64, 9)), 9);  // so a resealed index is believed otherwise
  for (const auto& [at, values] : impossible) {
    for (const std::uint64_t value : values) {
      EXPECT_EQ(label_with(with_number(at, value)), 8) << at << ": " << value;
    }
  }
}

TEST_F(KeptIndexTest, WhateverStandsInItsPlaceIsNoObstacle) {
  fs::remove(shard_ + ".cwindex");
  ASSERT_EQ(::mkfifo((shard_ + ".cwindex").c_str(), 0600), 0);
  EXPECT_EQ(open_tar({shard_})->label(0), 8);
  fs::remove(shard_ + ".cwindex");
  fs::create_directories(shard_ + ".cwindex/full");
  EXPECT_EQ(open_tar({shard_})->label(0), 8);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_THAT(entry.path().filename(), testing::AnyOf("s.tar", "s.tar.cwindex", "cache"));
  }
}

// Where the folder of the shard takes no index, the cache folder does.
TEST_F(KeptIndexTest, FallsBackToTheCacheFolder) {
  fs::remove(shard_ + ".cwindex");
  fs::create_directories(shard_ + ".cwindex/in the way");
  EXPECT_EQ(open_tar({shard_})->label(0), 8);
  const std::string cached = folder_.path("cache/cutwater/" + sha256_hex(shard_) + ".cwindex");
  EXPECT_TRUE(fs::exists(cached));
  std::ofstream(cached, std::ios::binary) << index_;
  EXPECT_EQ(open_tar({shard_})->label(0), 7);
  ::setenv(kCache, "/proc/no such folder", 1);
  EXPECT_EQ(open_tar({shard_})->label(0), 8);  // kept nowhere, and no error
}

}  // namespace
}  // namespace cutwater
