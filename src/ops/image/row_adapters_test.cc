// SPDX-License-Identifier: Apache-2.0
#include "ops/image/row_adapters.h"

#include <gtest/gtest.h>

#include <vector>

namespace cutwater::image {
namespace {

using Data = std::vector<std::uint8_t>;

TensorSpec image_of(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return {DType::kU8, {height, width, channels}, Layout::kPixels};
}

Data counted(std::size_t size) {
  Data data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::uint8_t>(i * 7);
  return data;
}

void copy_rows(std::int64_t height, RowReader& in, RowWriter& out) {
  for (std::int64_t y = 0; y < height; ++y) out.put(in.next());
}

TEST(PixelRows, CarryAPartOfAnImageIntoAPartOfAnother) {
  for (const std::int64_t channels : {1, 3}) {
    const TensorSpec spec = image_of(5, 9, channels);
    const Data in = counted(spec.bytes());
    const Region part{2, 3, 3, 6};  // down to the last byte
    PixelReader reader(TensorView(spec, in.data()), part);
    Data out(static_cast<std::size_t>(part.height * part.width * channels));
    PixelWriter writer(TensorSpan(spec, out.data(), part, part.width * channels));
    copy_rows(part.height, reader, writer);
    std::size_t i = 0;
    for (std::int64_t y = 2; y < 5; ++y)
      for (std::int64_t x = 3 * channels; x < 9 * channels; ++x)
        ASSERT_EQ(out[i++], in[static_cast<std::size_t>(y * 9 * channels + x)]);
  }
}

TEST(FloatRows, AreWrittenChannelsFirstOrLast) {
  for (const std::int64_t channels : {1, 3}) {
    const TensorSpec spec = image_of(4, 21, channels);
    const Data in = counted(spec.bytes());
    const PixelValues values{ChannelValues(0.5F, 0.25F), ChannelValues(0.25F, 0.5F),
                             ChannelValues(0, 2)};
    const TensorView view(spec, in.data());
    std::vector<float> first(in.size()), last(in.size());
    PixelReader one(view, whole(spec)), other(view, whole(spec));
    FloatPlanesWriter planes(values, channels, 4, 21, first.data());
    FloatPixelsWriter pixels(values, channels, 21, last.data());
    copy_rows(4, one, planes);
    copy_rows(4, other, pixels);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::size_t c = i % static_cast<std::size_t>(channels),
                        pixel = i / static_cast<std::size_t>(channels);
      const float unit = static_cast<float>(in[i]) / 255.0F;
      const float expected = (unit - values[c].mean()) / values[c].std();
      ASSERT_EQ(last[i], expected) << i;
      ASSERT_EQ(first[c * 84 + pixel], expected) << i;
    }
  }
}

}  // namespace
}  // namespace cutwater::image
