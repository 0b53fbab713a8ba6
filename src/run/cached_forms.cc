// SPDX-License-Identifier: Apache-2.0
#include "run/cached_forms.h"

#include <algorithm>
#include <utility>

#include "cutwater/error.h"
#include "variant/form.h"

namespace cutwater {
namespace {

// What a thread reads of memory that is in no processor cache. A round figure of today's machines:
// it only keeps a cut of many bytes from looking free.
constexpr double kMemoryBytesPerSecond = 5e9;

}  // namespace

CutChoice cut_to_cache(const What& what, const CacheUse& use, bool fuse) {
  if (!use.cut.empty()) return given_cut("cache", what, use.cut);
  const CacheStats now = use.cache->stats();
  return choose_cut("cache", what, codec_named(use.codec),
                    now.limit - std::min(now.bytes, now.limit), kMemoryBytesPerSecond, fuse);
}

CachedForms::CachedForms(const What& what, const CacheUse& use, CutChoice choice)
    : cache_(use.cache),
      codec_(codec_named(use.codec)),
      choice_(std::move(choice)),
      cut_name_(what.pipeline.cut_name(choice_.cut)),
      data_(data_number(what.source->identity())),
      form_(form_number(what.pipeline.fingerprint(choice_.cut), codec_)) {}

std::optional<Kept> CachedForms::find(SampleId id, const ReadContext& into, KeeperWork& work) {
  const Timed timed(work.cache_ns);
  const CacheValue value = cache_->get(key(id));
  if (!value) return std::nullopt;
  try {
    return Kept{read_form({value.bytes(), value.hold(), &into.pool, into.reserve,
                           into.pool.limit_bytes(), checksum()},
                          id, choice_.cut),
                From::kCache};
  } catch (const Error& error) {
    if (error.code() != Code::kBadSample) throw;
    damaged_.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }
}

// As long as there is room for a sample of the usual size: to stop at a cut in vain costs time.
std::optional<Cut> CachedForms::wants(SampleId) {
  const std::int64_t offered = offered_.load(std::memory_order_relaxed);
  const std::int64_t bytes = offered_bytes_.load(std::memory_order_relaxed);
  const auto usual = static_cast<std::size_t>(bytes / std::max<std::int64_t>(offered, 1));
  if (!cache_->has_room(usual)) return std::nullopt;
  return choice_.cut;
}

void CachedForms::keep(const Sample& sample, KeeperWork& work) try {
  const Timed timed(work.cache_ns);
  const FormWriter form(sample, codec_, checksum());
  const auto size = static_cast<std::int64_t>(form.size());
  offered_bytes_.fetch_add(size, std::memory_order_relaxed);
  offered_.fetch_add(1, std::memory_order_relaxed);
  if (!cache_->put(key(sample.id), form.size(), 0,
                   [&form](std::span<std::uint8_t> place) { form.write(place); })) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  kept_bytes_.fetch_add(size, std::memory_order_relaxed);
  kept_.fetch_add(1, std::memory_order_relaxed);
} catch (...) {  // out of memory, or a back end's trouble: the sample is there all the same
  refused_.fetch_add(1, std::memory_order_relaxed);
}

CacheReport CachedForms::report(std::int64_t hits, std::int64_t misses) const {
  const CacheStats all = cache_->stats();
  CacheReport report;
  report.hits = hits;
  report.misses = misses;
  report.damaged = damaged_;
  report.refused = refused_;
  report.forms.push_back({cut_name_, kept_, hits, static_cast<std::size_t>(kept_bytes_)});
  report.entries = all.entries;
  report.bytes = all.bytes;
  report.limit = all.limit;
  report.cut = cut_name_;
  report.codec = to_string(codec_);
  report.why = choice_.why;
  return report;
}

}  // namespace cutwater
