// SPDX-License-Identifier: Apache-2.0
// What a choice of options takes of each resource in an epoch.
#pragma once

#include <cstdint>
#include <vector>

#include "cutwater/offload.h"

namespace cutwater {

struct OffloadSums {
  double bytes = 0, storage_s = 0, compute_s = 0;

  void add(const OffloadOption& option);
  void move(const OffloadOption& from, const OffloadOption& to);
};

class OffloadModel {
 public:
  // A row stands for `weight` samples. REQUIRES: sound table and machine; both outlive this.
  OffloadModel(const OffloadTable& table, const OffloadMachine& machine, double weight);

  // Of rows that stand for so many times as many samples each.
  OffloadTimes times(const OffloadSums& sums, double times_weight = 1) const;
  OffloadSums sums(const std::vector<std::uint8_t>& choice) const;
  double bytes(const OffloadSums& sums) const { return weight_ * sums.bytes; }
  bool link_bounds() const { return link_ > 0; }

  // A lower bound of every epoch. All resources are busy no longer than the epoch lasts, so it is
  // no shorter than any weighted mean of what they take; and such a mean is least where every
  // sample takes the option that is least by itself. With a stride, an estimate of that from every
  // stride-th sample. REQUIRES: finite prices.
  double least_epoch_s(const OffloadPrices& prices, std::size_t stride = 1) const;

 private:
  const OffloadTable& table_;
  const double weight_, link_, storage_, compute_, consumer_s_;
};

}  // namespace cutwater
