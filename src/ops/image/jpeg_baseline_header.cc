// SPDX-License-Identifier: Apache-2.0
// The headers of a baseline JPEG, read strictly: whatever is unusual in them makes the file
// libjpeg-turbo's, so nothing here has to know how libjpeg forgives.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "ops/image/codec_common.h"
#include "ops/image/jpeg_baseline.h"

namespace cutwater::image {
namespace {

constexpr std::uint8_t kSof0 = 0xC0, kSof1 = 0xC1, kDht = 0xC4, kSoi = 0xD8, kSos = 0xDA,
                       kDqt = 0xDB, kDri = 0xDD, kApp0 = 0xE0, kApp14 = 0xEE, kApp15 = 0xEF,
                       kCom = 0xFE;
constexpr std::size_t kTables = 4;

// Huffman tables are built where they are read, and kept between images: they take some 60 KB, too
// much for the thread's own memory, which every thread of the process has of its stack.
struct Tables {
  std::array<HuffmanCodes, kTables> dc;
  std::array<AcTable, kTables> ac;
};
Tables& tables() {
  thread_local const auto kept = std::make_unique<Tables>();
  return *kept;
}

class HeaderReader {
 public:
  HeaderReader(Bytes file, BaselineScan& scan) : file_(file), scan_(scan) {}

  bool read() {
    if (file_.size() < 4 || file_[0] != 0xFF || file_[1] != kSoi) return false;
    std::size_t at = 2;
    while (at + 4 <= file_.size()) {
      if (file_[at] != 0xFF) return false;
      const std::uint8_t marker = file_[at + 1];
      const std::size_t size = be16(file_, at + 2);
      if (size < 2 || size > file_.size() - at - 2) return false;
      const Bytes data = file_.subspan(at + 4, size - 2);
      at += 2 + size;
      if (marker == kSos) {
        scan_.data = file_.subspan(at);
        return read_scan(data);
      }
      if (!read_segment(marker, data)) return false;
    }
    return false;
  }

 private:
  struct Component {
    std::uint8_t id, sampling, quantizer;
  };

  bool read_segment(std::uint8_t marker, Bytes data) {
    switch (marker) {
      case kSof0:
      case kSof1: return read_frame(data);
      case kDqt: return read_quantizers(data);
      case kDht: return read_codes(data);
      case kDri:
        scan_.restart_interval = data.size() == 2 ? be16(data, 0) : 0;
        return data.size() == 2;
      case kApp0:
        jfif_ = jfif_ || (data.size() >= 14 && starts_with(data, std::string_view("JFIF\0", 5)));
        return true;
      case kApp14:
        if (data.size() >= 12 && starts_with(data, "Adobe")) adobe_transform_ = data[11];
        return true;
      default: return (marker > kApp0 && marker <= kApp15) || marker == kCom;
    }
  }

  bool read_frame(Bytes data) {
    if (count_ != 0 || data.size() < 6 || data[0] != 8) return false;
    scan_.geometry.height = be16(data, 1);
    scan_.geometry.width = be16(data, 3);
    count_ = data[5];
    if ((count_ != 1 && count_ != 3) || data.size() != 6 + 3 * count_) return false;
    for (std::size_t c = 0; c < count_; ++c) {
      components_[c] = {data[6 + 3 * c], data[7 + 3 * c], data[8 + 3 * c]};
      for (std::size_t other = 0; other < c; ++other)
        if (components_[other].id == components_[c].id) return false;
    }
    return true;
  }

  bool read_quantizers(Bytes data) {
    while (!data.empty()) {
      const bool wide = data[0] >> 4 == 1;
      const std::size_t number = data[0] & 15, size = wide ? 129 : 65;
      if (data[0] >> 4 > 1 || number >= kTables || data.size() < size) return false;
      Quantizer table;
      for (std::size_t k = 0; k < 64; ++k) {
        const unsigned value = wide ? be16(data, 1 + 2 * k) : data[1 + k];
        if (value > 32767) return false;
        table[kNaturalOrder[k]] = static_cast<std::int16_t>(value);
      }
      quantizers_[number] = table;
      data = data.subspan(size);
    }
    return true;
  }

  bool read_codes(Bytes data) {
    while (!data.empty()) {
      if (data.size() < 17) return false;
      const bool ac = data[0] >> 4 == 1;
      const std::size_t number = data[0] & 15;
      std::size_t count = 0;
      for (std::size_t i = 1; i <= 16; ++i) count += data[i];
      if (data[0] >> 4 > 1 || number >= kTables || count == 0 || count > 256 ||
          data.size() < 17 + count)
        return false;
      const std::span<const std::uint8_t, 16> counts(data.data() + 1, 16);
      const Bytes values = data.subspan(17, count);
      // libjpeg refuses DC codes of sizes that no picture has.
      if (!ac && *std::max_element(values.begin(), values.end()) > 15) return false;
      if (!(ac ? tables().ac[number].build(counts, values)
               : tables().dc[number].build(counts, values)))
        return false;
      (ac ? ac_built_ : dc_built_)[number] = true;
      data = data.subspan(17 + count);
    }
    return true;
  }

  bool read_scan(Bytes data) {
    if (count_ == 0 || data.size() != 4 + 2 * count_ || data[0] != count_) return false;
    if (data[1 + 2 * count_] != 0 || data[2 + 2 * count_] != 63 || data[3 + 2 * count_] != 0)
      return false;
    scan_.geometry.color = color();
    for (std::size_t c = 0; c < count_; ++c) {
      const Component& component = components_[c];
      const std::size_t dc = data[2 + 2 * c] >> 4, ac = data[2 + 2 * c] & 15;
      if (data[1 + 2 * c] != component.id || dc >= kTables || ac >= kTables || !dc_built_[dc] ||
          !ac_built_[ac] || component.quantizer >= kTables || !quantizers_[component.quantizer])
        return false;
      scan_.dc_codes[c] = &tables().dc[dc];
      scan_.ac_tables[c] = &tables().ac[ac];
      scan_.quantizers[c] = *quantizers_[component.quantizer];
      scan_.geometry.sampling[c] = {component.sampling >> 4, component.sampling & 15};
    }
    // A scan of one component has one block per MCU, whatever its factors, if libjpeg allows them.
    if (!scan_.geometry.sound()) return false;
    if (count_ == 1) scan_.geometry.sampling[0] = {1, 1};
    return true;
  }

  // As libjpeg guesses it.
  JpegGeometry::Color color() const {
    using Color = JpegGeometry::Color;
    if (count_ == 1) return Color::kGray;
    if (jfif_) return Color::kYcc;
    if (adobe_transform_) return *adobe_transform_ == 0 ? Color::kRgb : Color::kYcc;
    const bool named_rgb =
        components_[0].id == 'R' && components_[1].id == 'G' && components_[2].id == 'B';
    return named_rgb ? Color::kRgb : Color::kYcc;
  }

  Bytes file_;
  BaselineScan& scan_;
  std::size_t count_ = 0;
  std::array<Component, 3> components_{};
  std::array<std::optional<Quantizer>, kTables> quantizers_;
  std::array<bool, kTables> dc_built_{}, ac_built_{};
  bool jfif_ = false;
  std::optional<std::uint8_t> adobe_transform_;
};

}  // namespace

bool read_baseline_scan(Bytes file, BaselineScan& scan) {
  scan = {};
  return HeaderReader(file, scan).read();
}

}  // namespace cutwater::image
