// SPDX-License-Identifier: Apache-2.0
// CachedForms: keeps samples at one stable cut in a Cache, as many as it takes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cutwater/cache.h"
#include "cutwater/options.h"
#include "run/cut_choice.h"
#include "run/form_keeper.h"
#include "variant/form.h"

namespace cutwater {

// The cut that was asked for, or that pays in this cache. Throws as choose_cut() and given_cut()
// do.
CutChoice cut_to_cache(const What& what, const CacheUse& use, bool fuse);

class CachedForms final : public FormKeeper {
 public:
  // REQUIRES: use.cache; a stable cut, not before the source's.
  CachedForms(const What& what, const CacheUse& use, CutChoice choice);

  std::optional<Kept> find(SampleId id, const ReadContext& into, KeeperWork& work) override;
  std::optional<Cut> wants(SampleId id) override;
  void keep(const Sample& sample, KeeperWork& work) override;

  // `hits` and `misses` of the engine, which knows what became of them.
  CacheReport report(std::int64_t hits, std::int64_t misses) const;

 private:
  CacheKey key(SampleId id) const { return {data_, form_, id, 0}; }
  Checksum checksum() const { return cache_->shared() ? Checksum::kXxh3 : Checksum::kNone; }

  const std::shared_ptr<Cache> cache_;
  const Codec codec_;
  const CutChoice choice_;
  const std::string cut_name_;
  const std::uint64_t data_, form_;
  std::atomic<std::int64_t> damaged_{0}, refused_{0};
  std::atomic<std::int64_t> offered_{0}, offered_bytes_{0}, kept_{0}, kept_bytes_{0};
};

}  // namespace cutwater
