// SPDX-License-Identifier: Apache-2.0
// Several clients of one server: storage seconds go to those who save most with them.
#include <algorithm>
#include <cmath>

#include "cutwater/error.h"
#include "cutwater/offload.h"
#include "plan/offload_steps.h"

namespace cutwater {
namespace {

// Takes from the front of its own pieces.
class Demand {
 public:
  explicit Demand(const OffloadTenant& tenant) : pieces_(tenant.pieces) {}

  bool done() const { return next_ == pieces_.size(); }
  double efficiency() const { return done() ? 0 : pieces_[next_].efficiency(); }

  // As much of the next piece as fits; what it took.
  double take(double threads) {
    const OffloadPiece& piece = pieces_[next_];
    const double taken = std::min(threads, piece.storage_s - used_);
    share_.threads += taken;
    share_.bytes_saved_per_s += taken * piece.efficiency();
    share_.price = piece.efficiency();
    used_ += taken;
    if (used_ >= piece.storage_s) {
      ++next_;
      used_ = 0;
    }
    if (done()) share_.price = 0;
    return taken;
  }

  // Up to so many threads in all, as far as it has a use for them.
  void fill(double threads) {
    while (!done() && threads > 0) threads -= take(threads);
  }

  const StorageShare& share() const { return share_; }

 private:
  const std::vector<OffloadPiece>& pieces_;
  std::size_t next_ = 0;
  double used_ = 0;  // of the next one
  StorageShare share_;
};

double saved(const OffloadTenant& tenant, double threads) {
  Demand demand(tenant);
  demand.fill(threads);
  return demand.share().bytes_saved_per_s;
}

}  // namespace

std::vector<OffloadPiece> worth_of_storage(const OffloadTable& table, double rows_per_s,
                                           std::size_t most) {
  std::vector<std::uint8_t> start;
  const std::vector<OffloadStep> steps = offload_steps(table, {}, 1, start);
  double all_s = 0;
  const auto seconds_of = [&](const OffloadStep& step) {
    const std::span<const OffloadOption> row = table.row(step.sample);
    return rows_per_s * (row[step.to].storage_s - row[step.from].storage_s);
  };
  for (const OffloadStep& step : steps) all_s += seconds_of(step);
  // Neighbors make one piece until it has its part of the seconds: efficiencies keep falling.
  std::vector<OffloadPiece> pieces;
  OffloadPiece piece;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const std::span<const OffloadOption> row = table.row(steps[k].sample);
    piece.storage_s += seconds_of(steps[k]);
    piece.bytes_saved += rows_per_s * (row[steps[k].from].bytes - row[steps[k].to].bytes);
    if (k + 1 < steps.size() && piece.storage_s * static_cast<double>(most) < all_s) continue;
    pieces.push_back(piece);
    piece = {};
  }
  return pieces;
}

std::vector<StorageShare> share_storage(std::span<const OffloadTenant> tenants, double threads) {
  double floors = 0;
  for (const OffloadTenant& tenant : tenants) floors += tenant.floor_threads;
  if (!(floors <= threads * (1 + 1e-12)))
    throw Error(Code::kInvalidArgument, "the floors of all tenants are " + std::to_string(floors) +
                                            " threads, and there are " + std::to_string(threads) +
                                            ": give smaller floors or more threads");
  std::vector<Demand> demands;
  for (const OffloadTenant& tenant : tenants) {
    demands.emplace_back(tenant).fill(tenant.floor_threads);
    threads -= demands.back().share().threads;
  }
  while (threads > 0) {
    const auto next = std::max_element(
        demands.begin(), demands.end(),
        [](const Demand& a, const Demand& b) { return a.efficiency() < b.efficiency(); });
    if (next == demands.end() || next->done()) break;
    threads -= next->take(threads);
  }
  std::vector<StorageShare> shares;
  for (const Demand& demand : demands) shares.push_back(demand.share());
  return shares;
}

std::vector<StorageShare> best_static_split(std::span<const OffloadTenant> tenants, double threads,
                                            int steps) {
  // best[j][k]: the most that the first j tenants save with k parts; last[j][k]: of them, tenant
  // j-1's.
  const auto parts = static_cast<std::size_t>(steps);
  const double part = threads / static_cast<double>(steps);
  std::vector<std::vector<double>> best(1, std::vector<double>(parts + 1));
  std::vector<std::vector<std::size_t>> last(1);
  for (const OffloadTenant& tenant : tenants) {
    std::vector<double> alone;
    for (std::size_t k = 0; k <= parts; ++k)
      alone.push_back(saved(tenant, part * static_cast<double>(k)));
    std::vector<double> most(parts + 1, -1);
    std::vector<std::size_t> own(parts + 1);
    for (std::size_t k = 0; k <= parts; ++k)
      for (std::size_t mine = 0; mine <= k; ++mine)
        if (const double sum = best.back()[k - mine] + alone[mine]; sum > most[k]) {
          most[k] = sum;
          own[k] = mine;
        }
    best.push_back(std::move(most));
    last.push_back(std::move(own));
  }
  std::vector<StorageShare> shares(tenants.size());
  std::size_t left = parts;
  for (std::size_t j = tenants.size(); j > 0; --j) {
    Demand demand(tenants[j - 1]);
    demand.fill(part * static_cast<double>(last[j][left]));
    shares[j - 1] = demand.share();
    shares[j - 1].threads = part * static_cast<double>(last[j][left]);
    left -= last[j][left];
  }
  return shares;
}

}  // namespace cutwater
