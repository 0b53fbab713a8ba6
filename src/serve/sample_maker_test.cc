// SPDX-License-Identifier: Apache-2.0
#include "serve/sample_maker.h"

#include <gtest/gtest.h>

#include "serve/test_server.h"

namespace cutwater::serve {
namespace {

constexpr int kPhotos = 12;

class SampleMakerTest : public testing::Test {
 protected:
  // Whose samples are always sent in this way.
  std::shared_ptr<Stream> stream(const Way& way) const {
    const Pipeline pipeline =
        Pipeline::parse("decode() | random_resized_crop(24) | to_tensor()", all_ops());
    auto stream = std::make_shared<Stream>(Stream{source_, pipeline, 3, nullptr, true});
    stream->book = std::make_shared<WayBook>(pipeline, std::vector<Way>{{}, way});
    return stream;
  }
  std::vector<std::uint8_t> sent(const std::shared_ptr<const Stream>& stream, SampleId id,
                                 std::uint32_t epoch) const {
    Result<Draft> draft = maker_.begin({0, id, epoch, 0, stream}, true);
    EXPECT_TRUE(draft);
    Answer answer = maker_.finish(draft.value());
    EXPECT_EQ(answer.way, 1u) << "of sample " << id;
    std::vector<std::uint8_t> bytes(answer.form.value().size());
    answer.form.value().copy_to(bytes);
    return bytes;
  }

  const TestFolder folder_;
  const std::shared_ptr<const Source> source_ = test::photo_folder(folder_, kPhotos);
  const SampleMaker maker_{{}};
};

TEST_F(SampleMakerTest, SendsTheSameWhateverItHasLearned) {
  for (const Way& way : {Way{0, {}, true}, Way{3, {}, false}}) {
    const auto forgets = stream(way), learns = stream(way);
    learns->hints = std::make_shared<HintBook>(kPhotos, std::size_t{1} << 20);
    for (std::uint32_t epoch = 0; epoch < 4; ++epoch)
      for (SampleId id = 0; id < kPhotos; ++id)
        EXPECT_EQ(sent(learns, id, epoch), sent(forgets, id, epoch))
            << "sample " << id << ", epoch " << epoch;
    EXPECT_EQ(learns->hints->entries(), kPhotos);
    EXPECT_GE(learns->hints->uses(), 3 * kPhotos) << "in every epoch but the first";
  }
}

TEST_F(SampleMakerTest, TrainersOfADataSetShareWhatIsLearned) {
  DataSets sets({{"data", source_}}, all_ops(), 1);
  const auto stream_of = [&](const char* text) {
    const Pipeline pipeline = Pipeline::parse(text, all_ops());
    wire::pb::Begin begin;
    begin.set_name("data");
    begin.set_identity(source_->identity());
    begin.set_pipeline(pipeline.to_string());
    begin.set_fingerprint(pipeline.fingerprint());
    begin.add_ways();
    begin.add_ways()->set_excerpt(true);
    begin.set_always(true);
    return sets.stream(begin);
  };
  const auto one = stream_of("decode() | random_resized_crop(24) | to_tensor()");
  const auto other = stream_of("decode() | random_crop(20) | to_tensor()");
  for (SampleId id = 0; id < kPhotos; ++id) (void)sent(one, id, 0);
  const std::int64_t before = one->hints->uses();
  for (SampleId id = 0; id < kPhotos; ++id) {
    auto alone = std::make_shared<Stream>(*other);
    alone->hints = nullptr;
    EXPECT_EQ(sent(other, id, 0), sent(alone, id, 0)) << "sample " << id;
  }
  EXPECT_EQ(other->hints->uses() - before, kPhotos);
}

}  // namespace
}  // namespace cutwater::serve
