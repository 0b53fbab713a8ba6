// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include "cutwater/source.h"
#include "source/test_tar.h"

namespace cutwater {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

constexpr Code kBad = Code::kInvalidArgument;

TEST_F(TarTest, MembersOfOneKeyAreASample) {
  const auto source =
      open(member("a.jpg", "image a") + member("a.cls", " 12\n") + member("a.json", "{}") +
           member("dir.x/b.cls", "-3") + member("dir.x/b.seg.png", "mask") +
           member("dir.x/b.PNG", "image b") + kEnd);
  ASSERT_EQ(source->size(), 2);
  EXPECT_THAT(paths_of(*source),
              ElementsAre(folder_.path("s.tar/a.jpg"), folder_.path("s.tar/dir.x/b.PNG")));
  EXPECT_THAT(labels_of(*source), ElementsAre(12, -3));
  EXPECT_EQ(image_of(*source, 0), "image a");
  EXPECT_EQ(image_of(*source, 1), "image b");
  EXPECT_TRUE(source->classes().empty());
}

TEST_F(TarTest, TheStampTellsThatAShardHasChangedSince) {
  const auto source = open(member("a.jpg", "image a") + kEnd);
  const std::string before = source->stamp();
  EXPECT_EQ(source->stamp(), before);
  const std::string path = folder_.path("s.tar");
  const auto time = fs::last_write_time(path);
  fs::last_write_time(path, time + std::chrono::seconds(1));
  EXPECT_NE(source->stamp(), before);
  EXPECT_NE(source->stamp(), open_tar({path})->stamp()) << "what it lists is of the old one";
  fs::last_write_time(path, time);
  EXPECT_EQ(source->stamp(), before);
  fs::remove(path);
  EXPECT_NE(source->stamp(), before);
}

TEST_F(TarTest, RandomArchivesInAllStyles) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    std::string bytes;
    std::vector<std::pair<std::string, std::string>> expected;
    std::vector<std::int64_t> labels;
    const auto style = [&] { return static_cast<Style>(random() % 3); };
    for (int i = 0; i < 20; ++i) {
      const std::string key = std::string(random() % 130, 'd') + "/" + std::to_string(i);
      std::string data(1 + random() % 1500, '\0');
      for (char& c : data) c = static_cast<char>(random());
      const std::string name = key + (random() % 2 == 0 ? ".jpg" : ".Jpeg");
      const std::int64_t label = static_cast<std::int64_t>(random() % 1000);
      std::vector<std::string> parts = {member(name, data, style()),
                                        member(key + ".cls", std::to_string(label), style()),
                                        member(key + ".txt", "text", style())};
      std::shuffle(parts.begin(), parts.end(), random);
      for (const std::string& part : parts) bytes += part;
      expected.emplace_back(name, data);
      labels.push_back(label);
    }
    const std::string name = std::to_string(seed) + ".tar";
    const auto built = open(bytes + kEnd, name);
    const auto loaded = open_tar({folder_.path(name)});
    for (const auto& source : {built, loaded}) {
      ASSERT_EQ(source->size(), std::ssize(expected));
      EXPECT_EQ(labels_of(*source), labels);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto id = static_cast<SampleId>(i);
        ASSERT_EQ(source->path(id), folder_.path(name) + "/" + expected[i].first);
        ASSERT_EQ(image_of(*source, id), expected[i].second);
      }
    }
  }
}

TEST_F(TarTest, WhatIsNotARegularFileIsPassedOver) {
  std::string bytes;
  for (const char type : {'1', '2', '3', '4', '5', '6'}) {
    TarHeader header;
    header.name = "x.jpg";
    header.type = type;
    header.size = octal(4096, 11);  // of what a link points to; no data follows
    bytes += header.block();
  }
  bytes +=
      member(".hidden.jpg", "no") + member("README", "no") + member("../../etc/p.jpg", "image");
  const auto source = open(bytes + kEnd);
  EXPECT_THAT(paths_of(*source), ElementsAre(folder_.path("s.tar/../../etc/p.jpg")));
  EXPECT_EQ(image_of(*source, 0), "image");
  EXPECT_FALSE(source->has_labels());
}

TEST_F(TarTest, SamplesThatAreNotAsTheyMustBe) {
  const std::string jpg = member("k/a.jpg", "x");
  EXPECT_THAT(refusal(jpg + member("k/a.png", "x") + kEnd),
              FailsWith(kBad, "sample 'k/a' has two images, .jpg and .png"));
  EXPECT_THAT(
      refusal(jpg + member("k/b.cls", "1") + member("k/b.txt", "x") + kEnd),
      FailsWith(kBad, "sample 'k/b' has no image, only .cls, .txt; an image is .jpg, .jpeg"));
  EXPECT_THAT(refusal(jpg + member("k/b.jpg", "x") + member("k/b.cls", "1") + kEnd),
              FailsWith(kBad, "sample 'k/b' has a .cls member but samples before it have none"));
  EXPECT_THAT(refusal(jpg + member("k/a.cls", "1") + member("k/b.jpg", "x") + kEnd),
              FailsWith(kBad, "sample 'k/b' has no .cls member but samples before it have one"));
  EXPECT_THAT(refusal(jpg + member("k/a.cls", "cat") + kEnd),
              FailsWith(kBad, "sample 'k/a' has a .cls member with 'cat'"));
  EXPECT_THAT(refusal(jpg + member("k/a.cls", "") + kEnd), FailsWith(kBad, "member with ''"));
  EXPECT_THAT(refusal(jpg + member("k/a.cls", std::string(65, ' ')) + kEnd),
              FailsWith(kBad, "has a .cls member of 65 bytes"));
  EXPECT_THAT(refusal(jpg + member("k/a.cls", "1") + member("k/a.cls", "1") + kEnd),
              FailsWith(kBad, "has two .cls members"));
  EXPECT_THAT(refusal(kEnd), FailsWith(Code::kNotFound, "has no sample"));
}

TEST_F(TarTest, EmptyImageFailsWhenRead) {
  const auto source = open(member("a.jpg", "") + member("b.jpg", "x") + kEnd);
  const auto pool = BufferPool::create(1 << 20);
  Result<Sample> sample = source->read(0, *pool);
  ASSERT_FALSE(sample.ok());
  EXPECT_EQ(sample.failure().message(),
            "sample 0 (" + folder_.path("s.tar/a.jpg") + "), read: is empty (0 bytes)");
  EXPECT_EQ(sample.failure().code, Code::kBadSample);
}

TEST_F(TarTest, DamagedArchivesAreNamed) {
  const std::string good = member("a.jpg", std::string(700, 'x'));
  const auto sized = [](const std::string& field, char type = '0') {
    TarHeader header;
    header.name = "a.jpg";
    header.type = type;
    header.size = field;
    return header.block();
  };
  EXPECT_THAT(refusal(""), FailsWith(kBad, "the end mark of a tar archive is missing"));
  EXPECT_THAT(refusal("hello"), FailsWith(kBad, "the archive ends within a header"));
  EXPECT_THAT(refusal(std::string(600, 'x')), FailsWith(kBad, "this is not a tar archive"));
  EXPECT_THAT(refusal(good), FailsWith(kBad, "at byte 1536: the end mark"));
  EXPECT_THAT(
      refusal(good.substr(0, 1000)),
      FailsWith(kBad, "at byte 0: a member of 700 bytes runs past the end of the archive (1000"));
  EXPECT_THAT(refusal(good.substr(0, 1300)), FailsWith(kBad, "runs past the end"));
  EXPECT_THAT(refusal(good + good.substr(0, 100)),
              FailsWith(kBad, "at byte 1536: the archive ends within"));
  std::string flipped = good + good + kEnd;
  flipped[1536 + 3] ^= 1;
  EXPECT_THAT(refusal(flipped),
              FailsWith(kBad, "at byte 1536: the checksum is wrong; the archive is damaged"));
  EXPECT_THAT(refusal(sized(octal(std::uint64_t{1} << 32, 11)) + kEnd),
              FailsWith(kBad, "runs past the end"));
  EXPECT_THAT(refusal(sized(base256((std::uint64_t{1} << 61) + 512)) + kEnd),
              FailsWith(kBad, "runs past the end"));
  EXPECT_THAT(refusal(sized(base256(~std::uint64_t{0})) + kEnd),
              FailsWith(kBad, "impossible number"));
  EXPECT_THAT(refusal(sized(std::string(12, '\xff')) + kEnd),
              FailsWith(kBad, "the size is negative"));
  EXPECT_THAT(refusal(sized("-0000000001") + kEnd), FailsWith(kBad, "the size is negative"));
  EXPECT_THAT(refusal(sized("12x") + kEnd), FailsWith(kBad, "the size field is not a number"));
  EXPECT_THAT(refusal(sized(octal(512, 11), 'S') + kEnd), FailsWith(kBad, "sparse members"));
}

TEST_F(TarTest, DamagedExtensionsAreNamed) {
  const auto pax = [&](const std::string& records) {
    return refusal(extension('x', records) + member("a.jpg", "x") + kEnd);
  };
  const std::string huge((1 << 20) + 1, 'n');
  EXPECT_THAT(refusal(extension('L', huge) + member("a.jpg", "x") + kEnd),
              FailsWith(kBad, "a long name or extended header of 1048577 bytes"));
  EXPECT_THAT(pax(huge), FailsWith(kBad, "a long name or extended header of 1048577 bytes"));
  for (const char* bad : {"x", "9 a=b\n", "99999999999999999999 a=b\n", "-6 a=b\n", "7 a=b\nx",
                          "6 a=bx", "6-a=b\n", "1 a=b\n", "2 a=b\n", "0 a=b\n", "6"}) {
    EXPECT_THAT(pax(bad), FailsWith(kBad, "a pax record is malformed")) << bad;
  }
  EXPECT_THAT(pax("6 abc\n"), FailsWith(kBad, "a pax record has no '='"));
  EXPECT_THAT(pax(pax_record("size", "-5")), FailsWith(kBad, "the pax size is negative"));
  EXPECT_THAT(pax(pax_record("size", "5e3")),
              FailsWith(kBad, "the pax size '5e3' is not a number"));
  EXPECT_THAT(pax(pax_record("size", "9223372036854775807")), FailsWith(kBad, "runs past the end"));
  EXPECT_THAT(pax(pax_record("GNU.sparse.major", "1")), FailsWith(kBad, "sparse members"));
}

// Whatever is done to an archive, the answer is samples within it or an Error.
TEST_F(TarTest, RandomDamageNeverCrashes) {
  std::string good;
  for (int i = 0; i < 6; ++i) {
    const std::string key = std::string(i % 2 == 0 ? 3 : 120, 'k') + "/" + std::to_string(i);
    good += member(key + ".jpg", std::string(600, 'x'), static_cast<Style>(i % 3)) +
            member(key + ".cls", "1", static_cast<Style>(i % 3));
  }
  good += kEnd;
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    std::mt19937_64 random(seed);
    std::string bytes = good;
    const std::size_t block = random() % (bytes.size() / 512) * 512;
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
      bytes[block + random() % 512] = static_cast<char>(random());
    }
    // Half of the time the header's checksum is put right, so that the damage gets further.
    if (random() % 2 == 0) {
      std::uint64_t sum = 8 * ' ';
      for (std::size_t i = 0; i < 512; ++i) {
        if (i < 148 || i >= 156) sum += static_cast<std::uint8_t>(bytes[block + i]);
      }
      bytes.replace(block + 148, 7, octal(sum, 6) + '\0');
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    try {
      const auto source = open(bytes);
      for (SampleId id = 0; id < source->size(); ++id) {
        const auto pool = BufferPool::create(1 << 20);
        (void)source->read(id, *pool).ok();
      }
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
  EXPECT_LT(refused, 1400);
}

TEST_F(TarTest, CompressedShardsAreToldWhatToDo) {
  EXPECT_THAT(
      refusal("\x1f\x8b\x08 and so on"),
      FailsWith(kBad, "is compressed with gzip, and samples are read in place; decompress"));
  EXPECT_THAT(refusal("\x28\xb5\x2f\xfd..."), FailsWith(kBad, "is compressed with zstd"));
  EXPECT_THAT(failure_of([&] { open_source(folder_.file("x.tar.gz", "\x1f\x8b\x08")); }),
              FailsWith(kBad, "decompress it first (gzip -d)"));
}

// The data of this archive is a hole of 1 GiB; what the process reads in bytes is counted by the
// kernel.
TEST_F(TarTest, IndexingSkipsTheData) {
  const auto bytes_read = [] {
    std::ifstream counters("/proc/self/io");
    std::string name;
    std::int64_t value = -1;
    counters >> name >> value;  // the first line: "rchar: N"
    return value;
  };
  if (bytes_read() < 0) GTEST_SKIP() << "no /proc/self/io";
  TarHeader header;
  header.name = "a.jpg";
  header.size = octal(std::uint64_t{1} << 30, 11);
  const std::string shard = folder_.file("s.tar", header.block());
  ASSERT_EQ(::truncate(shard.c_str(), 512 + (std::int64_t{1} << 30) + 1024), 0);
  const std::int64_t before = bytes_read();
  EXPECT_EQ(open_tar({shard})->size(), 1);
  EXPECT_LT(bytes_read() - before, 1 << 16);
}

// ---- Several shards. ----

TEST_F(TarTest, IdsRunThroughShardsInTheOrderGiven) {
  const std::string one =
      folder_.file("1.tar", member("a.jpg", "1a") + member("b.jpg", "1b") + kEnd);
  const std::string empty = folder_.file("0.tar", kEnd);
  const std::string two = folder_.file("2.tar", member("a.jpg", "2a") + kEnd);
  const auto source = open_tar({two, empty, one});
  EXPECT_THAT(paths_of(*source), ElementsAre(two + "/a.jpg", one + "/a.jpg", one + "/b.jpg"));
  EXPECT_EQ(image_of(*source, 0), "2a");
  EXPECT_EQ(image_of(*source, 2), "1b");
}

TEST_F(TarTest, LabelsInSomeShardsOnlyAreAnError) {
  const std::string with =
      folder_.file("1.tar", member("a.jpg", "x") + member("a.cls", "1") + kEnd);
  const std::string without = folder_.file("2.tar", member("a.jpg", "x") + kEnd);
  EXPECT_THAT(failure_of([&] {
                open_tar({with, without});
              }),
              FailsWith(kBad, without + ": has no .cls members but the shards before do"));
  EXPECT_THAT(failure_of([&] {
                open_tar({without, with});
              }),
              FailsWith(kBad, with + ": has .cls members but the shards before have none"));
  EXPECT_THAT(failure_of([&] { open_tar({}); }), FailsWith(kBad, "it is empty"));
  EXPECT_THAT(failure_of([&] { open_tar({folder_.path("gone.tar")}); }),
              FailsWith(Code::kNotFound, "gone.tar: cannot open"));
}

TEST_F(TarTest, ManyShardsShareFewDescriptors) {
  std::vector<std::string> shards;
  for (int i = 0; i < 300; ++i) {
    const std::string number = std::to_string(i);
    shards.push_back(folder_.file(number + ".tar", member(number + ".jpg", number) + kEnd));
  }
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{290, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto source = open_tar(shards);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&source, t] {
      for (SampleId i = 0; i < 600; ++i) {
        const SampleId id = (i * 7 + t * 50) % source->size();
        EXPECT_EQ(image_of(*source, id), std::to_string(id));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);

  // One that is not open is noticed to be another when it is opened again.
  const auto fresh = open_tar(shards);
  folder_.file("299.tar", member("299.jpg", std::string(2000, 'x')) + kEnd);
  const auto pool = BufferPool::create(1 << 20);
  Result<Sample> sample = fresh->read(299, *pool);
  ASSERT_FALSE(sample.ok());
  EXPECT_THAT(sample.failure(), FailsWith(Code::kBadSample, "the shard was changed while in use"));
}

TEST_F(TarTest, OpenSourceTakesPatterns) {
  for (const char* name : {"s-08", "s-09", "s-10", "s-11", "other"}) {
    folder_.file(std::string(name) + ".tar", member("a.jpg", name) + kEnd);
  }
  const auto images = [&](const std::string& pattern) {
    const auto source = open_source(folder_.path(pattern));
    std::vector<std::string> found;
    for (SampleId id = 0; id < source->size(); ++id) found.push_back(image_of(*source, id));
    return found;
  };
  EXPECT_THAT(images("other.tar"), ElementsAre("other"));
  EXPECT_THAT(images("s-*.tar"), ElementsAre("s-08", "s-09", "s-10", "s-11"));
  EXPECT_THAT(images("s-{08..10}.tar"), ElementsAre("s-08", "s-09", "s-10"));
  EXPECT_THAT(images("s-{0..1}*.tar"), ElementsAre("s-08", "s-09", "s-10", "s-11"));
  EXPECT_THAT(images("s-{1..1}{0..1}.tar"), ElementsAre("s-10", "s-11"));
}

TEST_F(TarTest, BracesAreNumbers) {
  folder_.file("s-9.tar", member("a.jpg", "9") + kEnd);
  folder_.file("s-10.tar", member("a.jpg", "10") + kEnd);
  EXPECT_EQ(image_of(*open_source(folder_.path("s-{9..10}.tar")), 1), "10");
  for (const char* bad :
       {"s-{9..}.tar", "s-{..9}.tar", "s-{9,10}.tar", "s-{10..9}.tar", "s-{9..10.tar",
        "s-{a..b}.tar", "s-{0..999999999}.tar", "{0..999}{0..999}.tar"}) {
    EXPECT_THAT(failure_of([&] { open_source(bad); }),
                FailsWith(kBad, "braces hold a range of whole numbers"))
        << bad;
  }
  EXPECT_THAT(failure_of([&] { open_source(folder_.path("s-{9..11}.tar")); }),
              FailsWith(Code::kNotFound, "s-11.tar: cannot open"));
  EXPECT_THAT(failure_of([&] { open_source(folder_.path("none-*.tar")); }),
              FailsWith(Code::kNotFound, "none-*.tar': no file matches"));
}

TEST_F(TarTest, IdentityFollowsNamesLabelsAndShards) {
  const std::string bytes = member("a.jpg", "x") + member("a.cls", "1") + kEnd;
  const std::string identity = open(bytes)->identity();
  EXPECT_EQ(open_tar({folder_.path("s.tar")})->identity(), identity);
  const fs::path moved = folder_.folder("elsewhere") + "/s.tar";
  fs::rename(folder_.path("s.tar"), moved);
  EXPECT_EQ(open_tar({moved})->identity(), identity);
  fs::last_write_time(moved, fs::last_write_time(moved) + std::chrono::seconds(5));
  EXPECT_EQ(open_tar({moved})->identity(), identity) << "a copy is the same data";
  EXPECT_NE(open(member("a.jpg", "x") + member("a.cls", "2") + kEnd)->identity(), identity);
  EXPECT_NE(open(member("a.jpg", std::string(600, 'x')) + member("a.cls", "1") + kEnd)->identity(),
            identity);
}

}  // namespace
}  // namespace cutwater
