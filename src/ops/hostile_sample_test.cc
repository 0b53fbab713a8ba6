// SPDX-License-Identifier: Apache-2.0
// Samples that come from a store or a cache are what somebody says that they are: every op takes
// any tensor that can be, or refuses it by name.
#include <gtest/gtest.h>

#include "core/pipeline_text.h"
#include "ops/all_ops.h"
#include "ops/test_images.h"

namespace cutwater {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 40;

std::vector<TensorSpec> hostile_specs() {
  const Shape shapes[] = {{0, 0, 3},     {0, 300, 300}, {300, 0, 300}, {300, 300, 0}, {0, kHuge, 3},
                          {3, 0, kHuge}, {kHuge, 0, 1}, {3, 3, 7},     {5, 4, 4, 7},  {0, 4, 4, 3},
                          {5, 0, 4, 3},  {5, 4, 4, 0},  {2, 2},        {0},           {}};
  std::vector<TensorSpec> specs;
  for (const Shape& shape : shapes)
    for (const DType dtype : {DType::kU8, DType::kF32})
      for (const Layout layout :
           {Layout::kPlain, Layout::kPixels, Layout::kPlanes, Layout::kPlanesLast})
        specs.push_back({dtype, shape, layout});
  for (const Shape& shape : {Shape{0, 0, 0, 3, 1}, Shape{9, 0, 4, 3, 1}, Shape{9, kHuge, 4, 3, 6},
                             Shape{9, kHuge, kHuge, 3, 1}, Shape{9, 4, 4, 3, kHuge}, Shape{9}})
    specs.push_back({DType::kU8, shape, Layout::kPacked});
  return specs;
}

TEST(HostileSample, IsTakenOrRefusedByEveryOp) {
  for (const test::Example& example : test::examples()) {
    const Op op = parse_ops(example.text, all_ops()).at(0);
    const OpDef& def = op.def();
    if (def.apply == nullptr || def.expand != nullptr) continue;
    for (const TensorSpec& spec : hostile_specs()) {
      const test::Data bytes = test::noise(spec.bytes(), 1);
      test::Exact exact(bytes);
      const TensorView in(spec, exact.data());
      SCOPED_TRACE(std::string(example.text) + " of " + to_string(spec));
      try {
        const DrawnValues drawn = def.draw(op.raw(), spec, Rng({1, 2, 3, 16}));
        const TensorSpec made = def.out_spec(op.raw(), in, drawn);
        test::Data out(made.bytes());
        def.apply(op.raw(), in, drawn, TensorSpan(made, out.data()));
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == Code::kBadSample || error.code() == Code::kInvalidArgument)
            << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace cutwater
