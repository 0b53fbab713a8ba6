// SPDX-License-Identifier: Apache-2.0
#include "run/cached_forms.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <utility>

#include "cutwater/error.h"
#include "cutwater/rng.h"
#include "variant/form.h"

namespace cutwater {
namespace {

constexpr std::uint64_t kSeed = 0x666f'726d'2073'706c;  // no loader's draws say who is kept where
constexpr std::size_t kMostOffered = 32;                // JobOffer::forms
constexpr double kNobodyKnows = 1e9;  // seconds: what was never made may save any number of them

std::string default_job() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return std::string(host.data()) + "-" + std::to_string(getpid());
}

// Where one of several jobs begins to look: of equal ones, each somewhere else.
std::uint64_t beginning_of(const std::string& job, std::uint64_t seed) {
  return std::hash<std::string>{}(job + "\n" + std::to_string(getpid()) + "\n" +
                                  std::to_string(seed));
}

// A listing, and, where the cache may hold forms of its earlier state, the state of its files.
std::uint64_t data_of(const What& what, const CacheUse& use) {
  std::string identity = what.source->identity();
  if (use.cache->shared() || use.outlives_loader) identity += "\n" + what.source->stamp();
  return data_number(identity);
}

bool all_present(const Sample& sample) {
  return std::ranges::all_of(sample.fields, [](const Field& field) {
    return field.tensor.view().present() == whole(field.tensor.spec());
  });
}

}  // namespace

CachedForms::CachedForms(const What& what, const CacheUse& use, FormPlan plan)
    : what_(what),
      cache_(use.cache),
      codec_(codec_named(use.codec)),
      jobs_expected_(std::max(use.jobs, use.cache->shared() ? 2 : 1)),
      plan_(std::move(plan)),
      data_(data_of(what, use)),
      made_(static_cast<std::size_t>(what.source->size())) {
  if (const std::optional<Cut> cut = fresh_cut(what)) fresh_ = add(*cut, codec_);
  // Other jobs may have chosen otherwise: what they have kept will do.
  for (Cut cut = what.pipeline.frontier(); cut >= what.source->cut(); --cut) {
    for (const FormShare& share : plan_.shares)
      if (share.cut == cut) (void)add(cut, share.codec);
    if (plan_.trials) (void)add(cut, codec_);
    (void)add(cut, {});
  }
  for (const FormShare& share : plan_.shares) shares_.push_back(at(share.cut, share.codec));

  JobOffer offer{use.job.empty() ? default_job() : use.job, data_, what.source->size(), {}};
  for (const Form& form : forms_)
    if (offer.forms.size() < kMostOffered) offer.forms.push_back(form.number);
  looked_at_ = beginning_of(offer.name, what.seed);
  if (auto seat = cache_->seat(offer)) seat_.emplace(std::move(seat));
  {
    MutexLock lock(mutex_);
    trials_ = plan_.trials;
    why_ = plan_.why;
  }
  if (plan_.trials) choose_again();
}

CachedForms::Form* CachedForms::add(Cut cut, const Codec& codec) {
  Form* const there = at(cut, codec);
  return there != nullptr ? there : &forms_.emplace_back(what_.pipeline, cut, codec);
}

CachedForms::Form* CachedForms::at(Cut cut, const Codec& codec) {
  const auto found = std::ranges::find_if(
      forms_, [&](const Form& form) { return form.cut == cut && form.codec == codec; });
  return found == forms_.end() ? nullptr : &*found;
}

CacheKey CachedForms::key(const Form& form, Turn turn) const {
  return {data_, form.number, turn.id, form.fresh ? draw_number(what_.seed, turn.epoch) : 0};
}

// Fresh forms are of use, and will be used, where somebody draws alike.
CachedForms::Form* CachedForms::fresh_form() {
  return fresh_ != nullptr && seat_ && seat_->others_alike() > 0 ? fresh_ : nullptr;
}

// Which form a sample is kept in is the sample's for good: it must not be kept in two.
CachedForms::Form* CachedForms::stable_form(SampleId id) {
  if (plan_.trials) return chosen_.load(std::memory_order_relaxed);
  if (shares_.size() == 1 && plan_.shares[0].share >= 1) return shares_[0];
  double place = Rng({kSeed, 0, static_cast<std::uint64_t>(id), 0}).uniform();
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (place < plan_.shares[i].share) return shares_[i];
    place -= plan_.shares[i].share;
  }
  return nullptr;
}

// Jobs that take what is there soon after one of them has made it: those that may change their
// order, and those that have the same.
int CachedForms::jobs_that_share() const {
  if (what_.order == Order::kReady) return std::max(jobs(), jobs_expected_);
  return seat_ ? seat_->others_alike() + 1 : 1;
}

// What is there already stays, and is found; it makes way as everything does.
void CachedForms::choose_again() {
  const int jobs = jobs_that_share();
  if (jobs == chosen_for_.load(std::memory_order_relaxed)) return;
  const CacheStats now = cache_->stats();
  // A cache that knows its jobs makes room for them; later on, what is there is this one's.
  const std::size_t taken = seat_ || chosen_ != nullptr ? 0 : std::min(now.bytes, now.limit);
  MutexLock lock(mutex_);
  const CutChoice choice = trials_->choose(now.limit - taken, jobs);
  Form* const before = chosen_.exchange(at(choice.cut, codec_));
  if (before != chosen_)
    for (Made& made : made_) {
      made.bytes.store(0, std::memory_order_relaxed);
      made.density.store(0, std::memory_order_relaxed);
      made.refused.store(false, std::memory_order_relaxed);
    }
  chosen_for_ = jobs;
  why_ = choice.why;
}

// Storage that has become slower or faster makes another form pay: a page cache that has filled up,
// or other jobs that read. One that is so for a moment only changes nothing.
void CachedForms::learn_read(double seconds) {
  constexpr int kReads = 64;
  if (!plan_.trials) return;
  MutexLock lock(mutex_);
  reads_ = trials_->outdated(seconds) ? reads_ + 1 : 0;
  if (reads_ < kReads) return;
  trials_ = plan_.trials->with_reads(seconds);
  reads_ = 0;
  chosen_for_ = 0;  // so that it is chosen again
}

std::optional<Kept> CachedForms::find(Turn turn, const ReadContext& into, KeeperWork& work) {
  const Timed timed(work.cache_ns);
  // A fresh form is the first of all.
  const std::size_t first = fresh_ != nullptr && fresh_form() == nullptr ? 1 : 0;
  std::vector<CacheKey> keys;
  keys.reserve(forms_.size());
  for (const Form& form : forms_) keys.push_back(key(form, turn));
  for (std::size_t next = first; next < keys.size(); ++next) {
    const auto [value, place, damaged] = cache_->get_first(std::span(keys).subspan(next));
    damaged_.fetch_add(damaged, std::memory_order_relaxed);
    if (!value) return std::nullopt;
    next += place;
    try {
      Kept kept{read_form({value.bytes(), value.hold(), &into.pool, into.reserve,
                           into.pool.limit_bytes(), checksum()},
                          turn.id, forms_[next].cut),
                From::kCache};
      work.hits.resize(forms_.size());
      ++work.hits[next];
      return kept;
    } catch (const Error& error) {
      if (error.code() != Code::kBadSample) throw;
      damaged_.fetch_add(1, std::memory_order_relaxed);
      cache_->drop(keys[next]);
    }
  }
  return std::nullopt;
}

// To stop at a cut in vain costs time: what a sample has weighed and saved before, or else what one
// usually does, says whether it would be kept.
bool CachedForms::has_room(const Form& form, Turn turn) const {
  const std::optional<double> usual = form.usual_bytes();
  if (!usual) return cache_->has_room(key(form, turn), 0, kNobodyKnows);
  const Made& made = made_[static_cast<std::size_t>(turn.id)];
  double bytes = made.bytes.load(std::memory_order_relaxed);
  double density = made.density.load(std::memory_order_relaxed);
  if (form.fresh || !(density > 0)) {
    bytes = *usual;
    density = form.usual_density.load(std::memory_order_relaxed) * saved_share(form);
  } else if (drives_nothing_out(made)) {
    density = 0;
  }
  return cache_->has_room(key(form, turn), static_cast<std::size_t>(bytes), density * bytes);
}

// Only free room counts: what saves nothing drives nothing out but what nobody can use any more.
std::optional<SampleId> CachedForms::lacks() {
  constexpr std::uint64_t kLook = 256;
  const auto size = static_cast<std::uint64_t>(what_.source->size());
  for (std::uint64_t look = 0; look < std::min(kLook, size); ++look) {
    const std::uint64_t place = looked_at_.fetch_add(1, std::memory_order_relaxed);
    const auto id = static_cast<SampleId>(place % size);
    const Form* const form = stable_form(id);
    if (form == nullptr) continue;
    const CacheKey key = this->key(*form, {id, 0});
    const double bytes = made_[static_cast<std::size_t>(id)].bytes.load(std::memory_order_relaxed);
    const std::optional<double> usual = form->usual_bytes();
    if (!usual) return std::nullopt;  // nobody knows how large such samples are
    if (!cache_->has_room(key, static_cast<std::size_t>(bytes > 0 ? bytes : *usual), 0)) continue;
    const bool there = std::ranges::any_of(forms_, [&](const Form& other) {
      return !other.fresh && cache_->has(this->key(other, {id, 0}));
    });
    if (!there) return id;
  }
  return std::nullopt;
}

// What was found in an earlier form than somebody asked for is kept in that, too. Where the form
// was chosen here, an earlier one will do: other jobs may have chosen it.
std::optional<Cut> CachedForms::wants(Turn turn, Cut from, From made_from) {
  if (plan_.trials) choose_again();
  if (made_from == From::kSource || !plan_.trials)
    if (const Form* const form = stable_form(turn.id);
        form != nullptr && form->cut >= from && (stands_at(*form, from) || has_room(*form, turn)))
      return form->cut;
  if (const Form* const form = fresh_form();
      form != nullptr && form->cut >= from && has_room(*form, turn))
    return form->cut;
  return std::nullopt;
}

// Which of several values stays is for the cache to say, by seconds and bytes and by who has yet to
// see them. No sample counts as very much more by the byte than the usual one: not because a thread
// was interrupted while it made it, nor if it is tiny, for what others wait for must find room.
double CachedForms::saved_seconds(Form& form, double seconds, double bytes) const {
  constexpr double kStep = 0.05, kMost = 8;
  const double density = seconds / bytes;
  double usual = form.usual_density.load(std::memory_order_relaxed);
  usual = usual == 0 ? density : usual * (density > usual ? 1 + kStep : 1 - kStep);
  form.usual_density.store(usual, std::memory_order_relaxed);
  const double saved = bytes * std::clamp(density, usual / kMost, usual * kMost);
  return saved * saved_share(form);
}

bool CachedForms::put(const Sample& sample, std::uint32_t epoch, double seconds, Room room,
                      KeeperWork& work) try {
  const Timed timed(work.cache_ns);
  Form* form = what_.pipeline.stable(sample.cut) ? stable_form(sample.id) : fresh_;
  // Another may have been chosen since it was wanted.
  if (form == nullptr || form->cut != sample.cut) form = at(sample.cut, codec_);
  if (form == nullptr || !all_present(sample)) return false;
  const FormWriter writer(sample, form->codec, checksum());
  const auto size = static_cast<std::int64_t>(writer.size());
  form->offered_bytes.fetch_add(size, std::memory_order_relaxed);
  form->offered.fetch_add(1, std::memory_order_relaxed);
  const double saved = saved_seconds(*form, seconds, static_cast<double>(size));
  const CacheKey key = this->key(*form, {sample.id, epoch});
  Made& made = made_[static_cast<std::size_t>(sample.id)];
  if (room == Room::kThatIsFree && !cache_->has_room(key, writer.size(), 0)) return false;
  // What it was made for was asked before.
  const bool fits = !stands_at(*form, what_.source->cut()) ||
                    cache_->has_room(key, writer.size(), drives_nothing_out(made) ? 0 : saved);
  const bool kept =
      fits && cache_->put(key, writer.size(), saved,
                          [&writer](std::span<std::uint8_t> place) { writer.write(place); });
  if (form == stable_form(sample.id)) {
    made.bytes.store(static_cast<float>(size), std::memory_order_relaxed);
    made.density.store(static_cast<float>(saved / static_cast<double>(size)),
                       std::memory_order_relaxed);
    if (fits) made.refused.store(!kept, std::memory_order_relaxed);
  }
  if (!kept) {
    if (fits) refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  form->kept_bytes.fetch_add(size, std::memory_order_relaxed);
  form->kept.fetch_add(1, std::memory_order_relaxed);
  return true;
} catch (...) {  // out of memory, or a back end's trouble: the sample is there all the same
  refused_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

std::string CachedForms::name_of(const Form& form) const {
  std::string name = what_.pipeline.cut_name(form.cut);
  if (form.codec != Codec{}) name += ":" + to_string(form.codec);
  return form.fresh ? name + " (fresh)" : name;
}

std::string CachedForms::damage() const {
  const std::int64_t damaged = damaged_.load(std::memory_order_relaxed);
  if (damaged == 0) return {};
  return "the cache gave other bytes than were kept in it, " + std::to_string(damaged) +
         (damaged == 1 ? " time" : " times") +
         "; those samples were made anew from their source. This points to faulty memory, a faulty "
         "network or somebody else who writes there";
}

CacheReport CachedForms::report(const KeeperWork& work, std::int64_t misses) const {
  const CacheStats all = cache_->stats();
  CacheReport report;
  report.misses = misses;
  report.damaged = damaged_;
  report.refused = refused_;
  const Form* const chosen = chosen_;
  for (std::size_t i = 0; i < forms_.size(); ++i) {
    const Form& form = forms_[i];
    const std::int64_t hits = i < work.hits.size() ? work.hits[i] : 0;
    report.hits += hits;
    const bool given = std::ranges::find(shares_, &form) != shares_.end() || &form == chosen;
    if (!given && form.kept == 0 && hits == 0) continue;
    report.forms.push_back(
        {name_of(form), form.kept, hits, static_cast<std::size_t>(form.kept_bytes)});
    if (!given) continue;
    report.cut += (report.cut.empty() ? "" : ", ") + what_.pipeline.cut_name(form.cut);
  }
  report.entries = all.entries;
  report.bytes = all.bytes;
  report.limit = all.limit;
  report.evicted = all.evicted;
  report.codec = to_string(codec_);
  report.jobs = jobs();
  report.trouble = trouble();
  MutexLock lock(mutex_);
  report.why = why_;
  return report;
}

}  // namespace cutwater
