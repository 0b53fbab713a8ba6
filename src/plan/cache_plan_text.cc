// SPDX-License-Identifier: Apache-2.0
// The plan of a shared cache in words.
#include <algorithm>
#include <cstdio>

#include "plan/cache_plan.h"
#include "plan/plan_text.h"

namespace cutwater {
namespace {

std::string jobs_text(int jobs) {
  return std::to_string(jobs) + (jobs == 1 ? " job" : " jobs at the same time");
}

std::string cache_text(const PlanOptions& options) {
  return options.memory_bytes
             ? "a cache of " + size_text(static_cast<double>(*options.memory_bytes))
             : "a cache without a limit";
}

std::string what_is_best(const Plan& plan, double unprepared) {
  const CachePlan& cache = *plan.cache;
  std::string text = plan.options.split.empty() ? "Best for " : "As given, for ";
  text += jobs_text(plan.options.jobs) + " and " + cache_text(plan.options) + ": ";
  text += cache.split.empty() ? "nothing is kept" : cache.split;
  if (!cache.fresh.empty()) text += ", and '" + cache.fresh + "' is handed from job to job";
  text += ". All jobs together get " + rate_text(cache.samples_per_s) + " samples/s";
  if (plan.options.jobs > 1) text += ", each " + rate_text(cache.per_job);
  return text + ", in the first epoch " + rate_text(cache.first_epoch_samples_per_s) +
         "; without the cache " + rate_text(unprepared) + ".";
}

std::string what_bounds(const Plan& plan) {
  const CachePlan& cache = *plan.cache;
  std::string text = "Bound by " + plan.choice.bound_by + ", with " + percent_text(cache.hit_rate) +
                     " of the samples from the cache";
  for (const ResourceUse& use : plan.resources)
    if (use.name != plan.choice.bound_by && use.name != "memory" && use.use >= 0.005)
      text += "; " + use.name + " is busy " + percent_text(std::min(use.use, 1.0)) + " of the time";
  text += ". ";
  const double saved = 0.01 * cache.price_s_per_byte * plan.choice.memory_bytes;
  return text + (saved > 0 ? "One percent more cache would shorten an epoch by " +
                                 duration_text(saved) + "."
                           : "More cache would not help.");
}

std::string what_passes(const Plan& plan) {
  const double resident = plan.choice.cached_share;
  std::string text = percent_text(resident) + " of the samples are resident from epoch to epoch";
  if (plan.options.jobs < 2) return text + ".";
  return text + "; of the others, what one job makes the others take soon after (" +
         size_text(plan.cache->window_bytes) + " on their way).";
}

std::string what_the_paper_says(const PaperPlan& paper, double ours) {
  char split[64];
  std::snprintf(split, sizeof split, "%.0f-%.0f-%.0f", 100 * paper.encoded, 100 * paper.decoded,
                100 * paper.augmented);
  return std::string("The Seneca paper's equations choose ") + split +
         " (encoded, decoded, augmented bytes) and promise " + rate_text(paper.samples_per_s) +
         " samples/s; by this model that split gives " + rate_text(paper.by_our_model) + ", " +
         percent_text(ours > 0 ? paper.by_our_model / ours : 0) + " of ours" +
         (paper.augmented > 0 ? "; its augmented samples are the same for all jobs." : ".");
}

}  // namespace

void put_cache_into_words(Plan& plan, const CacheFacts& facts) {
  const CachePlan& cache = *plan.cache;
  plan.reason.push_back(what_is_best(plan, facts.unprepared));
  plan.reason.push_back(what_bounds(plan));
  if (!cache.forms.empty()) plan.reason.push_back(what_passes(plan));
  if (cache.per_sample_choice > 1.01 * cache.samples_per_s)
    plan.reason.push_back("Had every sample the form that is best for it, " +
                          rate_text(cache.per_sample_choice) + " samples/s would be possible.");
  plan.reason.push_back(what_the_paper_says(cache.paper, cache.samples_per_s));

  if (facts.page_cache)
    plan.notes.push_back("Misses are taken to come from the page cache: storage is no bound.");
  else if (!facts.storage_known)
    plan.notes.push_back(
        "The profile has no rates of cold reads: storage is no bound here; give its rate.");
  if (plan.options.jobs > 1)
    plan.notes.push_back(
        "Jobs may take samples as they are ready (order ready); in strict order they take from the "
        "cache only what is resident.");
  if (facts.bad_share > 0)
    plan.notes.push_back(percent_text(facts.bad_share) +
                         " of the profiled samples were bad: that share is left out.");
}

std::string split_table(const Plan& plan) {
  const auto line = [](const char* form, const char* samples, const char* resident,
                       const char* bytes, const char* share) {
    char text[160];
    std::snprintf(text, sizeof text, "%-28s %9s %9s %10s %9s\n", form, samples, resident, bytes,
                  share);
    return std::string(text);
  };
  std::string text = line("form", "samples", "resident", "bytes", "of cache");
  for (const CacheForm& form : plan.cache->forms)
    text +=
        line(to_string(FormName{form.cut, form.cut_name, form.codec}).c_str(),
             percent_text(form.samples_share).c_str(), percent_text(form.resident_share).c_str(),
             size_text(form.bytes).c_str(), percent_text(form.bytes_share).c_str());
  text += "as an option: --split " +
          (plan.cache->split.empty() ? std::string("source=0") : plan.cache->split) + "\n";
  return text + "\n";
}

}  // namespace cutwater
