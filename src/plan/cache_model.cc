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

// To reserve room at a daemon and to tell it that it is filled, on both sides of the socket.
constexpr double kToldDaemonSeconds = 60e-6;

// What it takes besides ops to bring so many bytes to a cache, and from it.
struct Carriage {
  Carriage(const Profile& profile, bool processes) {
    copy_s = per(1, profile.memory_bytes_per_s);
    first_copy_s = per(1, profile.fresh_memory_bytes_per_s);
    if (!processes) return;
    // Other processes see no byte that is not checked, and a daemon's memory has its pages.
    const double check_s = profile.storage.check_per_byte_s;  // of what was just made
    copy_s += check_s;
    if (profile.shared_memory_bytes_per_s > 0)
      first_copy_s = per(1, profile.shared_memory_bytes_per_s);
    first_copy_s += check_s;
    told_s = kToldDaemonSeconds;
    hit_s = per(1, profile.checked_memory_bytes_per_s);
    first_hit_s = std::max(per(1, profile.shared_checked_bytes_per_s), hit_s);
  }

  double copy_s = 0, first_copy_s = 0, hit_s = 0, first_hit_s = 0;  // by the byte
  double told_s = 0;                                                // of a value
};

// The ops behind a fresh cut run one by one: an upper bound of what they take together.
FreshForm fresh_form(const Profile& profile, const Carriage& carriage, std::size_t at,
                     double slower) {
  const CutProfile& cut = profile.cuts[at];
  FreshForm form{cut.cut, cut.name, mean(cut.bytes), kLeastSeconds + profile.engine_s, 0};
  for (std::size_t later = at + 1; later < profile.cuts.size(); ++later)
    form.hit_s += slower * mean(profile.cuts[later].op_s);
  form.hit_s += slower * form.bytes * carriage.hit_s;
  form.put_s = slower * form.bytes * carriage.copy_s + carriage.told_s;
  // What is lent at the last cut is still copied into the batch.
  if (at + 1 == profile.cuts.size())
    form.hit_s += slower * per(form.bytes, profile.memory_bytes_per_s);
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

CacheModel::CacheModel(const Profile& profile, bool processes) {
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
  const Carriage carriage(profile, processes);
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
        const auto made = [&](double rest_s, double whole_s, double copy_s) {
          return slower * (std::max(cut.prefix_s[i] + rest_s, whole_s) + encode_s +
                           form.bytes[i] * copy_s) +
                 carriage.told_s;
        };
        const double before = miss_s[i] - slower * source.finish_s[i];
        form.until_s.push_back(before - profile.engine_s + slower * cut.prefix_s[i]);
        form.make_s.push_back(before + made(cut.finish_s[i], source.finish_s[i], carriage.copy_s));
        form.first_make_s.push_back(before +
                                    made(cut.first_s[i], source.first_s[i], carriage.first_copy_s));
        // What was just decoded is in the processor's caches; what is lent as it is comes from
        // memory. So it does where it was checked before: it is larger than the caches, or nearly.
        const double rest_s =
            form.name.codec.is_none() ? cut.memory_s[i] : variant->decode_s[i] + cut.finish_s[i];
        const auto hit = [&](double byte_s) {
          return kLeastSeconds + profile.engine_s + slower * (rest_s + form.bytes[i] * byte_s);
        };
        form.hit_s.push_back(hit(carriage.hit_s));
        form.first_hit_s.push_back(hit(carriage.first_hit_s));
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
    fresh.push_back(fresh_form(profile, carriage, k, slower));
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

Amounts CacheModel::first_hit(std::size_t form, std::size_t sample) const {
  return {forms[form].first_hit_s[sample], 0, 0, forms[form].bytes[sample]};
}

double CacheModel::mean_source_bytes() const { return mean(source_bytes); }

}  // namespace cutwater
