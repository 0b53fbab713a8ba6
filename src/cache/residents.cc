// SPDX-License-Identifier: Apache-2.0
#include "cache/residents.h"

#include <algorithm>

namespace cutwater::cache {
namespace {

// Numbers that follow one another become such that do not (the finisher of SplitMix64).
std::uint64_t mixed(std::uint64_t x) {
  x = (x + 1) * 0x9e3779b97f4a7c15U;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

}  // namespace

void Residents::add(Number number, std::uint64_t bytes, double seconds) {
  if (number >= values_.size()) values_.resize(std::size_t{number} + 1);
  values_[number] = {std::max<std::uint64_t>(bytes, 1), static_cast<float>(seconds), 0};
  there_.push_back(number);
  move(number, there_.size() - 1);
}

void Residents::remove(Number number) {
  // Another takes its place: the last of those that were swept, and then the last of all.
  std::size_t place = values_[number].place;
  if (place < swept_) {
    --swept_;
    if (place != swept_) move(there_[swept_], place);
    place = swept_;
  }
  if (place != there_.size() - 1) move(there_.back(), place);
  there_.pop_back();
  values_[number] = {};
}

void Residents::move(Number number, std::size_t place) {
  there_[place] = number;
  values_[number].place = static_cast<Number>(place);
  if (placed_) placed_(number, place);
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
  if (there_.size() <= kLook) return victim_among(there_, density);
  for (int i = 0; i < kLook && least.bound > 0; ++i)
    consider(there_[mixed(looks_++) % there_.size()], least);
  return least.number;
}

// kLook of them, from anywhere; all, where there are no more.
std::vector<Residents::Number> Residents::some(const std::vector<Number>& among) {
  if (among.size() <= kLook) return among;
  std::vector<Number> looked(kLook);
  for (Number& number : looked) number = among[mixed(looks_++) % among.size()];
  std::ranges::sort(looked);
  looked.erase(std::unique(looked.begin(), looked.end()), looked.end());
  return looked;
}

std::vector<Residents::Number> Residents::victims(double density,
                                                  const std::vector<Number>& among) {
  std::vector<std::pair<double, Number>> below;
  for (const Number number : some(among))
    if (const double its = this->density(number); its < kClearlyLess * density)
      below.emplace_back(its, number);
  std::ranges::sort(below);
  std::vector<Number> numbers;
  for (const auto& [its, number] : below) numbers.push_back(number);
  return numbers;
}

std::optional<Residents::Number> Residents::victim_among(const std::vector<Number>& numbers,
                                                         double density) const {
  Least least{std::nullopt, kClearlyLess * density};
  for (const Number number : numbers) consider(number, least);
  return least.number;
}

std::optional<Residents::Number> Residents::next_useless(std::size_t& look) {
  for (look = std::min(look, there_.size()); look > 0;) {
    --look;
    if (swept_ >= there_.size()) swept_ = 0;
    const Number number = there_[swept_++];
    if (uses_(number) <= 0) return number;
  }
  return std::nullopt;
}

}  // namespace cutwater::cache
