// SPDX-License-Identifier: Apache-2.0
// Residents: which value makes way. The policy alone, without memory, keys or threads: whoever owns
// the values says what each is of use for. The cache and the planner's simulator decide by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace cutwater::cache {

// What a value is worth: seconds that it will save. By the byte: its density.
class Residents {
 public:
  using Number =
      std::uint32_t;  // of a value, given by its owner; small numbers, they index a table
  // How many times it will be used: the jobs that have yet to see it in their epoch, and
  // kLaterEpochs for a stable one. 0: nobody can use it any more.
  using Uses = std::function<double(Number)>;

  static constexpr double kLaterEpochs = 0.25;
  static constexpr double kLeastSeconds = 1e-6;  // what a value saves of which nobody knows it
  static constexpr int kLook = 64;               // values that are looked at for one that makes way
  static constexpr int kMostVictims = 64;        // that may make way for one value
  static constexpr double kClearlyLess = 0.8;    // so that equal ones do not drive each other out

  explicit Residents(Uses uses) : uses_(std::move(uses)) {}

  // REQUIRES: it is not there. The newest.
  void add(Number number, std::uint64_t bytes, double seconds);
  // REQUIRES: it is there.
  void remove(Number number);
  bool contains(Number number) const {
    return number < values_.size() && values_[number].bytes != 0;
  }
  std::size_t size() const { return size_; }

  double worth(Number number) const;
  double density(Number number) const;
  static double worth_of(double seconds, double uses);

  // One that should make way for a value of `density`: of the next kLook from a hand that goes
  // round from the oldest to the newest, the first that is worth nothing, else the least dense, if
  // that is clearly below. It stays until it is removed.
  std::optional<Number> victim(double density);
  // The same choice, among these.
  std::optional<Number> victim_among(const std::vector<Number>& numbers, double density) const;

  // The next that is worth nothing, of `look` from another hand; `look` says how many of them it
  // has not looked at yet.
  std::optional<Number> next_useless(std::size_t& look);

 private:
  static constexpr Number kNone = ~Number{0};
  struct Value {
    std::uint64_t bytes = 0;  // 0: not there
    float seconds = 0;
    Number older = kNone, newer = kNone;
  };

 public:
  static constexpr std::size_t kBytesEach = sizeof(Value);

 private:
  struct Least {
    std::optional<Number> number;
    double bound;  // what the next must be below
  };
  void consider(Number number, Least& least) const;
  Number step(Number& hand);  // what the hand stood at; it goes on to the next

  Uses uses_;
  std::vector<Value> values_;  // by number, linked by age
  Number oldest_ = kNone, newest_ = kNone, hand_ = kNone, sweep_hand_ = kNone;
  std::size_t size_ = 0;
};

}  // namespace cutwater::cache
