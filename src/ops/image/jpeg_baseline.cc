// SPDX-License-Identifier: Apache-2.0
// Parse every MCU up to the region's last row, keep the coefficients of those in the region, turn
// them into planes row by row, then upsample and convert the rows that are asked for.
#include "ops/image/jpeg_baseline.h"

#include <algorithm>
#include <cstring>

#include "ops/image/jpeg_kernels.h"

namespace cutwater::image {
namespace {

// Natural place of coefficient k; what a damaged block counts beyond 63 lands in a spare one.
constexpr std::int64_t kBlockStride = 80;
constexpr std::array<std::uint8_t, 64> kZigzag = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
constexpr std::array<std::uint8_t, 256> kPlace = [] {
  std::array<std::uint8_t, 256> place{};
  for (std::size_t k = 0; k < place.size(); ++k) place[k] = k < 64 ? kZigzag[k] : 64;
  return place;
}();

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Copies the scan without the zero bytes that are stuffed behind each FF. False: something else is
// there. `out` gets the padding that BitReader asks for.
bool unstuff(Bytes data, std::vector<std::uint8_t>& out) {
  out.resize(data.size() + BitReader::kPadding);
  std::uint8_t* to = out.data();
  const std::uint8_t* from = data.data();
  const std::uint8_t* end = from + data.size();
  while (from < end) {
    const auto* found = static_cast<const std::uint8_t*>(
        std::memchr(from, 0xFF, static_cast<std::size_t>(end - from)));
    const std::uint8_t* upto = found == nullptr ? end : found + 1;
    std::memcpy(to, from, static_cast<std::size_t>(upto - from));
    to += upto - from;
    from = upto;
    if (found == nullptr) break;
    if (from == end || *from != 0) return false;
    ++from;
  }
  std::memset(to, 0, BitReader::kPadding);
  out.resize(static_cast<std::size_t>(to - out.data()) + BitReader::kPadding);
  return true;
}

// The next DC coefficient; false where no sound scan goes.
bool read_dc(BitReader& reader, const HuffmanCodes& codes, int quantizer, int& prediction) {
  reader.refill();
  const HuffmanCodes::Symbol symbol = codes.find(reader.peek(16));
  constexpr int kLargest = 11;
  if (symbol.length == 0 || symbol.value > kLargest) return false;
  reader.take(symbol.length);
  if (symbol.value > 0) {
    prediction += extended(reader.peek(symbol.value), symbol.value);
    reader.take(symbol.value);
  }
  const int dequantized = prediction * quantizer;
  return dequantized >= -8192 && dequantized < 8192;
}

// The AC coefficients of one block; with kKeep false they are only stepped over. False where no
// sound scan goes: an unknown code, a size beyond 8-bit pictures, or more than 63 coefficients.
template <bool kKeep>
bool read_ac(BitReader& shared, const AcTable& table, std::int16_t* block) {
  BitReader reader = shared;  // a copy stays in registers
  unsigned k = 0;
  do {
    // 56 bits are there after a refill: enough for two table steps and a long one.
    reader.refill();
    for (int step = 0; step < 3; ++step) {
      const AcTable::Entry& entry = table.look_up(reader);
      if (entry.total_bits == 0) {
        const HuffmanCodes::Symbol symbol = table.codes().find(reader.peek(16));
        const int size = symbol.value & 15;
        constexpr int kLargest = 10;
        if (symbol.length == 0 || size > kLargest) return false;
        reader.take(symbol.length);
        k += static_cast<unsigned>(AcTable::advance(symbol.value));
        if (size > 0) {
          if constexpr (kKeep)
            block[kPlace[k]] = static_cast<std::int16_t>(extended(reader.peek(size), size));
          reader.take(size);
        }
        break;
      }
      const unsigned first = k + entry.first_advance;
      k += entry.total_advance;
      if constexpr (kKeep) {
        block[kPlace[first]] = entry.first_value;
        block[kPlace[k]] = entry.second_value;
      }
      reader.take(entry.total_bits);
      if (k < 63) continue;
      if (first >= 63 && k != first) {  // the second coefficient belongs to the next block
        reader.give_back(entry.total_bits - entry.first_bits);
        k = first;
      }
      break;
    }
  } while (k < 63);
  shared = reader;
  return k == 63 || k >= AcTable::kEndOfBlock;
}

// One component's share of the region, as samples.
struct Plane {
  std::vector<std::uint8_t> bytes;
  std::int64_t row_bytes = 0, left = 0, top = 0, rows = 0;

  // Sample (y, x) of the component. Rows have a sample of margin on both sides.
  std::uint8_t* at(std::int64_t y, std::int64_t x) {
    return bytes.data() + (y - top) * row_bytes + kMargin + (x - left);
  }
  static constexpr std::int64_t kMargin = 64;
};

// A thread's working memory, kept between images: fresh pages cost more than the work done in them.
struct Workspace {
  std::vector<std::uint8_t> bits;
  std::vector<std::int16_t> coefficients;
  std::array<Plane, 3> planes;
  std::array<std::vector<std::uint8_t>, 2> chroma;  // one upsampled row each

  // What a huge image took is not kept for ever.
  void give_up_large() {
    constexpr std::size_t kMostKept = std::size_t{1} << 20;
    for (Plane& plane : planes)
      if (plane.bytes.capacity() > kMostKept) std::vector<std::uint8_t>().swap(plane.bytes);
    if (bits.capacity() > kMostKept) std::vector<std::uint8_t>().swap(bits);
  }
};
Workspace& workspace() {
  thread_local Workspace work;
  return work;
}

class BaselineDecoder {
 public:
  BaselineDecoder(const BaselineScan& scan, const TensorSpan& out) : scan_(scan), out_(out) {
    for (const auto& component : scan.components) {
      max_h_ = std::max(max_h_, component.h);
      max_v_ = std::max(max_v_, component.v);
    }
    // Upsampling looks one chroma sample around: that is max_h (max_v) pixels.
    const Region& part = out.present();
    const std::int64_t mcu_width = 8 * max_h_, mcu_height = 8 * max_v_;
    const auto from = [](std::int64_t begin, std::int64_t margin, std::int64_t size) {
      return std::max<std::int64_t>(begin - margin, 0) / size;
    };
    mcus_across_ = divide_up(scan.width, mcu_width);
    left_ = from(part.left, max_h_, mcu_width);
    top_ = from(part.top, max_v_, mcu_height);
    right_ = divide_up(std::min(part.left + part.width + max_h_, scan.width), mcu_width);
    bottom_ = divide_up(std::min(part.top + part.height + max_v_, scan.height), mcu_height);
  }

  bool run() {
    if (!unstuff(scan_.data, work_.bits)) return false;
    make_planes();
    BitReader reader(std::span(work_.bits).first(work_.bits.size() - BitReader::kPadding));
    for (std::int64_t row = 0; row < bottom_; ++row) {
      if (!read_mcu_row(reader, row)) return false;
      if (row >= top_) reconstruct(row);
    }
    extend_edges();
    write_rows();
    return true;
  }

 private:
  std::size_t count() const { return scan_.components.size(); }

  void make_planes() {
    std::int64_t blocks = 0;
    for (std::size_t c = 0; c < count(); ++c) {
      const auto& component = scan_.components[c];
      Plane& plane = work_.planes[c];
      plane.left = left_ * 8 * component.h;
      plane.top = top_ * 8 * component.v;
      plane.rows = (bottom_ - top_) * 8 * component.v;
      plane.row_bytes = (right_ - left_) * 8 * component.h + 2 * Plane::kMargin;
      plane.bytes.resize(static_cast<std::size_t>(plane.row_bytes * plane.rows));
      blocks += (right_ - left_) * component.h * component.v;
    }
    work_.coefficients.resize(static_cast<std::size_t>(blocks * kBlockStride));
  }

  // Where the coefficients of block (y, x) of a component in this MCU row are; x counts from left_.
  std::int16_t* block(std::size_t c, std::int64_t y, std::int64_t x) {
    std::int64_t before = 0;
    for (std::size_t i = 0; i < c; ++i) before += scan_.components[i].h * scan_.components[i].v;
    const std::int64_t across = right_ - left_;
    return work_.coefficients.data() +
           (before * across + y * across * scan_.components[c].h + x) * kBlockStride;
  }

  template <bool kKeep>
  bool read_mcus(BitReader& reader, std::int64_t begin, std::int64_t end) {
    for (std::int64_t mcu = begin; mcu < end; ++mcu) {
      for (std::size_t c = 0; c < count(); ++c) {
        const auto& component = scan_.components[c];
        const HuffmanCodes& dc = scan_.dc_tables[static_cast<std::size_t>(component.dc_table)];
        const AcTable& ac = scan_.ac_tables[static_cast<std::size_t>(component.ac_table)];
        for (std::int64_t y = 0; y < component.v; ++y)
          for (std::int64_t x = 0; x < component.h; ++x) {
            std::int16_t* place = kKeep ? block(c, y, (mcu - left_) * component.h + x) : nullptr;
            if (!read_dc(reader, dc, component.quantizer[0], predictions_[c])) return false;
            if constexpr (kKeep) place[0] = static_cast<std::int16_t>(predictions_[c]);
            if (!read_ac<kKeep>(reader, ac, place)) return false;
          }
      }
      if (reader.overrun()) return false;
    }
    return true;
  }

  bool read_mcu_row(BitReader& reader, std::int64_t row) {
    if (row < top_) return read_mcus<false>(reader, 0, mcus_across_);
    std::fill(work_.coefficients.begin(), work_.coefficients.end(), std::int16_t{0});
    if (!read_mcus<false>(reader, 0, left_) || !read_mcus<true>(reader, left_, right_))
      return false;
    // What lies right of the region matters only to the rows below.
    return row + 1 == bottom_ || read_mcus<false>(reader, right_, mcus_across_);
  }

  void reconstruct(std::int64_t row) {
    for (std::size_t c = 0; c < count(); ++c) {
      const auto& component = scan_.components[c];
      for (std::int64_t y = 0; y < component.v; ++y) {
        Plane& plane = work_.planes[c];
        inverse_dct(block(c, y, 0), kBlockStride, component.quantizer.data(),
                    (right_ - left_) * component.h,
                    plane.at((row * component.v + y) * 8, plane.left), plane.row_bytes);
      }
    }
  }

  // Beyond the image's left and right edge stands the edge itself.
  void extend_edges() {
    for (std::size_t c = 1; c < count(); ++c) {
      Plane& plane = work_.planes[c];
      const std::int64_t width = chroma_width(), end = (right_ - left_) * 8 + plane.left;
      for (std::int64_t y = plane.top; y < plane.top + plane.rows; ++y) {
        if (left_ == 0) *plane.at(y, -1) = *plane.at(y, 0);
        if (width <= end) *plane.at(y, width) = *plane.at(y, width - 1);
      }
    }
  }

  std::int64_t chroma_width() const { return divide_up(scan_.width, max_h_); }
  std::int64_t chroma_height() const { return divide_up(scan_.height, max_v_); }

  // Chroma row c at image row y, as a pointer to column part.left.
  const std::uint8_t* chroma_row(std::size_t c, std::int64_t y) {
    const Region& part = out_.present();
    Plane& plane = work_.planes[c];
    std::vector<std::uint8_t>& row = work_.chroma[c - 1];
    const std::int64_t near = y / max_v_;
    const std::int64_t far = max_v_ == 1 ? near
                                         : std::clamp<std::int64_t>(near + (y % 2 == 0 ? -1 : 1), 0,
                                                                    chroma_height() - 1);
    const std::int64_t first = part.left / max_h_, last = (part.left + part.width - 1) / max_h_;
    const std::int64_t samples = last - first + 1;
    if (max_h_ == 1 && max_v_ == 1) return plane.at(near, part.left);
    row.resize(static_cast<std::size_t>(samples * max_h_));
    if (max_h_ == 1) {
      upsample_1x2(plane.at(near, first), plane.at(far, first), samples, y % 2 == 0 ? 1 : 2,
                   row.data());
    } else if (chroma_width() <= 2) {  // too narrow for neighbours: libjpeg repeats the samples
      for (std::int64_t x = 0; x < samples * 2; ++x)
        row[static_cast<std::size_t>(x)] = *plane.at(near, first + x / 2);
    } else if (max_v_ == 1) {
      upsample_2x1(plane.at(near, first), samples, row.data());
    } else {
      upsample_2x2(plane.at(near, first), plane.at(far, first), samples, row.data());
    }
    return row.data() + (part.left - first * max_h_);
  }

  void write_rows() {
    const Region& part = out_.present();
    for (std::int64_t y = part.top; y < part.top + part.height; ++y) {
      const std::uint8_t* luma = work_.planes[0].at(y, part.left);
      std::uint8_t* rgb = out_.pixel(y, part.left);
      if (count() == 3) {
        ycc_to_rgb(luma, chroma_row(1, y), chroma_row(2, y), part.width, rgb);
        continue;
      }
      for (std::int64_t x = 0; x < part.width; ++x) std::memset(rgb + 3 * x, luma[x], 3);
    }
  }

  const BaselineScan& scan_;
  const TensorSpan& out_;
  Workspace& work_ = workspace();
  std::int64_t max_h_ = 1, max_v_ = 1, mcus_across_ = 0;
  std::int64_t left_ = 0, top_ = 0, right_ = 0, bottom_ = 0;  // MCUs that are reconstructed
  std::array<int, 3> predictions_{};
};

}  // namespace

bool decode_baseline(const BaselineScan& scan, const TensorSpan& out) {
  if (out.present().height == 0 || out.present().width == 0) return false;
  const bool sound = BaselineDecoder(scan, out).run();
  workspace().give_up_large();
  return sound;
}

}  // namespace cutwater::image
