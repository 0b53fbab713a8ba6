// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <thread>

#include "core/sha256.h"
#include "cutwater/source.h"
#include "source/test_folder.h"

namespace cutwater {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

// ---- Writing archives. ----

enum class Style { kUstar, kGnu, kPax };

std::string octal(std::uint64_t value, std::size_t digits) {
  std::string text(digits, '0');
  for (; value > 0; value >>= 3) text[--digits] = static_cast<char>('0' + value % 8);
  return text;
}

struct Header {
  std::string name;
  std::string size = octal(0, 11);  // the field as it stands
  char type = '0';
  std::string magic = std::string("ustar\00000", 8);
  std::string prefix;

  std::string block() const {
    std::string bytes(512, '\0');
    const auto put = [&](std::size_t at, const std::string& text) {
      bytes.replace(at, text.size(), text);
    };
    put(0, name.substr(0, 100));
    put(100, "0000644");
    put(124, size);
    put(136, octal(0, 11));
    put(148, "        ");
    bytes[156] = type;
    put(257, magic);
    put(345, prefix);
    std::uint64_t sum = 0;
    for (const char c : bytes) sum += static_cast<std::uint8_t>(c);
    put(148, octal(sum, 6) + '\0');
    return bytes;
  }
};

std::string padded(std::string data) {
  data.resize((data.size() + 511) / 512 * 512);
  return data;
}

std::string base256(std::uint64_t value) {
  std::string field(12, '\0');
  field[0] = '\x80';
  for (std::size_t i = 11; i > 3; --i, value >>= 8) field[i] = static_cast<char>(value & 0xff);
  return field;
}

std::string pax_record(const std::string& key, const std::string& value) {
  const std::string body = " " + key + "=" + value + "\n";
  std::size_t length = body.size();
  while (std::to_string(length).size() + body.size() != length) {
    length = std::to_string(length).size() + body.size();
  }
  return std::to_string(length) + body;
}

std::string extension(char type, const std::string& data) {
  Header header;
  header.name = "extension";
  header.type = type;
  header.size = octal(data.size(), 11);
  return header.block() + padded(data);
}

std::string member(const std::string& name, const std::string& data, Style style = Style::kUstar) {
  Header header;
  header.name = name;
  header.size = octal(data.size(), 11);
  std::string before;
  if (style == Style::kUstar && name.size() > 100) {
    const std::size_t slash = name.rfind('/', 155);
    header.prefix = name.substr(0, slash);
    header.name = name.substr(slash + 1);
  } else if (style == Style::kGnu) {
    header.magic = std::string("ustar  \0", 8);
    header.prefix = "not a part of the name";
    header.size = base256(data.size());
    if (name.size() > 100) before = extension('L', name + '\0');
  } else if (style == Style::kPax) {
    header.name = "a name to ignore.txt";
    header.size = octal(1, 11);
    before = extension('g', pax_record("path", "ignored.jpg")) +
             extension('x', pax_record("mtime", "1.5") + pax_record("path", name) +
                                pax_record("size", std::to_string(data.size())));
  }
  return before + header.block() + padded(data);
}

const std::string kEnd(1024, '\0');

// ---- Asking. ----

class TarTest : public testing::Test {
 protected:
  TarTest() {
    if (const char* cache = std::getenv(kCache)) cache_before_ = cache;
    ::setenv(kCache, folder_.path("cache").c_str(), 1);
  }
  ~TarTest() override {
    if (cache_before_) {
      ::setenv(kCache, cache_before_->c_str(), 1);
    } else {
      ::unsetenv(kCache);
    }
  }

  std::shared_ptr<const Source> open(const std::string& bytes, const std::string& name = "s.tar") {
    return open_tar({folder_.file(name, bytes)});
  }
  // Always indexes anew: the index of another archive does not fit.
  Failure refusal(const std::string& bytes) {
    return failure_of([&] { open(bytes); });
  }
  std::string kept(const std::string& name = "s.tar") const {
    std::ifstream file(folder_.path(name + ".cwindex"), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static constexpr char kCache[] = "XDG_CACHE_HOME";
  TestFolder folder_;

 private:
  std::optional<std::string> cache_before_;
};

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
    Header header;
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
    Header header;
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
  EXPECT_NE(open_tar({moved})->identity(), identity);
}

// ---- The kept index. ----

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
