// SPDX-License-Identifier: Apache-2.0
#include "cache/residents.h"

#include <algorithm>

namespace cutwater::cache {

void Residents::add(Number number, std::uint64_t bytes, double seconds) {
  if (number >= values_.size()) values_.resize(std::size_t{number} + 1);
  values_[number] = {std::max<std::uint64_t>(bytes, 1), static_cast<float>(seconds), newest_,
                     kNone};
  (newest_ == kNone ? oldest_ : values_[newest_].newer) = number;
  newest_ = number;
  ++size_;
}

void Residents::remove(Number number) {
  const Value value = values_[number];
  (value.older == kNone ? oldest_ : values_[value.older].newer) = value.newer;
  (value.newer == kNone ? newest_ : values_[value.newer].older) = value.older;
  for (Number* const hand : {&hand_, &sweep_hand_})
    if (*hand == number) *hand = value.newer;
  values_[number] = {};
  --size_;
}

double Residents::worth_of(double seconds, double uses) {
  return (seconds > kLeastSeconds ? seconds : kLeastSeconds) * uses;  // also where it is no number
}

double Residents::worth(Number number) const {
  return worth_of(static_cast<double>(values_[number].seconds), uses_(number));
}

double Residents::density(Number number) const {
  return worth(number) / static_cast<double>(values_[number].bytes);
}

void Residents::consider(Number number, Least& least) const {
  const double its = density(number);
  if (its >= least.bound) return;
  least = {number, its};
}

std::optional<Residents::Number> Residents::victim(double density) {
  Least least{std::nullopt, kClearlyLess * density};
  const auto look = static_cast<int>(std::min<std::size_t>(size_, kLook));
  for (int i = 0; i < look && least.bound > 0; ++i) consider(step(hand_), least);
  return least.number;
}

std::optional<Residents::Number> Residents::victim_among(const std::vector<Number>& numbers,
                                                         double density) const {
  Least least{std::nullopt, kClearlyLess * density};
  for (const Number number : numbers) consider(number, least);
  return least.number;
}

std::optional<Residents::Number> Residents::next_useless(std::size_t& look) {
  for (look = std::min(look, size_); look > 0;) {
    --look;
    const Number number = step(sweep_hand_);
    if (uses_(number) <= 0) return number;
  }
  return std::nullopt;
}

Residents::Number Residents::step(Number& hand) {
  const Number at = hand == kNone ? oldest_ : hand;
  hand = values_[at].newer;
  return at;
}

}  // namespace cutwater::cache
