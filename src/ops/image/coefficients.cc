// SPDX-License-Identifier: Apache-2.0
#include "ops/image/coefficients.h"

#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "ops/image/codec_common.h"

namespace cutwater::image {
namespace {

constexpr std::string_view kMagic = "cw.coef1";
constexpr std::size_t kSizeAt = 8, kWidthAt = 12, kHeightAt = 14, kColorAt = 16,
                      kOrientationAt = 17, kSamplingAt = 18, kQuantizersAt = 24;
constexpr std::size_t kQuantizerBytes = 128, kBlockHead = 10;  // mask and DC
constexpr std::size_t kTail = 64;                              // zeros, so that vectors may read on

static_assert(std::endian::native == std::endian::little, "the form is little-endian");

template <class T>
T get(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
void put(std::vector<std::uint8_t>& out, std::size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof value);
}

// Appends a row of blocks: masks, DCs, values.
void put_row(const std::int16_t* groups, std::int64_t blocks, std::vector<std::uint8_t>& out) {
  const auto count = static_cast<std::size_t>(blocks);
  const std::size_t masks = out.size(), dcs = masks + 8 * count,
                    values = masks + kBlockHead * count;
  out.resize(values + kMostValueBytes * count);
  const std::uint8_t* const end =
      pack_blocks(groups, blocks, out.data() + masks, out.data() + dcs, out.data() + values);
  out.resize(static_cast<std::size_t>(end - out.data()));
}

}  // namespace

bool is_coefficient_form(Bytes bytes) { return starts_with(bytes, kMagic); }

bool write_coefficients(const BaselineScan& scan, const ScanBits& bits, int exif_orientation,
                        std::vector<std::uint8_t>& out) {
  const JpegGeometry& geometry = scan.geometry;
  std::array<std::size_t, 3> first_row{};
  std::size_t rows = 0;
  for (std::size_t c = 0; c < geometry.components(); ++c) {
    first_row[c] = rows;
    rows += static_cast<std::size_t>(geometry.blocks_down(c));
  }
  const std::size_t table = kQuantizersAt + kQuantizerBytes * geometry.components();
  out.assign(table + 4 * (rows + 1), 0);
  std::memcpy(out.data(), kMagic.data(), kMagic.size());
  put(out, kWidthAt, static_cast<std::uint16_t>(geometry.width));
  put(out, kHeightAt, static_cast<std::uint16_t>(geometry.height));
  out[kColorAt] = static_cast<std::uint8_t>(geometry.color);
  out[kOrientationAt] = static_cast<std::uint8_t>(exif_orientation);
  for (std::size_t c = 0; c < geometry.components(); ++c) {
    const auto [h, v] = geometry.sampling[c];
    out[kSamplingAt + c] = static_cast<std::uint8_t>(h << 4 | v);
    std::memcpy(out.data() + kQuantizersAt + c * kQuantizerBytes, scan.quantizers[c].data(),
                kQuantizerBytes);
  }

  // Rows of blocks stand in the order of the scan: component rows of an MCU row together.
  thread_local BlockStrip strip;
  const McuWindow window = geometry.all_mcus();
  ScanReader reader(scan, bits);
  for (std::int64_t mcu_row = 0; mcu_row < window.bottom; ++mcu_row) {
    strip.prepare(geometry, window);
    reader.keep_into(strip);
    if (!reader.keep(window.right)) return false;
    for (std::size_t c = 0; c < geometry.components(); ++c)
      for (std::int64_t y = 0; y < geometry.sampling[c].v; ++y) {
        const auto row = static_cast<std::size_t>(mcu_row * geometry.sampling[c].v + y);
        if (out.size() > 0xffffffffU) return false;
        put(out, table + 4 * (first_row[c] + row), static_cast<std::uint32_t>(out.size()));
        put_row(strip.row(c, y), geometry.blocks_across(c), out);
      }
  }
  out.resize(out.size() + kTail);
  if (out.size() > 0xffffffffU) return false;
  put(out, kSizeAt, static_cast<std::uint32_t>(out.size()));
  strip.give_up_large();
  return true;
}

CoefficientForm::CoefficientForm(Bytes form) : form_(form) {
  if (!is_coefficient_form(form))
    refuse("coefficient form has no '" + std::string(kMagic) + "' mark");
  if (form.size() < kQuantizersAt + kTail || get<std::uint32_t>(&form[kSizeAt]) != form.size())
    refuse("coefficient form is cut short: " + std::to_string(form.size()) + " bytes");
  geometry_.width = get<std::uint16_t>(&form[kWidthAt]);
  geometry_.height = get<std::uint16_t>(&form[kHeightAt]);
  exif_orientation_ = form[kOrientationAt];
  const std::uint8_t color = form[kColorAt];
  if (color > 2 || exif_orientation_ < 1 || exif_orientation_ > 8)
    refuse("coefficient form has an unknown color or orientation");
  geometry_.color = static_cast<JpegGeometry::Color>(color);
  for (std::size_t c = 0; c < geometry_.components(); ++c)
    geometry_.sampling[c] = {form[kSamplingAt + c] >> 4, form[kSamplingAt + c] & 15};
  if (!geometry_.sound()) refuse("coefficient form has impossible sampling factors or sizes");

  table_ = kQuantizersAt + kQuantizerBytes * geometry_.components();
  rows_ = table_;
  for (std::size_t c = 0; c < geometry_.components(); ++c) {
    first_row_[c] = static_cast<std::int64_t>((rows_ - table_) / 4);
    rows_ += 4 * static_cast<std::size_t>(geometry_.blocks_down(c));
  }
  if (rows_ > form.size() - kTail) refuse("coefficient form ends in its table of rows");
  for (std::size_t c = 0; c < geometry_.components(); ++c)
    std::memcpy(quantizers_[c].data(), &form[kQuantizersAt + c * kQuantizerBytes], kQuantizerBytes);
}

CoefficientForm::Row CoefficientForm::row(std::size_t c, std::int64_t y) const {
  const std::size_t at =
      get<std::uint32_t>(form_.data() + table_ + 4 * static_cast<std::size_t>(first_row_[c] + y));
  const auto blocks = static_cast<std::size_t>(geometry_.blocks_across(c));
  const std::size_t end = form_.size() - kTail;
  if (at < rows_ || at > end || end - at < blocks * kBlockHead)
    refuse("coefficient form has a row of blocks outside of itself");
  const std::uint8_t* masks = form_.data() + at;
  return {masks, masks + 8 * blocks, masks + kBlockHead * blocks, form_.data() + end};
}

void CoefficientForm::reconstruct(const Region& region, JpegPlanes& planes) const {
  thread_local BlockStrip strip;
  planes.prepare(geometry_, region);
  const McuWindow& window = planes.window();
  strip.prepare(geometry_, window);
  for (std::int64_t mcu_row = window.top; mcu_row < window.bottom; ++mcu_row) {
    for (std::size_t c = 0; c < geometry_.components(); ++c) {
      const auto [h, v] = geometry_.sampling[c];
      const std::int64_t left = window.left * h, blocks = window.across() * h;
      for (std::int64_t y = 0; y < v; ++y) {
        Row row = this->row(c, mcu_row * v + y);
        const std::size_t before = value_bytes(row.masks, left),
                          within = value_bytes(row.masks + 8 * left, blocks);
        if (static_cast<std::size_t>(row.end - row.values) < before + within)
          refuse("coefficient form has more coefficients than bytes");
        expand_blocks(row.masks + 8 * left, row.dcs + 2 * left, row.values + before, blocks,
                      strip.row(c, y));
      }
    }
    planes.reconstruct(mcu_row, strip, quantizers_, After::kKeep);
  }
  strip.give_up_large();
}

}  // namespace cutwater::image
