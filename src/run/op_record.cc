// SPDX-License-Identifier: Apache-2.0
#include "run/op_record.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/thread_clock.h"
#include "cutwater/rng.h"

namespace cutwater {
namespace {

constexpr std::int64_t kEachEpoch = 256, kRarest = 64;
constexpr std::uint64_t kSeed = 0x6f70'7265'636f'7264;  // no loader's draws are the record's

double bytes_of(const Sample& sample) {
  std::size_t bytes = 0;
  for (const Field& field : sample.fields) bytes += field.tensor.spec().bytes();
  return static_cast<double>(bytes);
}

bool last_of_its_field(const std::vector<Step>& steps, Cut step) {
  const std::string_view field = steps[static_cast<std::size_t>(step)].op.def().field;
  return std::none_of(steps.begin() + step + 1, steps.end(),
                      [&](const Step& later) { return later.op.def().field == field; });
}

}  // namespace

OpRecord::OpRecord(std::int64_t data_samples)
    : every_(static_cast<std::uint64_t>(
          std::clamp<std::int64_t>(data_samples / kEachEpoch, 1, kRarest))) {}

bool OpRecord::is_to_be_drawn(SampleId id, std::uint32_t epoch) const {
  return Rng({kSeed, epoch, static_cast<std::uint64_t>(id), 0}).below(every_) == 0 &&
         content_.drawn.size() < kMostSamples && !content_.drawn.contains(id);
}

bool OpRecord::would_draw(SampleId id, std::uint32_t epoch) const {
  MutexLock lock(mutex_);
  return is_to_be_drawn(id, epoch);
}

bool OpRecord::draw(SampleId id, std::uint32_t epoch) {
  MutexLock lock(mutex_);
  return is_to_be_drawn(id, epoch) && content_.drawn.insert(id).second;
}

Result<Sample> OpRecord::run(const Pipeline& pipeline, Sample sample, const Draws& draws,
                             RunContext how, SlotProvider& slots,
                             const std::function<void(const Sample&)>& at_cut) {
  how.fuse = false;
  OpRow row{sample.id, {}, {0}};
  for (Cut cut = 0;; ++cut) {
    row.bytes.push_back(bytes_of(sample));
    at_cut(sample);
    if (cut == pipeline.last_cut()) break;
    how.slots = last_of_its_field(pipeline.steps(), cut) ? &slots : nullptr;
    std::optional<Result<Sample>> made;
    row.op_s.push_back(
        timed([&] { made = pipeline.run(std::move(sample), cut, cut + 1, draws, how); }));
    if (!*made) {
      MutexLock lock(mutex_);
      if (made->failure().code != Code::kBadSample) content_.failure = made->failure();
      return std::move(*made);
    }
    sample = std::move(*made).value();
  }
  MutexLock lock(mutex_);
  content_.rows.push_back(std::move(row));
  return sample;
}

OpRecord::Content OpRecord::content() const {
  MutexLock lock(mutex_);
  return content_;
}

}  // namespace cutwater
