// SPDX-License-Identifier: Apache-2.0
// The coefficients of a progressive JPEG by libjpeg-turbo, for a baseline one of the same pixels.
#include "ops/image/codec_jpeg.h"
#include "ops/image/codec_jpeg_decompressor.h"

namespace cutwater::image {
namespace {

class CoefficientReader {
 public:
  CoefficientReader(Bytes file, JpegPart& part) : jpeg_(file), info_(jpeg_.info()), part_(part) {}

  bool read(const Header& header, const Region& region) {
    jpeg_.call([&] { read_file(); });
    if (!is_plain() || !describe() || part_.image.width != header.width ||
        part_.image.height != header.height)
      return false;
    part_.mcus = part_.image.window(region);
    part_.symbols.clear();
    bool sound = true;
    jpeg_.call([&] { sound = copy_blocks(); });
    return sound;
  }

 private:
  void read_file() {
    jpeg_.read_header();
    do {
      arrays_ = jpeg_read_coefficients(&info_);
      if (arrays_ == nullptr && !jpeg_.widen())
        refuse("JPEG data end early: the last scan is not complete");
    } while (arrays_ == nullptr);
  }

  // Nothing was forgiven, and every coefficient came with all of its bits: from others libjpeg
  // guesses smoother pixels.
  bool is_plain() const {
    if (info_.err->num_warnings != 0 || info_.arith_code || !info_.progressive_mode) return false;
    for (int c = 0; c < info_.num_components; ++c)
      for (int k = 0; k < DCTSIZE2; ++k)
        if (info_.coef_bits[c][k] != 0) return false;
    return true;
  }

  // Sizes, colors and quantizers.
  bool describe() {
    using Color = JpegGeometry::Color;
    JpegGeometry& image = part_.image = {};
    image.width = info_.image_width;
    image.height = info_.image_height;
    switch (info_.jpeg_color_space) {
      case JCS_GRAYSCALE: image.color = Color::kGray; break;
      case JCS_YCbCr: image.color = Color::kYcc; break;
      case JCS_RGB: image.color = Color::kRgb; break;
      default: return false;
    }
    for (std::size_t c = 0; c < image.components(); ++c) {
      const jpeg_component_info& component = info_.comp_info[c];
      if (component.quant_table == nullptr) return false;
      for (std::size_t k = 0; k < DCTSIZE2; ++k) {
        if (component.quant_table->quantval[k] > 32767) return false;
        part_.quantizers[c][k] = static_cast<std::int16_t>(component.quant_table->quantval[k]);
      }
      // A single component has one block per MCU, whatever its factors.
      if (image.color != Color::kGray)
        image.sampling[c] = {component.h_samp_factor, component.v_samp_factor};
    }
    return image.sound();
  }

  bool copy_blocks() {
    const McuWindow& mcus = part_.mcus;
    for (std::int64_t row = mcus.top; row < mcus.bottom; ++row)
      for (std::int64_t mcu = mcus.left; mcu < mcus.right; ++mcu) {
        if (!part_.symbols.make_room(D_MAX_BLOCKS_IN_MCU)) return false;
        for (std::size_t c = 0; c < part_.image.components(); ++c) {
          const auto [h, v] = part_.image.sampling[c];
          for (std::int64_t y = row * v; y < (row + 1) * v; ++y)
            for (std::int64_t x = mcu * h; x < (mcu + 1) * h; ++x)
              if (!copy_block(c, y, x)) return false;
        }
      }
    return true;
  }

  bool copy_block(std::size_t c, std::int64_t y, std::int64_t x) {
    const JBLOCKARRAY rows = info_.mem->access_virt_barray(
        reinterpret_cast<j_common_ptr>(&info_), arrays_[c], static_cast<JDIMENSION>(y), 1, FALSE);
    const JCOEF* block = rows[0][x];
    // What our own decoder takes of a baseline scan.
    const int dc = block[0] * std::max<int>(part_.quantizers[c][0], 1);
    return dc >= -8192 && dc <= 8191 && part_.symbols.put_dc(c, block[0]) &&
           part_.symbols.put_block_ac(c, block);
  }

  Decompressor jpeg_;
  jpeg_decompress_struct& info_;
  JpegPart& part_;
  jvirt_barray_ptr* arrays_ = nullptr;
};

}  // namespace

bool read_progressive_part(Bytes file, const Header& header, const Limits& limits,
                           const Region& region, JpegPart& part) {
  const JpegFrame frame = read_jpeg_frame(file);
  if (!frame.progressive || (frame.components != 1 && frame.components != 3)) return false;
  check_scans(file, frame.scan_at, limits.max_scans);
  return CoefficientReader(file, part).read(header, region);
}

}  // namespace cutwater::image
