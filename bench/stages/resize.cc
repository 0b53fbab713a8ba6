// SPDX-License-Identifier: Apache-2.0
// How fast an image is resized and normalized, beside what bounds it: for resizing, the rate at
// which this processor multiplies bytes by weights when nothing else is in the way; for
// normalizing, filling the same memory. All of it takes turns in one run; medians are printed.
// usage: bench_resize [LEVEL ...]   (names of SIMD levels, such as AVX2; without any: the best)
#include <hwy/targets.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string_view>
#include <vector>

#include "ops/image/filter_axis.h"
#include "ops/image/resample.h"
#include "ops/image/resize_kernels.h"
#include "ops/image/row_adapters.h"

namespace cutwater::image {
namespace {

constexpr std::int64_t kOut = 224, kChannels = 3, kImages = 200, kBatch = 64, kTurns = 9;
constexpr std::int64_t kFloats = kOut * kOut * kChannels;

// The distribution of torchvision's RandomResizedCrop over images of 500 x 375 or 375 x 500.
std::vector<Region> random_crops() {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> area(0.08, 1), log_ratio(std::log(0.75), -std::log(0.75));
  std::vector<Region> crops;
  while (crops.size() < kImages) {
    const bool tall = random() % 4 == 0;
    const std::int64_t height = tall ? 500 : 375, width = tall ? 375 : 500;
    const double pixels = 500 * 375 * area(random), ratio = std::exp(log_ratio(random));
    const auto w = std::lround(std::sqrt(pixels * ratio)),
               h = std::lround(std::sqrt(pixels / ratio));
    if (w <= width && h <= height) crops.push_back({0, 0, h, w});
  }
  return crops;
}

// Rows that lie ready.
class ReadyRows final : public RowReader {
 public:
  explicit ReadyRows(const std::vector<std::uint8_t>& plane) : plane_(plane.data()) {}
  PlanarRow next() override {
    const std::uint8_t* const row = plane_ + at_;
    at_ += 576;
    return {{row, row + 192 * 576, row + 384 * 576}};
  }

 private:
  const std::uint8_t* plane_;
  std::int64_t at_ = 0;
};

class NoWriter final : public RowWriter {
 public:
  void put(const PlanarRow&) override {}
};

Resizing resizing_of(const Region& crop, bool mirrored) {
  return {crop, kOut, kOut, {Interpolation::kBilinear, 13}, {0, 0, kOut, kOut}, mirrored};
}

double multiplications(const Region& crop) {
  const auto taps = [](std::int64_t in) {  // that are not 0, of all outputs
    const FilterAxis axis(Interpolation::kBilinear, in, kOut, 0, kOut);
    const AxisView& view = axis.view();
    return static_cast<double>(std::count_if(view.weights, view.weights + view.taps * view.outputs,
                                             [](std::int32_t weight) { return weight != 0; }));
  };
  return static_cast<double>(kChannels) *
         (taps(crop.width) * static_cast<double>(crop.height) + taps(crop.height) * kOut);
}

// Of this thread's processor time: others may use the machine.
double seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double start = now();
  work();
  return now() - start;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

void measure() {
  const std::vector<Region> crops = random_crops();
  double products = 0, pixels = 0;
  for (const Region& crop : crops) {
    products += multiplications(crop);
    pixels += static_cast<double>(crop.height * crop.width);
  }
  std::vector<std::uint8_t> source(static_cast<std::size_t>(1024 * 576));
  std::mt19937 random(2);
  for (std::uint8_t& byte : source) byte = static_cast<std::uint8_t>(random());
  std::vector<float> batch(static_cast<std::size_t>(kBatch * kFloats));

  // A filter of many taps over a few rows: nearly nothing but multiplications.
  constexpr std::int64_t kTaps = 256, kCount = 512, kRepeats = 200;
  std::vector<std::int32_t> weights(kTaps, (1 << kWeightBits) / kTaps);
  const std::int32_t first = 0;
  const AxisView long_axis{&first, weights.data(), kTaps, 1, kTaps};
  const Scratch long_table(row_table_bytes(long_axis)), long_row(kCount + kRowSlack);
  make_row_table(long_axis, long_table.data());
  std::vector<const std::uint8_t*> long_rows;
  for (std::int64_t t = 0; t < kTaps; ++t) long_rows.push_back(source.data() + t % 8 * 576);

  std::vector<double> multiply, tables, resize, normalize, fill, both;
  const PixelValues values{ChannelValues(0.485F, 0.229F), ChannelValues(0.456F, 0.224F),
                           ChannelValues(0.406F, 0.225F)};
  const auto slot = [&](std::int64_t i) { return batch.data() + i % kBatch * kFloats; };
  for (std::int64_t turn = 0; turn < kTurns; ++turn) {
    multiply.push_back(seconds([&] {
                         for (std::int64_t i = 0; i < kRepeats; ++i)
                           filter_rows(long_table.data(), kTaps, 0, long_rows.data(), kCount,
                                       long_row.data());
                       }) /
                       (kTaps * kCount * kRepeats));
    tables.push_back(seconds([&] {
      for (const Region& crop : crops) {
        const FilterAxis columns(Interpolation::kBilinear, crop.width, kOut, 0, kOut);
        const FilterAxis rows(Interpolation::kBilinear, crop.height, kOut, 0, kOut);
        const Scratch column_table(column_table_bytes(columns.view()));
        const Scratch row_table(row_table_bytes(rows.view()));
        make_column_table(columns.view(), false, column_table.data());
        make_row_table(rows.view(), row_table.data());
      }
    }));
    resize.push_back(seconds([&] {
      for (std::size_t i = 0; i < crops.size(); ++i) {
        ReadyRows reader(source);
        NoWriter writer;
        resample_rows(resizing_of(crops[i], i % 2 == 0), kChannels, reader, writer);
      }
    }));
    normalize.push_back(seconds([&] {
      for (std::int64_t i = 0; i < kImages; ++i) {
        FloatPlanesWriter writer(values, kChannels, kOut, kOut, slot(i));
        ReadyRows reader(source);
        for (std::int64_t y = 0; y < kOut; ++y) writer.put(reader.next());
      }
    }));
    fill.push_back(seconds([&] {
      for (std::int64_t i = 0; i < kImages; ++i)
        std::memset(slot(i), static_cast<int>(i & 1), kFloats * sizeof(float));
    }));
    both.push_back(seconds([&] {
      for (std::size_t i = 0; i < crops.size(); ++i) {
        ReadyRows reader(source);
        FloatPlanesWriter writer(values, kChannels, kOut, kOut, slot(static_cast<std::int64_t>(i)));
        resample_rows(resizing_of(crops[i], i % 2 == 0), kChannels, reader, writer);
      }
    }));
  }

  const auto us_per_image = [](const std::vector<double>& turns) {
    return median(turns) * 1e6 / static_cast<double>(kImages);
  };
  const double bound = products * median(multiply) * 1e6 / static_cast<double>(kImages);
  std::printf("%s: %lld crops of %.1f kilopixels to %lld x %lld\n",
              hwy::TargetName(hwy::SupportedTargets() & -hwy::SupportedTargets()),
              static_cast<long long>(kImages), pixels / 1e3 / static_cast<double>(kImages),
              static_cast<long long>(kOut), static_cast<long long>(kOut));
  std::printf("  resize     %6.1f us, %3.0f %% of the multiply rate (%.1f us)\n",
              us_per_image(resize), 100 * bound / us_per_image(resize), bound);
  std::printf("  of that    %6.1f us for tables\n", us_per_image(tables));
  std::printf("  normalize  %6.1f us, %3.0f %% of memset (%.1f us)\n", us_per_image(normalize),
              100 * us_per_image(fill) / us_per_image(normalize), us_per_image(fill));
  std::printf("  together   %6.1f us\n", us_per_image(both));
}

}  // namespace
}  // namespace cutwater::image

int main(int argc, char** argv) {
  if (argc == 1) cutwater::image::measure();
  const std::int64_t all = hwy::SupportedTargets();
  for (int i = 1; i < argc; ++i) {
    std::int64_t level = 0;
    for (std::int64_t left = all; left != 0; left &= left - 1)
      if (std::string_view(argv[i]) == hwy::TargetName(left & -left)) level = left & -left;
    if (level == 0) {
      std::fprintf(stderr, "this processor has no SIMD level %s\n", argv[i]);
      return 1;
    }
    hwy::SetSupportedTargetsForTest(all & -level);  // and what is below it
    cutwater::image::measure();
  }
}
