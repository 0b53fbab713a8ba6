// SPDX-License-Identifier: Apache-2.0
#include "run/form_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "cutwater/error.h"

namespace cutwater {
namespace {

// What a thread reads of memory that is in no processor cache. A round figure of today's machines:
// it only keeps a cut of many bytes from looking free.
constexpr double kMemoryBytesPerSecond = 5e9;

constexpr double kTrialSeconds = 0.1;  // what trials take, roughly

// Shares are decimal fractions: their sum may miss 1 by a little.
constexpr double kRounding = 1e-9;

[[noreturn]] void refuse(const std::string& why) { throw Error(Code::kInvalidArgument, why); }

FormShare parse_share(const What& what, std::string_view part, const Codec& codec) {
  const std::size_t equals = part.rfind('=');
  double share = -1;
  const char* const end = part.data() + part.size();
  if (equals == std::string_view::npos ||
      std::from_chars(part.data() + equals + 1, end, share).ptr != end ||
      !(share >= 0 && share <= 1))
    refuse("cache split: each part must be CUT=SHARE or CUT:CODEC=SHARE, as in decode=0.5, got '" +
           std::string(part) + "'");
  const std::string_view form = part.substr(0, equals);
  const std::size_t colon = form.find(':');
  const Cut cut = given_cut("cache split", what, std::string(form.substr(0, colon))).cut;
  return {cut, colon == std::string_view::npos ? codec : codec_named(form.substr(colon + 1)),
          share};
}

// What some job has measured on these data and this pipeline, in the cache for all: jobs that chose
// by figures of their own would choose now this, now that, and keep their samples in each other's
// way.
CutTrials trials_of_all(const What& what, const CacheUse& use, const Codec& codec, bool fuse) {
  const CacheKey key{data_number(what.source->identity()),
                     form_number("cut trials 1\n" + what.pipeline.fingerprint(), codec), 0, 0};
  const auto there = [&]() -> std::optional<CutTrials> {
    const CacheValue value = use.cache->get(key);
    if (value.bytes().size() % sizeof(double) != 0) return std::nullopt;
    std::vector<double> numbers(value.bytes().size() / sizeof(double));
    if (!numbers.empty()) std::memcpy(numbers.data(), value.bytes().data(), value.bytes().size());
    return CutTrials::from_numbers(what, numbers);
  };
  if (std::optional<CutTrials> trials = there()) return std::move(*trials);
  CutTrials mine("cache", what, codec, kMemoryBytesPerSecond, fuse);
  const std::vector<double> numbers = mine.numbers();
  const std::size_t bytes = numbers.size() * sizeof(double);
  (void)use.cache->put(key, bytes, kTrialSeconds, [&](std::span<std::uint8_t> place) {
    std::memcpy(place.data(), numbers.data(), bytes);
  });
  std::optional<CutTrials> first = there();  // another's, if it was faster
  return first ? std::move(*first) : std::move(mine);
}

std::string per_cent(double share) { return std::to_string(std::lround(share * 100)) + " %"; }

}  // namespace

std::vector<FormShare> parse_split(const What& what, const std::string& text, const Codec& codec) {
  std::vector<FormShare> shares;
  double sum = 0;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    shares.push_back(parse_share(what, rest.substr(0, comma), codec));
    sum += shares.back().share;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (sum > 1 + kRounding)
    refuse("cache split: the shares of '" + text + "' are more than all samples; make them 1");
  return shares;
}

FormPlan one_form(const CutChoice& choice, const Codec& codec) {
  return {{{choice.cut, codec, 1}}, {}, choice.why};
}

FormPlan plan_forms(const What& what, const CacheUse& use, bool fuse) {
  const Codec codec = codec_named(use.codec);
  if (!use.cut.empty() && !use.split.empty())
    refuse("cache: give a cut or a split, not both: the split names its cuts");
  if (!use.cut.empty()) return one_form(given_cut("cache", what, use.cut), codec);
  if (use.split.empty()) {
    const bool with_others = use.cache->shared() || use.outlives_loader || use.jobs > 1;
    return {{},
            with_others ? trials_of_all(what, use, codec, fuse)
                        : CutTrials("cache", what, codec, kMemoryBytesPerSecond, fuse),
            {}};
  }
  FormPlan plan{parse_split(what, use.split, codec), {}, "as given:"};
  for (const FormShare& share : plan.shares)
    plan.why += (&share == plan.shares.data() ? " " : ", ") + per_cent(share.share) +
                " of the samples at '" + what.pipeline.cut_name(share.cut) + "'";
  return plan;
}

std::optional<Cut> fresh_cut(const What& what) {
  const Pipeline& pipeline = what.pipeline;
  std::optional<Cut> best;
  std::uint64_t fewest = UINT64_MAX;
  for (Cut cut = std::max(pipeline.frontier(), what.source->cut()) + 1; cut <= pipeline.last_cut();
       ++cut) {
    std::uint64_t bytes = 0;
    bool known = true;
    for (const auto& field : pipeline.fields_at(cut)) {
      known = known && field.second.shape.known();
      if (known) bytes += field.second.bytes();
    }
    if (!known || bytes > fewest) continue;
    best = cut;
    fewest = bytes;
  }
  return best;
}

}  // namespace cutwater
