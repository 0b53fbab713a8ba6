// SPDX-License-Identifier: Apache-2.0
#include "ops/image/jpeg_baseline.h"

#include <xxhash.h>

#include <algorithm>

#include "ops/image/coefficients.h"
#include "ops/image/entropy_index.h"

namespace cutwater::image {
namespace {

// A thread's working memory, kept between images.
struct Workspace {
  BaselineScan scan;
  ScanBits bits;
  BlockStrip strip;

  void give_up_large() {
    bits.give_up_large();
    strip.give_up_large();
  }
};
Workspace& workspace() {
  thread_local Workspace work;
  return work;
}

// Reads the MCUs of a window, row by row, jumping where the index knows how to and recording where
// it does not.
class WindowReader {
 public:
  WindowReader(const BaselineScan& scan, const ScanBits& bits, const McuWindow& window,
               EntropyIndex* index)
      : reader_(scan, bits),
        window_(window),
        index_(index),
        known_rows_(index != nullptr ? index->rows() : 0),
        mcus_across_(scan.geometry.mcus_across()) {}

  // Steps over the rows above the window.
  bool begin() {
    std::int64_t row = 0;
    if (known_rows_ > 0) {
      row = std::min(window_.top, known_rows_ - 1);
      reader_.go_to(index_->before(row, 0));
    }
    for (; row < window_.top; ++row)
      if (!read_on<false>(row, 0, mcus_across_)) return false;
    return true;
  }

  // Fills the strip with the window's part of a row. Rows come in order.
  bool read_row(std::int64_t row, BlockStrip& strip) {
    std::int64_t mcu = 0;
    if (row < known_rows_) {
      mcu = EntropyIndex::mcu_before(window_.left);
      reader_.go_to(index_->before(row, window_.left));
    }
    reader_.keep_into(strip);
    if (!read_on<false>(row, mcu, window_.left) || !read_on<true>(row, window_.left, window_.right))
      return false;
    // What lies right of the window matters to unknown rows below, and to those who record.
    const bool last = row + 1 == window_.bottom;
    if (row + 1 < known_rows_ || (last && (index_ == nullptr || row < known_rows_))) return true;
    return read_on<false>(row, window_.right, mcus_across_);
  }

 private:
  template <bool kKeep>
  bool read_on(std::int64_t row, std::int64_t from, std::int64_t to) {
    const bool recording = index_ != nullptr && row >= known_rows_;
    while (from < to) {
      std::int64_t end = to;
      if (recording) {
        if (from % EntropyIndex::kStride == 0) index_->add(reader_.here());
        end = std::min(to, EntropyIndex::mcu_before(from) + EntropyIndex::kStride);
      }
      if (kKeep ? !reader_.keep(end - from) : !reader_.skip(end - from)) return false;
      from = end;
    }
    return true;
  }

  ScanReader reader_;
  const McuWindow window_;
  EntropyIndex* index_;
  const std::int64_t known_rows_, mcus_across_;
};

}  // namespace

bool decode_baseline(Bytes file, const Region& region, Hint* hint, JpegPlanes& planes) {
  Workspace& work = workspace();
  if (region.height == 0 || region.width == 0 || !read_baseline_scan(file, work.scan) ||
      !work.bits.read(work.scan))
    return false;

  EntropyIndex index(work.scan.geometry);
  const bool indexed = hint != nullptr && work.scan.restart_interval == 0;
  const std::uint64_t content = indexed ? XXH3_64bits(file.data(), file.size()) : 0;
  if (indexed && !hint->known.empty())
    index.decode(hint->known, content, work.bits.segments.back());
  const std::int64_t known_rows = index.rows();

  planes.prepare(work.scan.geometry, region);
  work.strip.prepare(work.scan.geometry, planes.window());
  WindowReader reader(work.scan, work.bits, planes.window(), indexed ? &index : nullptr);
  bool sound = reader.begin();
  for (std::int64_t row = planes.window().top; sound && row < planes.window().bottom; ++row) {
    sound = reader.read_row(row, work.strip);
    if (sound) planes.reconstruct(row, work.strip, work.scan.quantizers, After::kClear);
  }
  work.give_up_large();
  if (!sound) planes.give_up_large();
  if (sound && index.rows() > known_rows) hint->learned = index.encode(content);
  return sound;
}

bool baseline_coefficients(Bytes file, int exif_orientation, std::vector<std::uint8_t>& form) {
  Workspace& work = workspace();
  const bool sound = read_baseline_scan(file, work.scan) && work.bits.read(work.scan) &&
                     write_coefficients(work.scan, work.bits, exif_orientation, form);
  work.give_up_large();
  return sound;
}

}  // namespace cutwater::image
