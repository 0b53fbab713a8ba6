// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files: the header that says what the bytes after it mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cutwater/tensor.h"

namespace cutwater {

struct NpyHeader {
  std::string descr;                // Python text: "'<f4'", or a list of columns "[('id', '<i8')]"
  std::vector<std::int64_t> shape;  // in C order
  std::size_t bytes = 0;            // of the header: the data begins there
};

std::string_view npy_type(DType dtype);  // "'|u1'", "'<f4'"…

// The bytes before the data, a multiple of 64.
std::string npy_header(std::string_view descr, std::span<const std::int64_t> shape);

// Of the first bytes of a file. Throws Error(kInvalidArgument) for anything that is not the header
// of an array in C order, or is cut short. Total on any input.
NpyHeader parse_npy_header(std::span<const std::uint8_t> file);

}  // namespace cutwater
