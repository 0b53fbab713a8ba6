// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <utility>

#include "cutwater/error.h"
#include "cutwater/param.h"
#include "sim/sim.h"

namespace cutwater {
namespace {

constexpr int kSizes = 512;

// The middle of each of `count` equally likely parts of a normal distribution, by bisection of its
// distribution function: the same on every machine, and no generator is needed.
double normal_at(int part, int count) {
  const double target = (part + 0.5) / count;
  double low = -6, high = 6;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < target ? low : high) = middle;
  }
  return low;
}

void check(const SimMachine& machine) {
  const auto positive = [](const char* what, double value) {
    if (!(value > 0 && std::isfinite(value)))
      throw Error(Code::kInvalidArgument,
                  std::string(what) + " must be positive, got " + to_text(Value{value}));
  };
  positive("samples", static_cast<double>(machine.samples));
  positive("the bytes of a sample", machine.sample_bytes);
  positive("inflation", machine.inflation);
  positive("the rate of decoding", machine.decode_rate);
  positive("the rate of augmenting", machine.augment_rate);
  if (machine.augment_rate < machine.decode_rate)
    throw Error(Code::kInvalidArgument,
                "augmenting alone must not be slower than decoding and augmenting, got " +
                    to_text(Value{machine.augment_rate}) + " for " +
                    to_text(Value{machine.decode_rate}));
  if (!(machine.spread >= 0 && machine.spread <= 3))
    throw Error(Code::kInvalidArgument,
                "spread must be in 0..3, got " + to_text(Value{machine.spread}));
}

}  // namespace

Profile profile_of(const SimMachine& machine) {
  check(machine);
  const int count = machine.spread > 0 ? kSizes : 1;
  std::vector<double> size(static_cast<std::size_t>(count));
  double sum = 0;
  for (int i = 0; i < count; ++i)
    sum += size[static_cast<std::size_t>(i)] = std::exp(machine.spread * normal_at(i, count));
  for (double& one : size) one *= count / sum;  // so that the means are those given
  const auto column = [&](double value) {
    std::vector<double> values;
    for (const double one : size) values.push_back(one * value);
    return values;
  };
  Profile profile;
  profile.data = "simulated";
  profile.pipeline = "decode | augment";
  profile.data_samples = machine.samples;
  for (int i = 0; i < count; ++i) profile.ids.push_back(i);
  const double decode_s = 1 / machine.decode_rate, augment_s = 1 / machine.augment_rate;
  const double decoded_bytes = machine.inflation * machine.sample_bytes;
  const auto add = [&](const char* name, bool stable, double bytes, double prefix_s, double op_s,
                       double finish_s) {
    CutProfile& cut = profile.cuts.emplace_back();
    cut.cut = static_cast<Cut>(profile.cuts.size() - 1);
    cut.name = name;
    cut.stable = stable;
    cut.bytes = column(bytes);
    cut.op_s = column(op_s);
    cut.prefix_s = column(prefix_s);
    if (!stable) return;
    cut.finish_s = cut.first_s = cut.memory_s = column(finish_s);
    cut.variants.push_back(
        {{}, cut.bytes, std::vector<double>(size.size()), std::vector<double>(size.size())});
  };
  add("source", true, machine.sample_bytes, 0, 0, decode_s);
  add("decoded", true, decoded_bytes, decode_s - augment_s, decode_s - augment_s, augment_s);
  add("augmented", false, decoded_bytes, decode_s, augment_s, 0);
  return profile;
}

PlanOptions plan_options_of(const SimMachine& machine, const SimOptions& options) {
  const auto rate = [](double given) {
    return given > 0 ? std::optional<double>(given) : std::nullopt;
  };
  PlanOptions plan;
  plan.policy = Policy::kSeneca;
  plan.epochs = options.epochs;
  plan.memory_bytes = static_cast<std::uint64_t>(options.cache_bytes);
  plan.threads = 1;  // rates are those of the whole processor
  plan.residency = Residency::kCold;
  plan.jobs = options.jobs;
  if (machine.consumer_rate > 0) plan.consumer_samples_per_s = machine.consumer_rate / options.jobs;
  plan.storage_bytes_per_s = rate(machine.storage_bytes_per_s);
  plan.cache_bytes_per_s = rate(machine.cache_bytes_per_s);
  plan.link_bytes_per_s = rate(machine.link_bytes_per_s);
  plan.split = options.split;
  return plan;
}

}  // namespace cutwater
