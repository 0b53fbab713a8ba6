// SPDX-License-Identifier: Apache-2.0
// A small linear program: how much of each column fits, where every column takes some of each row.
#pragma once

#include <vector>

namespace cutwater {

struct Packed {
  double value = 0;             // the sum of all amounts
  std::vector<double> amounts;  // by column, none negative
  std::vector<double> prices;   // by row: by how much the value grows with the row's limit
};

// The largest sum of amounts with, in each row, the sum of amount * column[row] <= limits[row].
// Exact up to rounding (simplex). REQUIRES: limits >= 0, and in every column some row with a
// positive limit takes something, so that the sum is finite.
Packed pack(const std::vector<std::vector<double>>& columns, const std::vector<double>& limits);

}  // namespace cutwater
