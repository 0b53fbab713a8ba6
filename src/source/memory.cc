// SPDX-License-Identifier: Apache-2.0
// open_memory: samples whose stored bytes are in memory.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <mutex>
#include <utility>

#include "core/sha256.h"
#include "cutwater/source.h"
#include "source/arena.h"
#include "source/labels.h"

namespace cutwater {
namespace {

class MemorySource final : public Source {
 public:
  MemorySource(const std::vector<std::span<const std::uint8_t>>& samples,
               std::vector<std::int64_t> labels, std::vector<std::string> classes)
      : labels_(std::move(labels)), classes_(std::move(classes)) {
    samples_.reserve(samples.size());
    for (const std::span<const std::uint8_t> bytes : samples) {
      std::uint8_t* const place = arena_.allocate(bytes.size());
      if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
      samples_.emplace_back(place, bytes.size());
    }
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }

  Result<Sample> read(SampleId id, const ReadContext&) const override {
    const std::span<std::uint8_t> bytes = samples_[static_cast<std::size_t>(id)];
    if (bytes.empty()) return Failure{Code::kBadSample, "is empty (0 bytes)", id, path(id), "read"};
    Sample sample;
    sample.id = id;
    sample.fields.reserve(2);
    const TensorSpec spec{DType::kU8, {static_cast<std::int64_t>(bytes.size())}};
    sample.fields.push_back({std::string(kImageField), Tensor::borrowed({spec, bytes.data()})});
    if (has_labels())
      sample.fields.push_back({std::string(kLabelField), borrowed_label(labels_, id)});
    return sample;
  }

  std::string path(SampleId id) const override { return "memory:" + std::to_string(id); }
  bool has_labels() const override { return !labels_.empty(); }
  std::int64_t label(SampleId id) const override { return labels_[static_cast<std::size_t>(id)]; }
  const std::vector<std::string>& classes() const override { return classes_; }

  // Of every byte: a second for ten gigabytes, and only where a state is saved or compared.
  std::string identity() const override {
    std::call_once(identified_, [this] {
      std::string text = "memory source 1 " + std::to_string(size());
      const auto add = [&](const void* bytes, std::size_t count) {
        const XXH128_hash_t hash = XXH3_128bits(bytes, count);
        XXH128_canonical_t portable;
        XXH128_canonicalFromHash(&portable, hash);
        text.append(reinterpret_cast<const char*>(portable.digest), sizeof portable.digest);
      };
      for (const std::span<std::uint8_t> bytes : samples_) add(bytes.data(), bytes.size());
      add(labels_.data(), labels_.size() * sizeof(std::int64_t));
      for (const std::string& name : classes_) text += '\0' + name;
      identity_ = sha256_hex(text);
    });
    return identity_;
  }

 private:
  Arena arena_;
  std::vector<std::span<std::uint8_t>> samples_;  // in the arena
  std::vector<std::int64_t> labels_;
  std::vector<std::string> classes_;
  mutable std::once_flag identified_;
  mutable std::string identity_;
};

}  // namespace

std::shared_ptr<const Source> open_memory(const std::vector<std::span<const std::uint8_t>>& samples,
                                          std::vector<std::int64_t> labels,
                                          std::vector<std::string> classes) {
  if (samples.empty())
    throw Error(Code::kInvalidArgument, "samples in memory: there is none; give at least one");
  check_labels("samples in memory", samples.size(), labels, classes,
               [](std::size_t i) { return "memory:" + std::to_string(i); });
  return std::make_shared<MemorySource>(samples, std::move(labels), std::move(classes));
}

}  // namespace cutwater
