// SPDX-License-Identifier: Apache-2.0
#include "ops/image/jpeg_baseline.h"

#include <algorithm>

#include "core/xxh3.h"
#include "ops/image/coefficients.h"
#include "ops/image/entropy_index.h"
#include "ops/image/jpeg_copy.h"

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
      if (!read_on(row, 0, mcus_across_, &ScanReader::skip)) return false;
    return true;
  }

  // Fills the strip with the window's part of a row. Rows come in order.
  bool read_row(std::int64_t row, BlockStrip& strip) {
    reader_.keep_into(strip);
    return read_row(row, &ScanReader::keep);
  }
  // Appends the symbols of the window's part of a row.
  bool copy_row(std::int64_t row, JpegSymbols& symbols) {
    reader_.copy_into(symbols);
    return read_row(row, &ScanReader::copy);
  }

 private:
  using Reading = bool (ScanReader::*)(std::int64_t mcus);

  bool read_row(std::int64_t row, Reading how) {
    std::int64_t mcu = 0;
    if (row < known_rows_) {
      mcu = EntropyIndex::mcu_before(window_.left);
      reader_.go_to(index_->before(row, window_.left));
    }
    if (!read_on(row, mcu, window_.left, &ScanReader::skip) ||
        !read_on(row, window_.left, window_.right, how))
      return false;
    // What lies right of the window matters to unknown rows below, and to those who record.
    const bool last = row + 1 == window_.bottom;
    if (row + 1 < known_rows_ || (last && (index_ == nullptr || row < known_rows_))) return true;
    return read_on(row, window_.right, mcus_across_, &ScanReader::skip);
  }

  bool read_on(std::int64_t row, std::int64_t from, std::int64_t to, Reading how) {
    const bool recording = index_ != nullptr && row >= known_rows_;
    while (from < to) {
      std::int64_t end = to;
      if (recording) {
        if (from % EntropyIndex::kStride == 0) index_->add(reader_.here());
        end = std::min(to, EntropyIndex::mcu_before(from) + EntropyIndex::kStride);
      }
      if (!(reader_.*how)(end - from)) return false;
      from = end;
    }
    return true;
  }

  ScanReader reader_;
  const McuWindow window_;
  EntropyIndex* index_;
  const std::int64_t known_rows_, mcus_across_;
};

// A file's index: what the hint knows of it, and what is learned while it is read.
class LearningIndex {
 public:
  LearningIndex(Bytes file, const Workspace& work, Hint* hint)
      : hint_(work.scan.restart_interval == 0 ? hint : nullptr), index_(work.scan.geometry) {
    if (hint_ == nullptr) return;
    content_ = xxh3(file);
    if (!hint_->known.empty()) index_.decode(hint_->known, content_, work.bits.segments.back());
    known_rows_ = index_.rows();
  }
  // Null: nobody would keep what it learns.
  EntropyIndex* kept() { return hint_ != nullptr ? &index_ : nullptr; }
  EntropyIndex& own() { return index_; }
  // After a sound reading.
  void keep() {
    if (hint_ != nullptr && index_.rows() > known_rows_) hint_->learned = index_.encode(content_);
  }

 private:
  Hint* hint_;
  EntropyIndex index_;
  std::uint64_t content_ = 0;
  std::int64_t known_rows_ = 0;
};

// Reads the headers and the bits of a scan.
bool begin(Bytes file, Workspace& work) {
  return read_baseline_scan(file, work.scan) && work.bits.read(work.scan);
}

// Reconstructs what the planes were prepared for. The scan's first MCU is that one of their image.
bool reconstruct(Workspace& work, std::int64_t left, std::int64_t top, EntropyIndex* index,
                 JpegPlanes& planes) {
  const McuWindow window = planes.window().moved(-left, -top);
  work.strip.prepare(work.scan.geometry, window);
  WindowReader reader(work.scan, work.bits, window, index);
  bool sound = reader.begin();
  for (std::int64_t row = window.top; sound && row < window.bottom; ++row) {
    sound = reader.read_row(row, work.strip);
    if (sound) planes.reconstruct(row + top, work.strip, work.scan.quantizers, After::kClear);
  }
  work.give_up_large();
  if (!sound) planes.give_up_large();
  return sound;
}

}  // namespace

bool decode_baseline(Bytes file, const Region& region, Hint* hint, JpegPlanes& planes) {
  Workspace& work = workspace();
  if (region.height == 0 || region.width == 0 || !begin(file, work)) return false;
  LearningIndex index(file, work, hint);
  planes.prepare(work.scan.geometry, region);
  const bool sound = reconstruct(work, 0, 0, index.kept(), planes);
  if (sound) index.keep();
  return sound;
}

bool decode_baseline_part(Bytes file, const JpegPlace& place, const Region& region,
                          JpegPlanes& planes) {
  Workspace& work = workspace();
  if (region.height == 0 || region.width == 0 || !begin(file, work)) return false;
  JpegGeometry image = work.scan.geometry;
  image.width = place.width;
  image.height = place.height;
  const McuWindow there = work.scan.geometry.all_mcus().moved(place.left, place.top);
  if (!there.contains(image.window(region))) return false;
  planes.prepare(image, region);
  return reconstruct(work, place.left, place.top, nullptr, planes);
}

bool copy_baseline_part(Bytes file, const Region& region, Hint* hint, std::size_t limit,
                        JpegWindow& window, std::vector<std::uint8_t>& out) {
  Workspace& work = workspace();
  if (region.height == 0 || region.width == 0 || !read_baseline_scan(file, work.scan) ||
      work.scan.restart_interval > 0 || !work.bits.read(work.scan))
    return false;
  LearningIndex index(file, work, hint);
  const JpegGeometry& image = work.scan.geometry;
  window = {image, image.window(region)};
  const McuWindow& mcus = window.mcus;
  bool sound = true;
  if (index.own().rows() < mcus.bottom) {
    const McuWindow below{0, mcus.bottom, image.mcus_across(), mcus.bottom};
    sound = WindowReader(work.scan, work.bits, below, &index.own()).begin();
    if (sound) index.keep();
  }
  const bool written = sound && ScanCopy(work.scan, work.bits, index.own(), mcus).write(limit, out);
  work.give_up_large();
  return written;
}

bool read_baseline_part(Bytes file, const Region& region, Hint* hint, JpegPart& part) {
  Workspace& work = workspace();
  if (region.height == 0 || region.width == 0 || !begin(file, work)) return false;
  LearningIndex index(file, work, hint);
  part.image = work.scan.geometry;
  part.quantizers = work.scan.quantizers;
  part.mcus = work.scan.geometry.window(region);
  part.symbols.clear();
  WindowReader reader(work.scan, work.bits, part.mcus, index.kept());
  bool sound = reader.begin();
  for (std::int64_t row = part.mcus.top; sound && row < part.mcus.bottom; ++row)
    sound = reader.copy_row(row, part.symbols);
  for (std::size_t c = 0; c < part.image.components(); ++c)
    part.symbols.resolve(c, *work.scan.ac_tables[c]);
  work.give_up_large();
  if (sound) index.keep();
  return sound;
}

bool baseline_coefficients(Bytes file, int exif_orientation, std::vector<std::uint8_t>& form) {
  Workspace& work = workspace();
  const bool sound =
      begin(file, work) && write_coefficients(work.scan, work.bits, exif_orientation, form);
  work.give_up_large();
  return sound;
}

}  // namespace cutwater::image
