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

}  // namespace
}  // namespace cutwater::serve
