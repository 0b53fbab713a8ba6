// SPDX-License-Identifier: Apache-2.0
#include "stream_hash.h"

#include <xxhash.h>

#include <cstdio>

namespace cutwater::cli {
namespace {

std::string hex(XXH128_hash_t hash) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

}  // namespace

struct StreamHash::State {
  State() : stream(XXH3_createState()), sample(XXH3_createState()) { XXH3_128bits_reset(stream); }
  ~State() {
    XXH3_freeState(stream);
    XXH3_freeState(sample);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  XXH3_state_t* stream;
  XXH3_state_t* sample;
  XXH128_hash_t sum{0, 0};  // of the samples' hashes, modulo 2^128
};

StreamHash::StreamHash() : state_(std::make_unique<State>()) {}
StreamHash::~StreamHash() = default;

void StreamHash::add(const Batch& batch) {
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    const SampleId id = batch.ids[static_cast<std::size_t>(i)];
    XXH3_128bits_reset(state_->sample);
    XXH3_128bits_update(state_->sample, &id, sizeof id);
    for (const Batch::FieldView& field : batch.fields) {
      const std::size_t bytes = field.spec.bytes() / static_cast<std::size_t>(batch.size());
      XXH3_128bits_update(state_->sample, field.data + static_cast<std::size_t>(i) * bytes, bytes);
    }
    const XXH128_hash_t hash = XXH3_128bits_digest(state_->sample);
    XXH3_128bits_update(state_->stream, &hash, sizeof hash);
    state_->sum.low64 += hash.low64;
    state_->sum.high64 += hash.high64 + (state_->sum.low64 < hash.low64 ? 1 : 0);
  }
}

std::string StreamHash::stream() const { return hex(XXH3_128bits_digest(state_->stream)); }
std::string StreamHash::set() const { return hex(state_->sum); }

}  // namespace cutwater::cli
