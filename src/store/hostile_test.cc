// SPDX-License-Identifier: Apache-2.0
// Stores that lie, with seals and checksums as they should be: each lie is a named error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>

#include "store/disk.h"
#include "store/index.h"
#include "store/layout.h"
#include "store/test_store.h"

namespace cutwater {
namespace {

using test::content_of;
using test::set_content;

// A store of two tensors in one shard, about to be written.
struct Forged {
  StoreMeta meta;
  std::vector<StoredRow> rows;
  std::string shard, index_after;  // bytes behind the last row
  std::function<std::string(std::string)> text = [](std::string t) { return t; };

  Forged() {
    StorePlan& plan = meta.plan;
    plan.pipeline = "pixels(height=2, width=3)";
    plan.cut_name = "pixels";
    plan.fingerprint = test::chain(plan.pipeline).fingerprint();
    plan.cut = 1;
    plan.samples = 2;
    plan.samples_per_shard = 2;
    plan.fields = {"image", "label"};
    plan.label_field = plan.has_labels = true;
    plan.classes = {"cat", "dog"};
    const std::string payload(18, 'x');
    for (std::uint32_t k = 0; k < 2; ++k) {
      StoredTensor tensor{1024 + 1024 * k, 18, checksum(payload), {DType::kU8, {2, 3, 3}}};
      rows.push_back({0, true, k, {tensor}});
    }
    shard = std::string(1024, '\0') + payload;
    shard.resize(2048);
    shard += payload;
    shard.resize(4096);
    meta.shards = {{shard.size(), checksum_of(shard)}};
  }

  static std::uint64_t checksum(const std::string& bytes) {
    return checksum_of_payload({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  }

  void write(const std::string& folder) {
    std::string index = index_header(meta.plan);
    for (const StoredRow& row : rows) append_row(index, row);
    index += index_after;
    if (meta.index.checksum.empty()) meta.index = {index.size(), checksum_of(index)};
    set_content(folder + "/index.npy", index);
    set_content(folder + "/shard-000000.tar", shard);
    set_content(folder + "/meta.json", text(to_text(meta)));
  }
};

// As FORMAT.md has it.
std::string sealed(const std::string& body) {
  return body + ",\n  \"checksum\": \"" + checksum_of(body) + "\"\n}\n";
}

std::function<std::string(std::string)> replacing(const std::string& from, const std::string& to) {
  return [=](std::string text) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return sealed(text.substr(0, text.rfind(",\n  \"checksum\"")));
  };
}

TEST(HostileStore, TheHonestOneIsRead) {
  const TestFolder folder;
  Forged forged;
  forged.write(folder.path());
  const auto store = open_store(folder.path());
  for (SampleId id = 0; id < 2; ++id)
    EXPECT_THAT(test::from_store(*store, id), testing::HasSubstr("xxxxxxxxxxxxxxxxxx"));
}

struct Lie {
  const char* name;
  std::function<void(Forged&)> tell;
  const char* answer;
};

StoredTensor& tensor(Forged& forged, std::size_t id = 1) { return forged.rows[id].tensors[0]; }

TEST(HostileStore, EveryLieIsNamed) {
  const Lie lies[] = {
      {"payload behind the shard", [](Forged& f) { tensor(f).offset = 4090; }, "beyond the shard"},
      {"offset that overflows", [](Forged& f) { tensor(f).offset = ~std::uint64_t{0} - 3; },
       "beyond the shard"},
      {"payload in another sample's", [](Forged& f) { tensor(f).offset = 1030; },
       "in another sample"},
      {"payload at the same place", [](Forged& f) { tensor(f).offset = 1024; },
       "in another sample"},
      {"first payload without a header", [](Forged& f) { tensor(f, 0).offset = 0; },
       "in another sample"},
      {"size of another shape", [](Forged& f) { tensor(f).size = 17; }, "which is not uint8 2x3x3"},
      {"shape of another size", [](Forged& f) { tensor(f).spec.shape[1] = 4; },
       "which is not uint8 2x4x3"},
      {"shape that overflows",
       [](Forged& f) {
         tensor(f).spec.shape = {INT64_MAX, INT64_MAX, INT64_MAX};
       },
       "which cannot be"},
      {"shape that is huge",
       [](Forged& f) {
         tensor(f).spec.shape = {1 << 30, 1 << 30};
       },
       "which cannot be"},
      {"negative dimension", [](Forged& f) { tensor(f).spec.shape[0] = -2; }, "which cannot be"},
      {"dtype that there is not", [](Forged& f) { tensor(f).spec.dtype = static_cast<DType>(7); },
       "a dtype, layout or rank"},
      {"layout that there is not",
       [](Forged& f) { tensor(f).spec.layout = static_cast<Layout>(5); },
       "a dtype, layout or rank"},
      {"pixels of two dimensions",
       [](Forged& f) {
         tensor(f).spec = {DType::kU8, {6, 3}, Layout::kPixels};
       },
       "which cannot be"},
      {"pixels without any",
       [](Forged& f) {
         tensor(f) = {
             tensor(f).offset, 0, Forged::checksum(""), {DType::kU8, {0, 0, 3}, Layout::kPixels}};
       },
       "uint8 0x0x3 pixels in 0 bytes, which cannot be"},
      {"one huge side",
       [](Forged& f) {
         tensor(f) = {tensor(f).offset,
                      0,
                      Forged::checksum(""),
                      {DType::kU8, {0, std::int64_t{1} << 40, 3}, Layout::kPixels}};
       },
       "which cannot be"},
      {"planes without channels",
       [](Forged& f) {
         tensor(f) = {tensor(f).offset,
                      0,
                      Forged::checksum(""),
                      {DType::kF32, {0, 300, 300}, Layout::kPlanesLast}};
       },
       "which cannot be"},
      {"packed without a length",
       [](Forged& f) {
         tensor(f).spec = {DType::kU8, {}, Layout::kPacked};
       },
       "which cannot be"},
      {"compressed to nothing",
       [](Forged& f) {
         f.meta.plan.codec = codec_named("lz4");
         tensor(f).size = 0;
       },
       "has 0 bytes"},
      {"compressed from too much",
       [](Forged& f) {
         f.meta.plan.codec = codec_named("lz4");
         tensor(f).spec.shape = {INT64_MAX / 2};
       },
       "which cannot be"},
      {"another shard", [](Forged& f) { f.rows[1].shard = 7; }, "in shard 7, not in 0"},
      {"label that there is not", [](Forged& f) { f.rows[1].label = 2; }, "has the label 2"},
      {"bad sample with a place",
       [](Forged& f) {
         f.meta.bad = {{Code::kBadSample, "why", 1, "path", "op"}};
       },
       "both bad and stored"},
      {"neither bad nor stored", [](Forged& f) { f.rows[1].stored = false; },
       "both bad and stored"},
      {"rows that are missing", [](Forged& f) { f.rows.pop_back(); }, "not those of 2 samples"},
      {"rows too many", [](Forged& f) { f.index_after = "more"; }, "not those of 2 samples"},
      {"index of another size",
       [](Forged& f) {
         f.meta.index = {17, std::string(32, '0')};
       },
       "and 17 when the store was written"},
      {"index of another content",
       [](Forged& f) {
         f.meta.index = {index_header(f.meta.plan).size() + 2 * 92, std::string(32, '0')};
       },
       "its checksum is not that of the store"},
      {"shard that is cut short", [](Forged& f) { f.shard.resize(2049); },
       "and 4096 when the store was written"},
      {"shard outside", [](Forged& f) { f.text = replacing("shard-000000.tar", "../shard-0.tar"); },
       "is called '../shard-0.tar' where only"},
      {"shard anywhere", [](Forged& f) { f.text = replacing("shard-000000.tar", "/etc/passwd"); },
       "is called '/etc/passwd' where only"},
      {"index outside", [](Forged& f) { f.text = replacing("index.npy", "../index.npy"); },
       "is called '../index.npy'"},
      {"shards without end",
       [](Forged& f) {
         f.text = replacing("\"samples\": 2,", "\"samples\": 9000000000000000000,");
       },
       "shards where there are"},
      {"samples without end",
       [](Forged& f) {
         f.text = replacing("\"samples\": 2,\n  \"samples_per_shard\": 2",
                            "\"samples\": 9000000000000000000,\n  \"samples_per_shard\": "
                            "9000000000000000000");
       },
       "it does not begin as the index of this store"},
      {"no samples", [](Forged& f) { f.text = replacing("\"samples\": 2,", "\"samples\": 0,"); },
       "it says 0 samples"},
      {"part of a sample",
       [](Forged& f) { f.text = replacing("\"samples\": 2,", "\"samples\": 2.5,"); },
       "a number in it is 2.5"},
      {"less than nothing",
       [](Forged& f) { f.text = replacing("\"samples\": 2,", "\"samples\": -2,"); },
       "a number in it is -2"},
      {"number beyond numbers",
       [](Forged& f) { f.text = replacing("\"cut\": 1,", "\"cut\": 99999999999999999999,"); },
       "a number in it is"},
      {"field that is a path",
       [](Forged& f) {
         f.meta.plan.fields = {"../x", "label"};
       },
       "the names of its fields"},
      {"field twice",
       [](Forged& f) {
         f.meta.plan.fields = {"image", "image", "label"};
       },
       "the names of its fields"},
      {"no field", [](Forged& f) { f.meta.plan.fields = {"label"}; }, "the names of its fields"},
      {"label without labels", [](Forged& f) { f.meta.plan.has_labels = false; },
       "have a label, and that they have none"},
      {"codec that there is not", [](Forged& f) { f.text = replacing("\"none\"", "\"zip\""); },
       "codec 'zip' is not known"},
      {"another format",
       [](Forged& f) { f.text = replacing("cutwater store", "cutwater profile"); },
       "its format is 'cutwater profile'"},
      {"another version", [](Forged& f) { f.text = replacing("\"version\": 1", "\"version\": 2"); },
       "this program reads version 1"},
      {"words for numbers",
       [](Forged& f) { f.text = replacing("\"samples\": 2,", "\"samples\": \"two\","); },
       "a number in it is \"two\""},
      {"a member that is missing", [](Forged& f) { f.text = replacing("\"codec\"", "\"kodek\""); },
       "'codec' not found"},
      {"bad sample that there is not",
       [](Forged& f) {
         f.meta.bad = {{Code::kBadSample, "why", 2, "path", "op"}};
       },
       "listed as bad where it does not belong"},
      {"no JSON", [](Forged& f) { f.text = [](const std::string&) { return sealed("{]"); }; },
       "not what a store has there"},
      {"text that was cut",
       [](Forged& f) { f.text = [](std::string t) { return t.substr(0, 90); }; }, "it is damaged"},
      {"no text", [](Forged& f) { f.text = [](const std::string&) { return std::string(); }; },
       "it is cut short"},
  };
  for (const Lie& lie : lies) {
    const TestFolder folder;
    Forged forged;
    lie.tell(forged);
    forged.write(folder.path());
    EXPECT_THAT(failure_of([&] { open_store(folder.path()); }),
                FailsWith(Code::kInvalidArgument, lie.answer))
        << lie.name;
    EXPECT_FALSE(verify_store(folder.path()).empty()) << lie.name;
  }
}

TEST(HostileStore, LinksAreNotFollowed) {
  for (const char* name : {"meta.json", "index.npy", "shard-000000.tar"}) {
    const TestFolder folder;
    Forged().write(folder.path());
    std::filesystem::rename(folder.path(name), folder.path("elsewhere"));
    folder.link(name, "elsewhere");
    EXPECT_THAT(failure_of([&] { open_store(folder.path()); }),
                FailsWith(Code::kInvalidArgument, "is a link"))
        << name;
  }
}

TEST(HostileStore, WhatIsNotAFileIsNotWaitedFor) {
  for (const char* name : {"meta.json", "index.npy", "shard-000000.tar"}) {
    const TestFolder folder;
    Forged().write(folder.path());
    std::filesystem::remove(folder.path(name));
    ASSERT_EQ(::mkfifo(folder.path(name).c_str(), 0600), 0);
    EXPECT_THAT(failure_of([&] { open_store(folder.path()); }),
                FailsWith(Code::kInvalidArgument, "is a named pipe"))
        << name;
  }
}

// What no index can tell: frames that are not those of the tensor.
TEST(HostileStore, FramesThatStandForSomethingElse) {
  for (const char* codec : {"lz4", "zstd:3", "delta-zstd:1"}) {
    const TestFolder folder;
    Forged forged;
    forged.meta.plan.codec = codec_named(codec);
    const std::string other(19, 'x');
    std::vector<std::uint8_t> frame;
    encode(forged.meta.plan.codec, {DType::kU8, {19}},
           {reinterpret_cast<const std::uint8_t*>(other.data()), 19}, frame);
    for (std::size_t id = 0; id < 2; ++id) {
      std::copy(frame.begin(), frame.end(),
                forged.shard.begin() + static_cast<std::ptrdiff_t>(tensor(forged, id).offset));
      tensor(forged, id).size = frame.size();
      tensor(forged, id).checksum = checksum_of_payload(frame);
    }
    forged.write(folder.path());
    EXPECT_THAT(test::from_store(*open_store(folder.path()), 1),
                testing::HasSubstr("the compressed bytes are damaged"));
  }
}

// Memory is taken on the word of a frame, not of the index.
TEST(HostileStore, FramesThatAreSaidToStandForMuchMore) {
  constexpr std::int64_t kMuch = std::int64_t{1} << 30;
  for (const char* codec : {"lz4", "zstd:3", "shuffle-zstd:1"}) {
    const TestFolder folder;
    Forged forged;
    forged.meta.plan.codec = codec_named(codec);
    const std::vector<std::uint8_t> few(18);
    std::vector<std::uint8_t> frame;
    encode(forged.meta.plan.codec, {DType::kU8, {18}}, few, frame);
    std::copy(frame.begin(), frame.end(),
              forged.shard.begin() + static_cast<std::ptrdiff_t>(tensor(forged).offset));
    tensor(forged) = {
        tensor(forged).offset, frame.size(), checksum_of_payload(frame), {DType::kU8, {kMuch}}};
    forged.write(folder.path());
    std::size_t most = 0;
    const auto pool = BufferPool::create(0);
    const ReadContext into(*pool, [&](std::size_t bytes) { most = std::max(most, bytes); });
    EXPECT_THAT(test::seen(open_store(folder.path())->read(1, into)),
                testing::HasSubstr("they stand for 18 bytes, not for 1073741824"));
    EXPECT_LT(most, std::size_t{1} << 10);
  }
}

}  // namespace
}  // namespace cutwater
