// SPDX-License-Identifier: Apache-2.0
// How fast a JPEG is decoded, stage by stage, beside what bounds it: entropy decoding beside the
// chain of shift, load and shift that no decoder of one symbol per look-up gets below;
// reconstruction beside reading and writing the same bytes. All of it takes turns in one run;
// medians are printed. usage: bench_jpeg FOLDER   (of JPEGs; the first 200 are used)
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "ops/image/coefficients.h"
#include "ops/image/jpeg_baseline.h"

namespace cutwater::image {
namespace {

constexpr std::size_t kMostFiles = 200;
constexpr int kTurns = 7;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Picture {
  std::vector<std::uint8_t> file, form, hint;
  JpegGeometry geometry;
  Region crop;
  std::int64_t symbols = 0, blocks = 0;
};

// What torchvision's RandomResizedCrop draws.
Region random_crop(const JpegGeometry& geometry, std::mt19937& random) {
  std::uniform_real_distribution<double> area(0.08, 1), log_ratio(std::log(0.75), -std::log(0.75));
  for (int i = 0; i < 10; ++i) {
    const double pixels = static_cast<double>(geometry.width * geometry.height) * area(random);
    const double ratio = std::exp(log_ratio(random));
    const std::int64_t w = std::lround(std::sqrt(pixels * ratio));
    const std::int64_t h = std::lround(std::sqrt(pixels / ratio));
    if (w < 1 || h < 1 || w > geometry.width || h > geometry.height) continue;
    const auto place = [&](std::int64_t room) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(room + 1));
    };
    return {place(geometry.height - h), place(geometry.width - w), h, w};
  }
  return {0, 0, geometry.height, geometry.width};
}

// Symbols of the entropy code: one per block for DC, one per coefficient, per run of 16 zeros, and
// for the end of a block that is not full.
void count_symbols(const BaselineScan& scan, const ScanBits& bits, Picture& picture) {
  BlockStrip strip;
  ScanReader reader(scan, bits);
  const McuWindow window{0, 0, scan.geometry.mcus_across(), scan.geometry.mcus_down()};
  for (std::int64_t row = 0; row < window.bottom; ++row) {
    strip.prepare(scan.geometry, window);
    reader.keep_into(strip);
    if (!reader.keep(window.right)) return;
    for (std::size_t c = 0; c < scan.geometry.components(); ++c)
      for (std::int64_t y = 0; y < scan.geometry.sampling[c].v; ++y)
        for (std::int64_t x = 0; x < scan.geometry.blocks_across(c); ++x) {
          const std::int16_t* block = strip.row(c, y) + block_place(x);
          int zeros = 0;
          ++picture.symbols;
          ++picture.blocks;
          for (std::size_t k = 1; k < 64; ++k) {
            if (block[group_place(kNaturalOrder[k])] == 0) {
              ++zeros;
              continue;
            }
            picture.symbols += 1 + zeros / 16;
            zeros = 0;
          }
          picture.symbols += zeros > 0 ? 1 : 0;
        }
  }
}

std::vector<Picture> load(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  std::mt19937 random(1);
  std::vector<Picture> pictures;
  JpegPlanes planes;
  for (const std::string& path : paths) {
    if (pictures.size() == kMostFiles) break;
    std::ifstream stream(path, std::ios::binary);
    Picture picture;
    picture.file.assign(std::istreambuf_iterator<char>(stream), {});
    BaselineScan scan;
    ScanBits bits;
    if (!read_baseline_scan(picture.file, scan) || !bits.read(scan)) continue;
    picture.geometry = scan.geometry;
    picture.crop = random_crop(scan.geometry, random);
    count_symbols(scan, bits, picture);
    Hint hint;
    const Region all{0, 0, scan.geometry.height, scan.geometry.width};
    if (!decode_baseline(picture.file, all, &hint, planes) ||
        !baseline_coefficients(picture.file, 1, picture.form))
      continue;
    picture.hint = hint.learned;
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

volatile std::uint64_t g_sink;  // so that nothing is left out

// Additions that wait for each other: one cycle each.
double seconds_per_cycle() {
  constexpr std::uint64_t kCount = 1 << 26;
  const double start = cpu_seconds();
  std::uint64_t value = g_sink;
  const auto one = [&] {
    ++value;
    asm volatile("" : "+r"(value));  // so that additions are not put together
  };
  for (std::uint64_t i = 0; i < kCount; i += 8)
    one(), one(), one(), one(), one(), one(), one(), one();
  g_sink = value;
  return (cpu_seconds() - start) / static_cast<double>(kCount);
}

// The serial part of a look-up: index from the top bits, load, shift by what was loaded.
double seconds_per_look_up() {
  std::array<std::uint64_t, 1024> lengths{};
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = 3 + i % 5;
  constexpr std::uint64_t kCount = 1 << 24;
  const double start = cpu_seconds();
  std::uint64_t bits = 0x9E3779B97F4A7C15;
  for (std::uint64_t i = 0; i < kCount; ++i) bits = bits << lengths[bits >> 54] | (i & 255);
  g_sink = bits;
  return (cpu_seconds() - start) / static_cast<double>(kCount);
}

struct Stage {
  const char* name;
  std::function<void(const Picture&)> work;
  std::vector<double> seconds;  // per picture, one for each turn

  double median() {
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }
};

int run(const std::string& folder) {
  const std::vector<Picture> pictures = load(folder);
  if (pictures.empty()) {
    std::fprintf(stderr, "bench_jpeg: no baseline JPEG in %s\n", folder.c_str());
    return 2;
  }
  std::int64_t symbols = 0, blocks = 0, crop_pixels = 0;
  std::size_t file_bytes = 0, form_bytes = 0, hint_bytes = 0;
  for (const Picture& picture : pictures) {
    symbols += picture.symbols;
    blocks += picture.blocks;
    crop_pixels += picture.crop.height * picture.crop.width;
    file_bytes += picture.file.size();
    form_bytes += picture.form.size();
    hint_bytes += picture.hint.size();
  }
  const auto count = static_cast<double>(pictures.size());

  BaselineScan scan;
  ScanBits bits;
  JpegPlanes planes;
  BlockStrip strip;
  const auto read_rows = [&](const Picture& picture) {
    PlaneRows rows(planes, picture.crop);
    std::uint64_t sum = 0;
    for (std::int64_t y = 0; y < picture.crop.height; ++y) sum += rows.next().plane[0][0];
    g_sink = sum;
  };
  std::array<Stage, 7> stages = {{
      {"headers and tables",
       [&](const Picture& p) { g_sink = read_baseline_scan(p.file, scan) ? 1 : 0; },
       {}},
      {"… and data without stuffing",
       [&](const Picture& p) { g_sink = read_baseline_scan(p.file, scan) && bits.read(scan); },
       {}},
      {"… and all blocks stepped over",
       [&](const Picture& p) {
         g_sink = read_baseline_scan(p.file, scan) && bits.read(scan);
         ScanReader reader(scan, bits);
         g_sink = reader.skip(p.geometry.mcus_across() * p.geometry.mcus_down()) ? 1 : 0;
       },
       {}},
      {"… and all coefficients kept",
       [&](const Picture& p) {
         g_sink = read_baseline_scan(p.file, scan) && bits.read(scan);
         ScanReader reader(scan, bits);
         const McuWindow window{0, 0, p.geometry.mcus_across(), p.geometry.mcus_down()};
         strip.prepare(p.geometry, window);
         for (std::int64_t row = 0; row < window.bottom; ++row) {
           reader.keep_into(strip);
           g_sink = reader.keep(window.right) ? 1 : 0;
         }
       },
       {}},
      {"a crop, from the file",
       [&](const Picture& p) {
         g_sink = decode_baseline(p.file, p.crop, nullptr, planes) ? 1 : 0;
         read_rows(p);
       },
       {}},
      {"a crop, with the index",
       [&](const Picture& p) {
         Hint hint;
         hint.known = p.hint;
         g_sink = decode_baseline(p.file, p.crop, &hint, planes) ? 1 : 0;
         read_rows(p);
       },
       {}},
      {"a crop, from coefficients",
       [&](const Picture& p) {
         CoefficientForm(p.form).reconstruct(p.crop, planes);
         read_rows(p);
       },
       {}},
  }};
  std::vector<double> cycles, look_ups;
  for (int turn = 0; turn <= kTurns; ++turn) {
    cycles.push_back(seconds_per_cycle());
    look_ups.push_back(seconds_per_look_up());
    for (Stage& stage : stages) {
      const double start = cpu_seconds();
      for (const Picture& picture : pictures) stage.work(picture);
      if (turn > 0) stage.seconds.push_back((cpu_seconds() - start) / count);
    }
  }
  std::sort(cycles.begin(), cycles.end());
  std::sort(look_ups.begin(), look_ups.end());
  const double cycle = cycles[cycles.size() / 2], look_up = look_ups[look_ups.size() / 2];

  std::printf(
      "%.0f files, %.1f KB each, %.0f blocks, %.0f symbols; crop %.1f kilopixels; "
      "coefficients %.2fx, index %.0f bytes\n",
      count, static_cast<double>(file_bytes) / count * 1e-3, static_cast<double>(blocks) / count,
      static_cast<double>(symbols) / count, static_cast<double>(crop_pixels) / count * 1e-3,
      static_cast<double>(form_bytes) / static_cast<double>(file_bytes),
      static_cast<double>(hint_bytes) / count);
  for (Stage& stage : stages) std::printf("  %-32s %8.1f us\n", stage.name, 1e6 * stage.median());
  const double per_symbol = static_cast<double>(symbols) / count;
  const double chain = look_up / cycle;
  for (const std::size_t k : {std::size_t{2}, std::size_t{3}}) {
    const double spent = (stages[k].median() - stages[1].median()) / cycle / per_symbol;
    std::printf(
        "  %s: %.1f cycles per symbol; one symbol per look-up could not take less than %.1f "
        "(%.0f %%)\n",
        k == 2 ? "stepping over" : "keeping", spent, chain, 100 * chain / spent);
  }
  const double crop_blocks = static_cast<double>(crop_pixels) / count / 64;
  std::printf(
      "  reconstruction: %.0f cycles per 8 x 8 pixels of the crop, all components, color "
      "and expansion included\n",
      stages[6].median() / cycle / crop_blocks);
  return 0;
}

}  // namespace
}  // namespace cutwater::image

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bench_jpeg FOLDER\n");
    return 2;
  }
  return cutwater::image::run(argv[1]);
}
