// SPDX-License-Identifier: Apache-2.0
#include "core/npy.h"

#include <gtest/gtest.h>

#include <random>

#include "cutwater/error.h"

namespace cutwater {
namespace {

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

TEST(Npy, HeadersReadBack) {
  const std::vector<std::vector<std::int64_t>> shapes = {{}, {0}, {7}, {3, 224, 224}, {1, 2, 3, 4}};
  std::string columns = "[('id', '<i8'), ('shape', '<i8', (6,))]";
  const std::string many = "[" + std::string(70'000, ' ') + "('a', '<i8')]";
  for (const std::string& descr : {std::string(npy_type(DType::kF32)), columns, many})
    for (const auto& shape : shapes) {
      const std::string header = npy_header(descr, shape);
      EXPECT_EQ(header.size() % 64, 0U);
      const NpyHeader parsed = parse_npy_header(bytes_of(header));
      EXPECT_EQ(parsed.descr, descr);
      EXPECT_EQ(parsed.shape, shape);
      EXPECT_EQ(parsed.bytes, header.size());
    }
}

// As NumPy 1.24 writes it.
TEST(Npy, ReadsNumPysOwn) {
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
  text.resize(117, ' ');
  text += '\n';
  const std::string file = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + text;
  EXPECT_EQ(parse_npy_header(bytes_of(file)).shape, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(npy_header("'<f4'", std::vector<std::int64_t>{3}), file);
}

TEST(Npy, AnythingElseIsRefused) {
  const std::string good = npy_header("'<f4'", std::vector<std::int64_t>{3, 4});
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& bad :
       {std::string(), std::string("\x93NUMPY"), good.substr(0, 60), replaced("NUMPY", "NUMPX"),
        replaced("False", "True "), replaced("shape", "shop_"), replaced("(3, 4)", "(3,-4)"),
        replaced("(3, 4)", "[3, 4]"), replaced("(3, 4), }", "(3, 4     ")})
    EXPECT_THROW((void)parse_npy_header(bytes_of(bad)), Error) << bad;

  std::mt19937 random(1);
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string damaged = good;
    for (std::uint32_t n = 1 + random() % 4; n > 0; --n)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      (void)parse_npy_header(bytes_of(damaged));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace cutwater
