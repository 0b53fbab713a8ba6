// SPDX-License-Identifier: Apache-2.0
#include "plan/packing.h"

#include <algorithm>

namespace cutwater {
namespace {

constexpr double kZero = 1e-11;
// So many steps by the steepest gain, then by the first that gains, which cannot go in circles.
constexpr int kSteepest = 100, kMostSteps = 2000;

}  // namespace

Packed pack(const std::vector<std::vector<double>>& columns, const std::vector<double>& limits) {
  const std::size_t rows = limits.size(), count = columns.size(), slack = count;
  const std::size_t last = count + rows;  // the column of what is left
  // tableau[rows] is the gain of each column, negated.
  std::vector<std::vector<double>> tableau(rows + 1, std::vector<double>(last + 1));
  std::vector<std::size_t> basis(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t k = 0; k < count; ++k) tableau[r][k] = columns[k][r];
    tableau[r][slack + r] = 1;
    tableau[r][last] = limits[r];
    basis[r] = slack + r;
  }
  for (std::size_t k = 0; k < count; ++k) tableau[rows][k] = -1;

  for (int step = 0; step < kMostSteps; ++step) {
    std::size_t enters = last;
    for (std::size_t k = 0; k < last; ++k) {
      if (tableau[rows][k] >= -kZero) continue;
      if (enters == last || tableau[rows][k] < tableau[rows][enters]) enters = k;
      if (step >= kSteepest) break;
    }
    if (enters == last) break;
    std::size_t leaves = rows;
    for (std::size_t r = 0; r < rows; ++r) {
      if (tableau[r][enters] <= kZero) continue;
      const double ratio = tableau[r][last] / tableau[r][enters];
      const double best = leaves == rows ? 0 : tableau[leaves][last] / tableau[leaves][enters];
      if (leaves == rows || ratio < best || (ratio == best && basis[r] < basis[leaves])) leaves = r;
    }
    if (leaves == rows) break;
    const double pivot = tableau[leaves][enters];
    for (double& cell : tableau[leaves]) cell /= pivot;
    for (std::size_t r = 0; r <= rows; ++r) {
      const double times = tableau[r][enters];
      if (r == leaves || times == 0) continue;
      for (std::size_t k = 0; k <= last; ++k) tableau[r][k] -= times * tableau[leaves][k];
    }
    basis[leaves] = enters;
  }

  Packed packed;
  packed.value = tableau[rows][last];
  packed.amounts.resize(count);
  for (std::size_t r = 0; r < rows; ++r) {
    if (basis[r] < count) packed.amounts[basis[r]] = std::max(tableau[r][last], 0.0);
    packed.prices.push_back(std::max(tableau[rows][slack + r], 0.0));
  }
  return packed;
}

}  // namespace cutwater
