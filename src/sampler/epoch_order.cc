// SPDX-License-Identifier: Apache-2.0
#include "sampler/epoch_order.h"

#include <array>
#include <numeric>
#include <utility>

#include "cutwater/error.h"
#include "cutwater/rng.h"

namespace cutwater {
namespace {

// A stream of words as long as the data set. The last counter word is one that no sample's draws
// use: ids stay below 2^63.
class OrderWords {
 public:
  OrderWords(std::uint64_t seed, std::uint32_t epoch)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        epoch_(epoch) {}

  // Uniform in [0, n) without bias: the rare words that would favour small results are drawn again.
  std::uint32_t below(std::uint32_t n) {
    std::uint64_t product = std::uint64_t{next()} * n;
    if (static_cast<std::uint32_t>(product) < n) {
      const std::uint32_t unfair = -n % n;
      while (static_cast<std::uint32_t>(product) < unfair) product = std::uint64_t{next()} * n;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

 private:
  std::uint32_t next() {
    if (used_ == words_.size()) {
      words_ = philox4x32({block_++, epoch_, 0, 0xffffffffU}, key_);
      used_ = 0;
    }
    return words_[used_++];
  }

  std::array<std::uint32_t, 2> key_;
  std::uint32_t epoch_, block_ = 0;
  std::size_t used_ = 4;
  std::array<std::uint32_t, 4> words_{};
};

}  // namespace

EpochOrder EpochOrder::shuffled(std::int64_t size, std::uint64_t seed, std::uint32_t epoch) {
  if (size >= std::int64_t{1} << 32)
    throw Error(Code::kInvalidArgument, "a data set of " + std::to_string(size) +
                                            " samples is too large to shuffle (2^32)");
  EpochOrder order(size);
  order.shuffled_.resize(static_cast<std::size_t>(size));
  std::iota(order.shuffled_.begin(), order.shuffled_.end(), 0U);
  OrderWords words(seed, epoch);
  for (std::size_t i = order.shuffled_.size(); i > 1; --i)
    std::swap(order.shuffled_[i - 1], order.shuffled_[words.below(static_cast<std::uint32_t>(i))]);
  return order;
}

std::vector<std::uint32_t> EpochOrder::positions() const {
  std::vector<std::uint32_t> positions(shuffled_.size());
  for (std::size_t at = 0; at < shuffled_.size(); ++at)
    positions[shuffled_[at]] = static_cast<std::uint32_t>(at);
  return positions;
}

}  // namespace cutwater
