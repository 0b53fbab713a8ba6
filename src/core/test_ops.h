// SPDX-License-Identifier: Apache-2.0
// For tests: a small table of ops that tell what was asked of them.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cutwater/op.h"
#include "cutwater/pipeline.h"

namespace cutwater::test {

// What the ops below saw, in order. Each test clears it.
struct Log {
  std::vector<Region> regions;      // that `pixels` was asked to make
  std::vector<std::string> events;  // "reserve", "pixels", "shift"…
};
inline thread_local Log op_log;

// Every kind of parameter; does nothing.
struct Typed {
  bool truth = false;
  std::int64_t whole = 1;
  std::optional<std::int64_t> maybe;
  double real = 0.5;
  List list = {1};
  Size size = {2, {}};
  DType dtype = DType::kU8;

  static constexpr std::tuple kParams{
      Param{"truth", &Typed::truth, "A bool."},     Param{"whole", &Typed::whole, "An integer."},
      Param{"maybe", &Typed::maybe, "Or nothing."}, Param{"real", &Typed::real, "A double."},
      Param{"list", &Typed::list, "Numbers."},      Param{"size", &Typed::size, "A size."},
      Param{"dtype", &Typed::dtype, "An enum."}};
  void check() const {}
  TensorSpec out_spec(const TensorView& in) const { return in.spec(); }
  void apply(const TensorView& in, const TensorSpan& out) const {
    std::copy_n(in.bytes(), in.spec().bytes(), out.bytes());
  }
};

// Stored bytes to an image: pixel (y, x) is (first byte + y, x, 0). Makes a part if asked to.
struct Pixels {
  std::int64_t height = 8, width = 8;

  static constexpr std::tuple kParams{Param{"height", &Pixels::height, "Rows.", Need::kRequired},
                                      Param{"width", &Pixels::width, "Columns.", Need::kRequired}};
  void check() const {
    if (height < 1 || width < 1) throw Error(Code::kInvalidArgument, "pixels: too small");
  }
  TensorSpec out_spec(const TensorView& in) const {
    if (in.spec().shape.rank() != 1)
      throw Error(Code::kInvalidArgument, "pixels: needs stored bytes");
    return {DType::kU8, {height, width, 3}};
  }
  Region needs(const TensorSpec& in, const Region&) const { return cutwater::whole(in); }
  std::size_t scratch_bytes(const TensorView&) const { return 1000; }
  void apply(const TensorView& in, const TensorSpan& out) const {
    op_log.events.emplace_back("pixels");
    op_log.regions.push_back(out.present());
    const Region& make = out.present();
    for (std::int64_t y = make.top; y < make.top + make.height; ++y)
      for (std::int64_t x = make.left; x < make.left + make.width; ++x) {
        out.pixel(y, x)[0] = static_cast<std::uint8_t>(*in.bytes() + y);
        out.pixel(y, x)[1] = static_cast<std::uint8_t>(x);
        out.pixel(y, x)[2] = 0;
      }
  }
};

// Cuts a window out.
struct Window {
  std::int64_t top = 0, left = 0, height = 1, width = 1;

  static constexpr std::tuple kParams{
      Param{"top", &Window::top, "First row."}, Param{"left", &Window::left, "First column."},
      Param{"height", &Window::height, "Rows."}, Param{"width", &Window::width, "Columns."}};
  void check() const {}
  TensorSpec out_spec(const TensorView& in) const {
    return {DType::kU8, {height, width, in.dim(2)}};
  }
  Region needs(const TensorSpec&, const Region& out) const {
    return {top + out.top, left + out.left, out.height, out.width};
  }
  void apply(const TensorView& in, const TensorSpan& out) const {
    op_log.events.emplace_back("window");
    const Region& make = out.present();
    for (std::int64_t y = make.top; y < make.top + make.height; ++y)
      std::copy_n(in.pixel(top + y, left + make.left), make.width * in.pixel_bytes(),
                  out.pixel(y, make.left));
  }
};

// Copies; has no needs(): all or nothing.
struct Opaque {
  static constexpr std::tuple<> kParams{};
  void check() const {}
  TensorSpec out_spec(const TensorView& in) const { return in.spec(); }
  void apply(const TensorView& in, const TensorSpan& out) const {
    op_log.events.emplace_back("opaque");
    std::copy_n(in.bytes(), in.spec().bytes(), out.bytes());
  }
};

// Adds a drawn number to every byte.
struct Jitter {
  std::int64_t most = 1'000'000;

  struct Draw {
    std::int64_t add = 0;
    double real = 0;
    static constexpr std::tuple kFields{Param{"add", &Draw::add}, Param{"real", &Draw::real}};
  };
  static constexpr std::tuple kParams{Param{"most", &Jitter::most, "Exclusive."}};
  void check() const {}
  Draw draw(const TensorSpec&, Rng rng) const {
    const auto add = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most)));
    return {add, rng.uniform()};
  }
  TensorSpec out_spec(const TensorView& in, const Draw&) const { return in.spec(); }
  Region needs(const TensorSpec&, const Draw&, const Region& out) const { return out; }
  void apply(const TensorView& in, const Draw& draw, const TensorSpan& out) const {
    op_log.events.emplace_back("jitter");
    const Region& make = out.present();
    for (std::int64_t y = make.top; y < make.top + make.height; ++y)
      for (std::int64_t i = 0; i < make.width * in.pixel_bytes(); ++i)
        out.pixel(y, make.left)[i] =
            static_cast<std::uint8_t>(in.pixel(y, make.left)[i] + draw.add);
  }
};

// Refuses every sample, when its bytes come.
struct Refuses {
  bool as_error = true;
  static constexpr std::tuple kParams{
      Param{"as_error", &Refuses::as_error, "Else a std::exception."}};
  void check() const {}
  TensorSpec out_spec(const TensorView& in) const { return in.spec(); }
  void apply(const TensorView&, const TensorSpan&) const {
    if (as_error) throw Error(Code::kBadSample, "cannot be");
    throw std::runtime_error("a surprise");
  }
};

// Works on a field that no sample of these tests has.
struct OnSound {
  static constexpr std::tuple<> kParams{};
  void check() const {}
  TensorSpec out_spec(const TensorView& in) const { return in.spec(); }
  void apply(const TensorView&, const TensorSpan&) const {}
};

constexpr OpText test_op(std::string_view name) { return {name, "For tests.", "test", "image"}; }

inline constexpr OpDef kTyped = define_op<Typed>(test_op("typed"));
inline constexpr OpDef kPixels = define_op<Pixels>(test_op("pixels"));
inline constexpr OpDef kWindow = define_op<Window>(test_op("window"));
inline constexpr OpDef kOpaque = define_op<Opaque>(test_op("opaque"));
inline constexpr OpDef kJitter = define_op<Jitter>(test_op("jitter"));
inline constexpr OpDef kRefuses = define_op<Refuses>(test_op("refuses"));
inline constexpr OpDef kOnSound = define_op<OnSound>({"on_sound", "For tests.", "test", "sound"});
inline constexpr std::array<const OpDef*, 7> kTestOps = {&kTyped,  &kPixels,  &kWindow, &kOpaque,
                                                         &kJitter, &kRefuses, &kOnSound};

inline const OpTable& test_table() {
  static constexpr OpTable kTable{kTestOps, {}};
  return kTable;
}

// A stored sample: these bytes, before any op.
inline Sample stored_sample(SampleId id, const std::vector<std::uint8_t>& bytes = {10}) {
  Buffer storage(bytes.size());
  std::copy(bytes.begin(), bytes.end(), storage.data());
  Sample sample;
  sample.id = id;
  sample.fields.push_back({"image", Tensor({DType::kU8, {static_cast<std::int64_t>(bytes.size())}},
                                           std::move(storage))});
  return sample;
}

inline std::vector<std::uint8_t> bytes_of(const Tensor& tensor) {
  const std::uint8_t* const bytes = tensor.view().bytes();
  return {bytes, bytes + tensor.spec().bytes()};
}

}  // namespace cutwater::test
