// SPDX-License-Identifier: Apache-2.0
#include "ops/image/resample.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "cutwater/error.h"
#include "ops/image/filter_axis.h"
#include "ops/image/resize_kernels.h"
#include "ops/image/row_adapters.h"
#include "ops/image/scratch.h"

namespace cutwater::image {
namespace {

bool is_nearest(const Resample& how) {
  return how.interpolation == Interpolation::kNearest ||
         how.interpolation == Interpolation::kNearestExact;
}

bool keeps_size(const Resizing& r) { return r.box.height == r.height && r.box.width == r.width; }

bool columns_first(const Resizing& r) {
  const std::int64_t shrink = r.box.height - r.height;
  return r.how.pillow >= 13 && shrink > 0 && shrink > 2 * (r.box.width - r.width);
}

// An axis that keeps its length: each output is its input.
Interpolation filter_of(const Resizing& r, bool resizes) {
  return resizes ? r.how.interpolation : Interpolation::kBox;
}

// The columns of `make` before the image was mirrored.
std::int64_t unmirrored_left(const Resizing& r) {
  return r.mirrored ? r.width - r.make.left - r.make.width : r.make.left;
}

// A row in memory of our own: its planes one after the other.
struct RowLayout {
  std::int64_t channels, plane_stride;

  RowLayout(std::int64_t channel_count, std::int64_t width)
      : channels(channel_count), plane_stride(rounded_up(width, kPlaneStep)) {}

  std::int64_t bytes() const { return channels * plane_stride; }
  PlanarRow at(const std::uint8_t* row) const {
    if (channels == 1) return {{row, row, row}};
    return {{row, row + plane_stride, row + 2 * plane_stride}};
  }
};

// Filters along the row.
class ColumnPass {
 public:
  ColumnPass(const Resizing& r, std::int64_t channels)
      : axis_(filter_of(r, r.box.width != r.width), r.box.width, r.width, unmirrored_left(r),
              unmirrored_left(r) + r.make.width),
        table_(column_table_bytes(axis_.view())),
        layout_(channels, r.make.width) {
    make_column_table(axis_.view(), r.mirrored, table_.data());
  }

  void run(const PlanarRow& in, std::uint8_t* out) const {
    filter_columns(table_.data(), in, layout_.channels, out, layout_.plane_stride);
  }

 private:
  FilterAxis axis_;
  Scratch table_;
  RowLayout layout_;
};

// Filters across rows. Keeps the last rows that it was given: as many as an output has taps.
class RowPass {
 public:
  RowPass(const Resizing& r, const RowLayout& layout)
      : axis_(r.how.interpolation, r.box.height, r.height, r.make.top, r.make.top + r.make.height),
        layout_(layout),
        row_distance_(row_distance(layout.bytes() + kRowSlack)),
        kept_(std::min(axis_.view().taps, axis_.view().inputs)),
        table_(row_table_bytes(axis_.view())),
        rows_((kept_ + 1) * row_distance_),
        taps_(axis_.view().taps * static_cast<std::int64_t>(sizeof(std::uint8_t*))) {
    make_row_table(axis_.view(), table_.data());
  }

  // The next output row. read(to) writes the next input row, in the layout.
  template <class Read>
  PlanarRow next(const Read& read) {
    const AxisView& axis = axis_.view();
    const std::int64_t first = axis.first[made_];
    for (; read_ < std::min(first + axis.taps, axis.inputs); ++read_) read(kept(read_));
    auto** const taps = reinterpret_cast<const std::uint8_t**>(taps_.data());
    for (std::int64_t t = 0; t < axis.taps; ++t)
      taps[t] = kept(std::min(first + t, axis.inputs - 1));
    std::uint8_t* const out = rows_.data() + kept_ * row_distance_;
    filter_rows(table_.data(), axis.taps, made_++, taps, layout_.bytes(), out);
    return layout_.at(out);
  }

 private:
  std::uint8_t* kept(std::int64_t row) const { return rows_.data() + row % kept_ * row_distance_; }

  FilterAxis axis_;
  RowLayout layout_;
  std::int64_t row_distance_, kept_;
  Scratch table_, rows_, taps_;
  std::int64_t read_ = 0, made_ = 0;
};

void filter(const Resizing& r, std::int64_t channels, RowReader& in, RowWriter& out) {
  const bool filter_x = r.box.width != r.width || r.mirrored, filter_y = r.box.height != r.height;
  const auto for_rows = [&](const auto& next) {
    for (std::int64_t y = 0; y < r.make.height; ++y) out.put(next());
  };
  if (!filter_x && !filter_y) return for_rows([&] { return in.next(); });

  const RowLayout made(channels, r.make.width);
  if (!filter_y) {
    const ColumnPass columns(r, channels);
    const Scratch row(made.bytes() + kRowSlack);
    return for_rows([&] {
      columns.run(in.next(), row.data());
      return made.at(row.data());
    });
  }
  if (filter_x && !columns_first(r)) {
    const ColumnPass columns(r, channels);
    RowPass rows(r, made);
    const auto read = [&](std::uint8_t* to) { columns.run(in.next(), to); };
    return for_rows([&] { return rows.next(read); });
  }
  const std::int64_t width = resample_needs(r).width;
  const RowLayout given(channels, width);
  RowPass rows(r, given);
  const auto read = [&](std::uint8_t* to) {
    const PlanarRow row = in.next();
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c, to += given.plane_stride)
      std::memcpy(to, row.plane[c], static_cast<std::size_t>(width));
  };
  if (!filter_x) return for_rows([&] { return rows.next(read); });
  const ColumnPass columns(r, channels);
  const Scratch row(made.bytes() + kRowSlack);
  for_rows([&] {
    columns.run(rows.next(read), row.data());
    return made.at(row.data());
  });
}

// Pillow steps through the source by adding the scale, so errors of the sum are part of the pixels;
// what steps out of the image stays black.
std::vector<std::int64_t> nearest_places(std::int64_t in, std::int64_t out) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(out));
  const double step = static_cast<double>(in) / static_cast<double>(out);
  double at = step * 0.5;
  for (std::int64_t& place : places) {
    const auto source = static_cast<std::int64_t>(at);
    place = source < in ? source : -1;
    at += step;
  }
  return places;
}

void pick_nearest(const Resizing& r, std::int64_t channels, RowReader& in, RowWriter& out) {
  const auto rows = nearest_places(r.box.height, r.height);
  auto columns = nearest_places(r.box.width, r.width);
  if (r.mirrored) std::reverse(columns.begin(), columns.end());
  const RowLayout layout(channels, r.make.width);
  const Scratch picked(layout.bytes() + kRowSlack);
  std::int64_t read = 0;
  PlanarRow row;
  for (std::int64_t y = r.make.top; y < r.make.top + r.make.height; ++y) {
    const std::int64_t place = rows[static_cast<std::size_t>(y)];
    for (; read <= place; ++read) row = in.next();
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
      std::uint8_t* to = picked.data() + static_cast<std::int64_t>(c) * layout.plane_stride;
      for (std::int64_t x = r.make.left; x < r.make.left + r.make.width; ++x) {
        const std::int64_t column = columns[static_cast<std::size_t>(x)];
        *to++ = place < 0 || column < 0 ? std::uint8_t{0} : row.plane[c][column];
      }
    }
    out.put(layout.at(picked.data()));
  }
}

void copy_part(const TensorView& in, const Region& box, const TensorSpan& out) {
  const Region& make = out.present();
  for (std::int64_t y = make.top; y < make.top + make.height; ++y)
    std::copy_n(in.pixel(box.top + y, box.left + make.left), make.width * in.pixel_bytes(),
                out.pixel(y, make.left));
}

}  // namespace

void require_pillow(std::string_view op, std::int64_t pillow) {
  if (pillow < kOldestPillow || pillow > kNewestPillow)
    throw Error(Code::kInvalidArgument,
                std::string(op) +
                    ": pillow must be 13, or 12 for the pixels of Pillow up to 12, got " +
                    std::to_string(pillow));
}

Region resample_needs(const Resizing& r) {
  if (is_nearest(r.how) && !keeps_size(r)) return r.box;
  const std::int64_t left = unmirrored_left(r);
  const AxisPart rows = axis_reads(filter_of(r, r.box.height != r.height), r.box.height, r.height,
                                   r.make.top, r.make.top + r.make.height);
  const AxisPart columns = axis_reads(filter_of(r, r.box.width != r.width), r.box.width, r.width,
                                      left, left + r.make.width);
  return {r.box.top + rows.low, r.box.left + columns.low, rows.count, columns.count};
}

void resample_rows(const Resizing& r, std::int64_t channels, RowReader& in, RowWriter& out) {
  if (is_nearest(r.how) && !keeps_size(r)) return pick_nearest(r, channels, in, out);
  filter(r, channels, in, out);
}

void resample(const TensorView& in, const Region& box, const Resample& how, const TensorSpan& out) {
  const Resizing resizing{box, out.dim(0), out.dim(1), how, out.present()};
  if (keeps_size(resizing)) return copy_part(in, box, out);
  PixelReader reader(in, resample_needs(resizing));
  PixelWriter writer(out);
  resample_rows(resizing, in.dim(2), reader, writer);
}

Region resample_needs(const Region& box, std::int64_t out_height, std::int64_t out_width,
                      const Resample& how, const Region& out) {
  return resample_needs(Resizing{box, out_height, out_width, how, out});
}

}  // namespace cutwater::image
