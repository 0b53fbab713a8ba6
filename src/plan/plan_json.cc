// SPDX-License-Identifier: Apache-2.0
// A plan as JSON, and back.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "cutwater/error.h"
#include "cutwater/plan.h"

namespace cutwater {
namespace {

using nlohmann::ordered_json;

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

template <class T>
std::optional<T> optional_at(const ordered_json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return {};
  return found->get<T>();
}

// What is infinite has no number in JSON.
ordered_json finite_or_null(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

double infinite_if_null(const ordered_json& json) {
  return json.is_null() ? std::numeric_limits<double>::infinity() : json.get<double>();
}

ordered_json json_of(const OffloadOutcome& outcome) {
  ordered_json shares = ordered_json::array();
  for (const OffloadShare& one : outcome.shares)
    shares.push_back({{"option", to_string(one.variant)},
                      {"cut", one.variant.cut},
                      {"cut_name", one.variant.cut_name},
                      {"codec", to_string(one.variant.codec)},
                      {"excerpt", one.variant.excerpt},
                      {"samples_share", one.samples_share},
                      {"bytes", one.bytes}});
  return {{"policy", name_of(outcome.policy)},  {"bytes", outcome.bytes},
          {"epoch_s", outcome.times.epoch_s()}, {"t_g", outcome.times.consumer_s},
          {"t_cc", outcome.times.compute_s},    {"t_cs", outcome.times.storage_s},
          {"t_net", outcome.times.network_s},   {"shares", std::move(shares)}};
}

OffloadOutcome outcome_of(const ordered_json& json) {
  OffloadOutcome outcome;
  const auto policy = offload_policy(policy_named(json.at("policy").get<std::string>()));
  if (!policy) throw Error(Code::kInvalidArgument, "an offload has another policy than its own");
  outcome.policy = *policy;
  json.at("bytes").get_to(outcome.bytes);
  json.at("t_g").get_to(outcome.times.consumer_s);
  json.at("t_cc").get_to(outcome.times.compute_s);
  json.at("t_cs").get_to(outcome.times.storage_s);
  json.at("t_net").get_to(outcome.times.network_s);
  for (const ordered_json& one : json.at("shares"))
    outcome.shares.push_back(
        {{one.at("cut").get<Cut>(), one.at("cut_name").get<std::string>(),
          codec_named(one.at("codec").get<std::string>()), one.at("excerpt").get<bool>()},
         one.at("samples_share").get<double>(),
         one.at("bytes").get<double>()});
  return outcome;
}

ordered_json json_of(const OffloadPlan& offload) {
  ordered_json rows = ordered_json::array(), names = ordered_json::array();
  for (const OffloadPolicy policy : kOffloadPolicies) names.push_back(name_of(policy));
  for (const OffloadTraffic& row : offload.by_threads)
    rows.push_back(
        {{"storage_threads", row.storage_threads}, {"bytes", row.bytes}, {"epoch_s", row.epoch_s}});
  return {{"prices",
           {{"byte", offload.prices.byte},
            {"storage_s", finite_or_null(offload.prices.storage_s)},
            {"compute_s", offload.prices.compute_s}}},
          {"least_epoch_s", offload.least_epoch_s},
          {"policies", std::move(names)},
          {"by_threads", std::move(rows)}};
}

OffloadPlan offload_of(const ordered_json& json) {
  OffloadPlan offload;
  const ordered_json& prices = json.at("prices");
  offload.prices = {prices.at("byte").get<double>(), infinite_if_null(prices.at("storage_s")),
                    prices.at("compute_s").get<double>()};
  json.at("least_epoch_s").get_to(offload.least_epoch_s);
  for (const ordered_json& row : json.at("by_threads"))
    offload.by_threads.push_back({row.at("storage_threads").get<double>(),
                                  row.at("bytes").get<std::vector<double>>(),
                                  row.at("epoch_s").get<std::vector<double>>()});
  return offload;
}

ordered_json json_of(const Strategy& s) {
  ordered_json json = {{"cut", s.cut},
                       {"cut_name", s.cut_name},
                       {"codec", to_string(s.codec)},
                       {"place", name_of(s.place)},
                       {"cache", cache_name(s)},
                       {"build_s", s.build_s},
                       {"first_epoch_s", s.first_epoch_s},
                       {"epoch_s", s.epoch_s},
                       {"total_s", s.total_s},
                       {"by_product_total_s", s.by_product_total_s},
                       {"samples_per_s", s.samples_per_s},
                       {"disk_bytes", s.disk_bytes},
                       {"memory_bytes", s.memory_bytes},
                       {"cached_share", s.cached_share},
                       {"bound_by", s.bound_by},
                       {"break_even_epochs", or_null(s.break_even_epochs)},
                       {"feasible", s.feasible},
                       {"why_not", s.why_not}};
  if (s.money) json["money"] = *s.money;
  if (s.offload) json["offload"] = json_of(*s.offload);
  return json;
}

Place place_named(const std::string& name) {
  for (const Place place : {Place::kNone, Place::kStore, Place::kMemory})
    if (name_of(place) == name) return place;
  throw Error(Code::kInvalidArgument, "place must be none, store or memory, got '" + name + "'");
}

Strategy strategy_of(const ordered_json& json) {
  Strategy s;
  json.at("cut").get_to(s.cut);
  json.at("cut_name").get_to(s.cut_name);
  s.codec = codec_named(json.at("codec").get<std::string>());
  s.place = place_named(json.at("place").get<std::string>());
  s.page_cache = json.at("cache").get<std::string>() == "page";
  json.at("build_s").get_to(s.build_s);
  json.at("first_epoch_s").get_to(s.first_epoch_s);
  json.at("epoch_s").get_to(s.epoch_s);
  json.at("total_s").get_to(s.total_s);
  json.at("by_product_total_s").get_to(s.by_product_total_s);
  json.at("samples_per_s").get_to(s.samples_per_s);
  json.at("disk_bytes").get_to(s.disk_bytes);
  json.at("memory_bytes").get_to(s.memory_bytes);
  json.at("cached_share").get_to(s.cached_share);
  json.at("bound_by").get_to(s.bound_by);
  s.break_even_epochs = optional_at<std::int64_t>(json, "break_even_epochs");
  json.at("feasible").get_to(s.feasible);
  json.at("why_not").get_to(s.why_not);
  s.money = optional_at<double>(json, "money");
  if (const auto offload = json.find("offload"); offload != json.end())
    s.offload = outcome_of(*offload);
  return s;
}

ordered_json json_of(const Plan& plan, const CachePlan& cache) {
  ordered_json forms = ordered_json::array();
  for (const CacheForm& f : cache.forms)
    forms.push_back({{"cut", f.cut},
                     {"cut_name", f.cut_name},
                     {"codec", to_string(f.codec)},
                     {"samples_share", f.samples_share},
                     {"resident_share", f.resident_share},
                     {"bytes", f.bytes},
                     {"bytes_share", f.bytes_share}});
  return {{"jobs", plan.options.jobs},
          {"cache_bytes", or_null(plan.options.memory_bytes)},
          {"split", cache.split},
          {"forms", std::move(forms)},
          {"fresh", cache.fresh},
          {"hit_rate", cache.hit_rate},
          {"samples_per_s", cache.samples_per_s},
          {"per_job", cache.per_job},
          {"first_epoch_samples_per_s", cache.first_epoch_samples_per_s},
          {"per_sample_choice", cache.per_sample_choice},
          {"bound_by", plan.choice.bound_by},
          {"window_bytes", cache.window_bytes},
          {"price_s_per_byte", cache.price_s_per_byte},
          {"paper",
           {{"encoded", cache.paper.encoded},
            {"decoded", cache.paper.decoded},
            {"augmented", cache.paper.augmented},
            {"samples_per_s", cache.paper.samples_per_s},
            {"by_our_model", cache.paper.by_our_model}}}};
}

CachePlan cache_of(const ordered_json& json) {
  CachePlan cache;
  json.at("split").get_to(cache.split);
  for (const ordered_json& one : json.at("forms"))
    cache.forms.push_back({one.at("cut").get<Cut>(), one.at("cut_name").get<std::string>(),
                           codec_named(one.at("codec").get<std::string>()),
                           one.at("samples_share").get<double>(),
                           one.at("resident_share").get<double>(), one.at("bytes").get<double>(),
                           one.at("bytes_share").get<double>()});
  json.at("fresh").get_to(cache.fresh);
  json.at("hit_rate").get_to(cache.hit_rate);
  json.at("samples_per_s").get_to(cache.samples_per_s);
  json.at("per_job").get_to(cache.per_job);
  json.at("first_epoch_samples_per_s").get_to(cache.first_epoch_samples_per_s);
  json.at("per_sample_choice").get_to(cache.per_sample_choice);
  json.at("window_bytes").get_to(cache.window_bytes);
  json.at("price_s_per_byte").get_to(cache.price_s_per_byte);
  const ordered_json& paper = json.at("paper");
  cache.paper = {paper.at("encoded").get<double>(), paper.at("decoded").get<double>(),
                 paper.at("augmented").get<double>(), paper.at("samples_per_s").get<double>(),
                 paper.at("by_our_model").get<double>()};
  return cache;
}

ordered_json json_of(const PlanOptions& o) {
  ordered_json json = {{"disk_bytes", or_null(o.disk_bytes)},
                       {"memory_bytes", or_null(o.memory_bytes)},
                       {"threads", or_null(o.threads)},
                       {"consumer_samples_per_s", or_null(o.consumer_samples_per_s)},
                       {"residency", name_of(o.residency)},
                       {"prices", nullptr}};
  if (o.prices)
    json["prices"] = {{"disk_gb_month", o.prices->disk_gb_month},
                      {"core_hour", o.prices->core_hour},
                      {"months", o.prices->months}};
  if (offload_policy(o.policy)) {
    json["link_bytes_per_s"] = or_null(o.link_bytes_per_s);
    json["storage_threads"] = or_null(o.storage_threads);
    json["storage_speed"] = o.storage_speed;
  }
  if (o.policy != Policy::kSeneca) return json;
  json["cache_books"] = o.cache_books;
  json["jobs"] = o.jobs;
  json["same_seed"] = o.same_seed;
  json["processes"] = o.processes;
  json["storage_bytes_per_s"] = or_null(o.storage_bytes_per_s);
  json["cache_bytes_per_s"] = or_null(o.cache_bytes_per_s);
  json["link_bytes_per_s"] = or_null(o.link_bytes_per_s);
  json["window_samples"] = or_null(o.window_samples);
  json["split"] = o.split;
  return json;
}

PlanOptions options_of(const ordered_json& json) {
  PlanOptions o;
  o.disk_bytes = optional_at<std::uint64_t>(json, "disk_bytes");
  o.memory_bytes = optional_at<std::uint64_t>(json, "memory_bytes");
  o.threads = optional_at<int>(json, "threads");
  o.consumer_samples_per_s = optional_at<double>(json, "consumer_samples_per_s");
  o.residency = residency_named(json.at("residency").get<std::string>());
  if (const ordered_json& prices = json.at("prices"); !prices.is_null())
    o.prices = Prices{prices.at("disk_gb_month").get<double>(),
                      prices.at("core_hour").get<double>(), prices.at("months").get<double>()};
  o.cache_books = json.value("cache_books", 0.0);
  o.jobs = json.value("jobs", 1);
  o.same_seed = json.value("same_seed", false);
  o.processes = json.value("processes", false);
  o.storage_bytes_per_s = optional_at<double>(json, "storage_bytes_per_s");
  o.cache_bytes_per_s = optional_at<double>(json, "cache_bytes_per_s");
  o.link_bytes_per_s = optional_at<double>(json, "link_bytes_per_s");
  o.window_samples = optional_at<std::int64_t>(json, "window_samples");
  o.split = json.value("split", std::string());
  o.storage_threads = optional_at<double>(json, "storage_threads");
  o.storage_speed = json.value("storage_speed", 1.0);
  return o;
}

Plan plan_of(const ordered_json& json) {
  Plan plan;
  plan.options = options_of(json.at("budget"));
  plan.options.policy = policy_named(json.at("policy").get<std::string>());
  json.at("epochs").get_to(plan.options.epochs);
  json.at("data").get_to(plan.data);
  json.at("pipeline").get_to(plan.pipeline);
  json.at("fingerprint").get_to(plan.fingerprint);
  json.at("source_identity").get_to(plan.source_identity);
  json.at("samples").get_to(plan.samples);
  plan.choice = strategy_of(json.at("choice"));
  for (const ordered_json& one : json.at("alternatives"))
    plan.alternatives.push_back(strategy_of(one));
  for (const ordered_json& one : json.at("refused"))
    plan.refused.push_back({one.at("cut").get<Cut>(), one.at("cut_name").get<std::string>(),
                            codec_named(one.at("codec").get<std::string>()),
                            one.at("why").get<std::string>()});
  for (const auto& [name, one] : json.at("resources").items())
    plan.resources.push_back(
        {name, one.at("use").get<double>(), optional_at<double>(one, "price")});
  for (const ordered_json& one : json.at("what_if"))
    plan.what_if.push_back({one.at("when").get<std::string>(), one.at("choice").get<std::string>(),
                            one.at("total_s").get<double>(), one.at("differs").get<bool>()});
  if (const auto cache = json.find("cache"); cache != json.end()) plan.cache = cache_of(*cache);
  if (const auto offload = json.find("offload"); offload != json.end()) {
    plan.offload = offload_of(*offload);
    // Its tables have a column for each.
    bool whole = plan.choice.offload.has_value() && plan.options.storage_threads.has_value() &&
                 plan.options.threads.has_value();
    for (const Strategy& s : plan.alternatives) whole = whole && s.offload.has_value();
    if (!whole) throw Error(Code::kInvalidArgument, "a strategy has no 'offload', the plan has");
  }
  json.at("reason").get_to(plan.reason);
  json.at("notes").get_to(plan.notes);
  return plan;
}

}  // namespace

std::string to_json(const Plan& plan) {
  ordered_json json = {{"policy", name_of(plan.options.policy)},
                       {"epochs", plan.options.epochs},
                       {"samples_per_s", plan.choice.samples_per_s},
                       {"bound_by", plan.choice.bound_by},
                       {"total_s", plan.choice.total_s},
                       {"choice", json_of(plan.choice)},
                       {"reason", plan.reason},
                       {"notes", plan.notes},
                       {"alternatives", ordered_json::array()},
                       {"refused", ordered_json::array()},
                       {"resources", ordered_json::object()},
                       {"what_if", ordered_json::array()},
                       {"budget", json_of(plan.options)},
                       {"data", plan.data},
                       {"pipeline", plan.pipeline},
                       {"fingerprint", plan.fingerprint},
                       {"source_identity", plan.source_identity},
                       {"samples", plan.samples}};
  if (plan.cache) json["cache"] = json_of(plan, *plan.cache);
  if (plan.offload) json["offload"] = json_of(*plan.offload);
  for (const Strategy& s : plan.alternatives) json["alternatives"].push_back(json_of(s));
  for (const RefusedCodec& r : plan.refused)
    json["refused"].push_back(
        {{"cut", r.cut}, {"cut_name", r.cut_name}, {"codec", to_string(r.codec)}, {"why", r.why}});
  for (const ResourceUse& r : plan.resources)
    json["resources"][r.name] = {{"use", r.use}, {"price", or_null(r.price)}};
  for (const WhatIf& w : plan.what_if)
    json["what_if"].push_back(
        {{"when", w.when}, {"choice", w.choice}, {"total_s", w.total_s}, {"differs", w.differs}});
  // Names of files may be no UTF-8: what is not becomes the replacement character.
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

Plan plan_from_json(std::string_view text) {
  try {
    return plan_of(ordered_json::parse(text));
  } catch (const ordered_json::exception& error) {
    throw Error(Code::kInvalidArgument, std::string("this is no plan: ") + error.what());
  } catch (const Error& error) {
    throw Error(Code::kInvalidArgument, std::string("this is no plan: ") + error.what());
  }
}

}  // namespace cutwater
