// SPDX-License-Identifier: Apache-2.0
#include "plan/cache_model.h"

#include <algorithm>
#include <numeric>

#include "plan/cost_model.h"

namespace cutwater {
namespace {

// A sample takes some time of a thread, whatever a profile says.
constexpr double kLeastSeconds = 1e-9;

double per(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

double mean(const std::vector<double>& column) {
  return column.empty() ? 0
                        : std::accumulate(column.begin(), column.end(), 0.0) /
                              static_cast<double>(column.size());
}

// The ops behind a fresh cut run one by one: an upper bound of what they take together.
FreshForm fresh_form(const Profile& profile, std::size_t at, double slower) {
  const CutProfile& cut = profile.cuts[at];
  FreshForm form{cut.cut, cut.name, mean(cut.bytes), kLeastSeconds + profile.engine_s, 0};
  for (std::size_t later = at + 1; later < profile.cuts.size(); ++later)
    form.hit_s += slower * mean(profile.cuts[later].op_s);
  form.put_s = slower * per(form.bytes, profile.memory_bytes_per_s);
  // What is lent at the last cut is still copied into the batch.
  if (at + 1 == profile.cuts.size()) form.hit_s += form.put_s;
  return form;
}

}  // namespace

void Amounts::add(double times, const Amounts& other) {
  cpu_s += times * other.cpu_s;
  reads += times * other.reads;
  read_bytes += times * other.read_bytes;
  cache_bytes += times * other.cache_bytes;
}

Demand::Demand(const Amounts& amounts, const SharedRates& rates) {
  seconds[kCpu] = amounts.cpu_s / rates.threads;
  seconds[kReads] = per(amounts.reads, rates.storage.reads_per_s);
  seconds[kStorage] = per(amounts.read_bytes, rates.storage.bytes_per_s);
  seconds[kCache] = per(amounts.cache_bytes, rates.cache_bytes_per_s);
  seconds[kLink] = per(amounts.read_bytes + amounts.cache_bytes, rates.link_bytes_per_s);
}

double Demand::longest() const { return *std::max_element(seconds.begin(), seconds.end()); }

std::string to_string(const FormName& form) {
  return form.codec.is_none() ? form.cut_name : form.cut_name + ":" + to_string(form.codec);
}

CacheModel::CacheModel(const Profile& profile) {
  const CostModel checked(profile);  // every column that is used here fits, is finite and positive
  samples = checked.samples();
  const StorageProfile& storage = profile.storage;
  const double read_s = profile.reads_files ? storage.warm_file_s : storage.warm_part_s;
  const double slower = checked.slower();
  const std::size_t count = profile.ids.size();
  const CutProfile& source = profile.cuts.front();
  source_bytes = source.bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const double before = kLeastSeconds + profile.engine_s +
                          slower * (read_s + source.bytes[i] * storage.warm_per_byte_s);
    miss_s.push_back(before + slower * source.finish_s[i]);
    first_miss_s.push_back(before + slower * source.first_s[i]);
  }
  const double fresh_rate = profile.shared_memory_bytes_per_s > 0
                                ? profile.shared_memory_bytes_per_s
                                : profile.fresh_memory_bytes_per_s;
  for (std::size_t k = 0; k < checked.cuts().size(); ++k) {
    const CutProfile& cut = profile.cuts[k];
    const VariantMeans& plain = checked.cuts()[k].variants.front();
    const auto add = [&](const VariantProfile* variant) {  // null: as it is, and never measured so
      FormColumns form;
      form.name = {cut.cut, cut.name, variant != nullptr ? variant->codec : Codec{}};
      form.bytes = variant != nullptr ? variant->bytes : cut.bytes;
      for (std::size_t i = 0; i < count; ++i) {
        // A run that stops at the cut on its way is never faster than one that does not. What goes
        // into the cache for the first time goes into memory that nobody has used before.
        const double encode_s = variant != nullptr ? variant->encode_s[i] : 0;
        const auto made = [&](double rest_s, double whole_s, double copy_rate) {
          return slower * (std::max(cut.prefix_s[i] + rest_s, whole_s) + encode_s +
                           per(form.bytes[i], copy_rate));
        };
        const double before = miss_s[i] - slower * source.finish_s[i];
        form.until_s.push_back(before - profile.engine_s + slower * cut.prefix_s[i]);
        form.make_s.push_back(
            before + made(cut.finish_s[i], source.finish_s[i], profile.memory_bytes_per_s));
        form.first_make_s.push_back(before + made(cut.first_s[i], source.first_s[i], fresh_rate));
        // What was just decoded is in the processor's caches; what is lent as it is comes from
        // memory.
        form.hit_s.push_back(kLeastSeconds + profile.engine_s +
                             slower * (form.name.codec.is_none()
                                           ? cut.memory_s[i]
                                           : variant->decode_s[i] + cut.finish_s[i]));
      }
      forms.push_back(std::move(form));
    };
    decoded = forms.size();
    const auto raw = std::find_if(cut.variants.begin(), cut.variants.end(),
                                  [](const VariantProfile& v) { return v.codec.is_none(); });
    add(raw != cut.variants.end() ? &*raw : nullptr);
    for (const VariantProfile& variant : cut.variants)
      if (!variant.codec.is_none() && mean(variant.bytes) < plain.bytes) add(&variant);
  }
  for (std::size_t k = checked.cuts().size(); k < profile.cuts.size(); ++k)
    fresh.push_back(fresh_form(profile, k, slower));
}

Amounts CacheModel::miss(std::size_t sample) const {
  return {miss_s[sample], 1, source_bytes[sample], 0};
}

Amounts CacheModel::make(std::size_t form, std::size_t sample) const {
  return {forms[form].make_s[sample], 1, source_bytes[sample], forms[form].bytes[sample]};
}

Amounts CacheModel::hit(std::size_t form, std::size_t sample) const {
  return {forms[form].hit_s[sample], 0, 0, forms[form].bytes[sample]};
}

double CacheModel::mean_source_bytes() const { return mean(source_bytes); }

}  // namespace cutwater
