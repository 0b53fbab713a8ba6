// SPDX-License-Identifier: Apache-2.0
#include "plan/offload_model.h"

#include <algorithm>
#include <cmath>

#include "plan/offload_steps.h"

namespace cutwater {

void OffloadSums::add(const OffloadOption& option) {
  bytes += option.bytes;
  storage_s += option.storage_s;
  compute_s += option.compute_s;
}

void OffloadSums::move(const OffloadOption& from, const OffloadOption& to) {
  bytes += to.bytes - from.bytes;
  storage_s += to.storage_s - from.storage_s;
  compute_s += to.compute_s - from.compute_s;
}

OffloadModel::OffloadModel(const OffloadTable& table, const OffloadMachine& machine, double weight)
    : table_(table),
      weight_(weight),
      link_(std::isfinite(machine.link_bytes_per_s) ? machine.link_bytes_per_s : 0),
      storage_(machine.storage_threads * machine.storage_speed),
      compute_(machine.compute_threads),
      consumer_s_(machine.consumer_samples_per_s ? weight * static_cast<double>(table.samples()) /
                                                       *machine.consumer_samples_per_s
                                                 : 0) {}

OffloadTimes OffloadModel::times(const OffloadSums& sums, double times_weight) const {
  const double weight = weight_ * times_weight;
  OffloadTimes times;
  times.consumer_s = consumer_s_;
  times.compute_s = weight * sums.compute_s / compute_;
  // Without storage threads nobody makes anything but raw samples, which need none.
  times.storage_s = storage_ > 0 ? weight * sums.storage_s / storage_ : 0;
  times.network_s = link_ > 0 ? weight * sums.bytes / link_ : 0;
  return times;
}

OffloadSums OffloadModel::sums(const std::vector<std::uint8_t>& choice) const {
  OffloadSums sums;
  for (std::size_t i = 0; i < choice.size(); ++i) sums.add(table_.row(i)[choice[i]]);
  return sums;
}

double OffloadModel::least_epoch_s(const OffloadPrices& prices, std::size_t stride) const {
  // A resource without a bound has no part in the mean.
  const double byte = link_ > 0 ? prices.byte : 0;
  const double whole = byte * link_ + prices.storage_s * storage_ + prices.compute_s * compute_;
  if (!(whole > 0 && std::isfinite(whole))) return consumer_s_;
  double sum = 0, rows = 0;
  for (std::size_t i = 0; i < table_.samples(); i += stride, ++rows) {
    double least = std::numeric_limits<double>::infinity();
    for (const OffloadOption& o : table_.row(i))
      if (exists(o))
        least = std::min(least, byte * o.bytes + prices.storage_s * o.storage_s +
                                    prices.compute_s * o.compute_s);
    sum += least;
  }
  const double weight = weight_ * static_cast<double>(table_.samples()) / rows;
  return std::max(consumer_s_, weight * sum / whole);
}

}  // namespace cutwater
