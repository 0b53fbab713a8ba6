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
  // Told where a value stands among all that are there, from 0 on: when it comes, and whenever that
  // changes.
  using Placed = std::function<void(Number number, std::size_t place)>;

  static constexpr double kLaterEpochs = 0.25;
  static constexpr double kLeastSeconds = 1e-6;  // what a value saves of which nobody knows it
  static constexpr int kLook = 64;               // values that are looked at for one that makes way
  static constexpr int kMostVictims = 64;        // that may make way for one value
  // So that those that are about equal do not drive each other out: to make one costs a stop at its
  // cut, and what others have begun to take is worth waiting for.
  static constexpr double kClearlyLess = 0.8;

  explicit Residents(Uses uses, Placed placed = {})
      : uses_(std::move(uses)), placed_(std::move(placed)) {}

  // REQUIRES: it is not there.
  void add(Number number, std::uint64_t bytes, double seconds);
  // REQUIRES: it is there.
  void remove(Number number);
  bool contains(Number number) const {
    return number < values_.size() && values_[number].bytes != 0;
  }
  std::size_t size() const { return there_.size(); }

  double worth(Number number) const;
  double density(Number number) const;
  static double worth_of(double seconds, double uses);

  // One that should make way for a value of `density`: of kLook from anywhere, the first that is
  // worth nothing, else the least dense, if that is clearly below. It stays until it is removed.
  // Values of one age are alike, because jobs go through them together: neighbours would often be
  // all still wanted while those of another age have been seen by everybody.
  std::optional<Number> victim(double density);
  // All of such kLook that are clearly below, the least dense first.
  std::vector<Number> victims(double density) { return victims(density, there_); }
  // The same, of some of those that are there.
  std::vector<Number> victims(double density, const std::vector<Number>& among);
  // The choice of victim(), among these.
  std::optional<Number> victim_among(const std::vector<Number>& numbers, double density) const;

  // The next that is worth nothing, of `look` from a hand that goes round; `look` says how many of
  // them it has not looked at yet.
  std::optional<Number> next_useless(std::size_t& look);

 private:
  struct Value {
    std::uint64_t bytes = 0;  // 0: not there
    float seconds = 0;
    Number place = 0;  // in there_
  };

 public:
  static constexpr std::size_t kBytesEach = sizeof(Value) + sizeof(Number);

 private:
  struct Least {
    std::optional<Number> number;
    double bound;  // what the next must be below
  };
  void consider(Number number, Least& least) const;
  void move(Number number, std::size_t place);
  std::vector<Number> some(const std::vector<Number>& among);

  Uses uses_;
  Placed placed_;
  std::vector<Value> values_;  // by number
  std::vector<Number> there_;
  std::size_t swept_ = 0;  // of there_: looked at in this round of the sweep
  std::uint64_t looks_ = 0;
};

}  // namespace cutwater::cache
