// SPDX-License-Identifier: Apache-2.0
// Joins source, pipeline, order and threads. Keeps the books of what the consumer has had.
#include "cutwater/loader.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/bit_set.h"
#include "loader_profile.h"
#include "loader_setup.h"
#include "loader_stats.h"
#include "run/cached_forms.h"
#include "run/store_in_making.h"

namespace cutwater {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }
double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

[[noreturn]] void refuse(const std::string& why) { throw Error(Code::kInvalidArgument, why); }

std::vector<std::pair<std::string, std::string>> stream_of(const What& what) {
  return {{"source", what.source->identity()},
          {"samples", std::to_string(what.source->size())},
          {"pipeline", what.pipeline.fingerprint()},
          {"seed", std::to_string(what.seed)},
          {"shuffle", what.shuffle ? "true" : "false"},
          {"batch_size", std::to_string(what.batch_size)},
          {"drop_last", what.drop_last ? "true" : "false"},
          {"order", what.order == Order::kStrict ? "strict" : "ready"}};
}

}  // namespace

const Batch::FieldView* Batch::find(std::string_view name) const {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const FieldView& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

struct Loader::Impl {
  // The executor, unless this is a forked child: threads stay in the process that made them.
  const Executor& here() const {
    if (executor.belongs_here()) return executor;
    refuse(
        "this loader was begun in another process and its threads stayed there; make the loader "
        "after the fork");
  }
  Executor& here() { return const_cast<Executor&>(std::as_const(*this).here()); }

  Impl(WithStore found, const HowFast& how)
      : what(std::move(found.what)),
        options(resolve(what, how)),
        learned(what, how, options.memory_limit),
        store_there(std::move(found.store)),
        executor(what, with_memory(how)) {}
  ~Impl() { learned.save(); }

  // What is remembered from epoch to epoch.
  ExecutorOptions with_memory(const HowFast& how) {
    ExecutorOptions with = options;
    with.hints = learned.book();
    if (how.profile) with.record = &record.emplace(what.source->size());
    const CacheUse& cache = how.cache;
    if (!how.store.path.empty() && !store_there) {
      with.keeper = &making.emplace(what, how.store, how.fuse, options.threads);
      const bool other_cut =
          !cache.cut.empty() && what.pipeline.cut_named(cache.cut) != making->cut();
      if (cache.cache && (other_cut || !cache.split.empty()))
        refuse("cache: until the store " + how.store.path +
               " is finished, samples are kept at its cut '" +
               what.pipeline.cut_name(making->cut()) + "', not at '" + cache.cut + cache.split +
               "'; leave that open, or make the store first");
    }
    if (!cache.cache) return with;
    cached.emplace(what, cache,
                   making ? one_form({making->cut(), "that of the store " + how.store.path},
                                     codec_named(cache.codec))
                          : plan_forms(what, cache, how.fuse));
    with.keeper = &*cached;
    with.seat = cached->seat();
    if (making) with.keeper = &both.emplace(*cached, *making);
    return with;
  }

  const What what;
  const ExecutorOptions options;
  Learned learned;
  std::optional<CachedForms> cached;
  std::optional<StoreInMaking> making;
  std::optional<TwoKeepers> both;
  std::optional<OpRecord> record;
  const std::optional<StoreReport> store_there;  // it is the source
  Executor executor;

  // What the consumer has had of the epoch in progress.
  EpochStart progress;  // without done_beyond, which is…
  BitSet delivered;     // …in here where the order is free: by position
  std::uint32_t next_epoch = 0;
  bool running = false;                      // next() has something to give
  bool in_epoch = false;                     // progress is that of an epoch begun, be it cut short
  bool left = false;                         // by leave_epoch()
  std::optional<std::uint32_t> executor_at;  // the epoch at whose start the executor stands
  std::optional<EpochStart> resume_at;       // set by restore()

  // Guards what stats() reads beside the executor's own books.
  mutable Mutex stats_mutex;
  std::int64_t samples CUTWATER_GUARDED_BY(stats_mutex) = 0;
  std::int64_t batches CUTWATER_GUARDED_BY(stats_mutex) = 0;
  std::optional<Clock::time_point> first_begin CUTWATER_GUARDED_BY(stats_mutex);
  std::optional<Clock::time_point> first_batch CUTWATER_GUARDED_BY(stats_mutex);
  Clock::time_point last_batch CUTWATER_GUARDED_BY(stats_mutex);

  void had(const FinishedBatch& batch) {
    const std::span positions(batch.slab->positions.data(), static_cast<std::size_t>(batch.count));
    progress.next_batch = batch.index + 1;
    if (what.order == Order::kStrict) {
      progress.position = positions.back() + 1;  // bad samples before it are done with, too
      return;
    }
    for (const std::int64_t position : positions) delivered.set(position);
    progress.position = delivered.next_clear(progress.position);
  }
};

Loader::Loader(What what, const HowFast& how) {
  check(what, how);
  impl_ = std::make_unique<Impl>(with_store(std::move(what), how.store), how);
}

Loader::~Loader() {
  // A forked child must not touch what the parent's threads may have locked: it lets go of it.
  if (impl_ && !impl_->executor.belongs_here()) (void)impl_.release();
}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;

void Loader::begin() {
  Impl& my = *impl_;
  {
    MutexLock lock(my.stats_mutex);
    if (!my.first_begin) my.first_begin = Clock::now();
  }
  const EpochStart start = my.resume_at.value_or(EpochStart{my.next_epoch, 0, 0, {}});
  // The executor has usually begun this epoch already, while the last one ended.
  if (my.resume_at || my.executor_at != my.next_epoch) my.here().restart(start);
  my.resume_at.reset();
  my.executor_at.reset();
  my.progress = {start.epoch, start.next_batch, start.position, {}};
  my.delivered = BitSet(my.what.order == Order::kReady ? my.what.source->size() : 0);
  if (my.what.order == Order::kReady)
    for (const std::int64_t position : start.done_beyond) my.delivered.set(position);
  my.next_epoch = start.epoch + 1;
  my.running = my.in_epoch = true;
  my.left = false;
}

std::optional<Batch> Loader::next() {
  Impl& my = *impl_;
  if (!my.running || my.left) {
    if (my.here().closed()) throw Error(Code::kCancelled, "the loader was closed");
    return std::nullopt;
  }
  std::optional<FinishedBatch> finished;
  Executor& executor = my.here();
  try {
    finished = executor.next();
  } catch (...) {
    my.running = false;
    executor.rest();
    throw;
  }
  if (!finished) {
    my.learned.save();
    if (my.making) my.making->epoch_over();
    my.running = my.in_epoch = false;
    my.executor_at = my.progress.epoch + 1;
    my.progress = {my.next_epoch, 0, 0, {}};
    return std::nullopt;
  }
  my.had(*finished);

  Batch batch;
  batch.epoch = finished->epoch;
  batch.index = finished->index;
  const auto& ids = finished->slab->ids;
  batch.ids.assign(ids.begin(), ids.begin() + finished->count);
  for (const Slab::FieldSlots& field : finished->slab->fields()) {
    TensorSpec spec{field.spec.dtype, {finished->count}, field.spec.layout};
    for (const std::int64_t dim : field.spec.shape) spec.shape.push_back(dim);
    batch.fields.push_back({field.name, spec, const_cast<std::uint8_t*>(field.bytes.data())});
  }
  batch.memory = finished->slab;

  MutexLock lock(my.stats_mutex);
  my.samples += finished->count;
  ++my.batches;
  my.last_batch = Clock::now();
  if (!my.first_batch) my.first_batch = my.last_batch;
  return batch;
}

bool Loader::wait(std::chrono::nanoseconds time) {
  return !impl_->running || impl_->left || impl_->here().wait(time);
}

void Loader::set_epoch(std::uint32_t epoch) {
  // The usual loop sets the epoch that it has just restored: that is no reason to start it anew.
  if (impl_->resume_at && impl_->resume_at->epoch == epoch) return;
  impl_->next_epoch = epoch;
  impl_->resume_at.reset();
  if (impl_->running) return;
  impl_->progress = {epoch, 0, 0, {}};
  impl_->in_epoch = false;
}

std::uint32_t Loader::next_epoch() const { return impl_->next_epoch; }

std::int64_t Loader::batches_per_epoch() const {
  const std::int64_t size = impl_->what.source->size(), batch = impl_->what.batch_size;
  return size / batch + (impl_->what.drop_last || size % batch == 0 ? 0 : 1);
}

LoaderState Loader::state() const {
  const Impl& my = *impl_;
  const EpochStart& at = my.resume_at ? *my.resume_at : my.progress;
  LoaderState state{at.epoch, at.position, at.next_batch, {}, stream_of(my.what)};
  BitSet done(my.what.source->size());
  for (const std::int64_t position : at.done_beyond) done.set(position);
  if (!my.resume_at && my.what.order == Order::kReady && my.in_epoch) {
    done = my.delivered;
    // What was left out counts as done, too.
    for (const std::int64_t position : my.here().skipped_positions()) done.set(position);
    state.position = done.next_clear(state.position);
  }
  state.done_beyond = done.text(state.position + 1);
  return state;
}

void Loader::restore(const LoaderState& state) {
  const auto mine = stream_of(impl_->what);
  std::string different;
  for (const auto& [name, value] : mine) {
    const auto saved =
        std::find_if(state.stream.begin(), state.stream.end(),
                     [&, key = std::string_view(name)](const auto& p) { return p.first == key; });
    if (saved == state.stream.end() || saved->second != value)
      different += (different.empty() ? "" : ", ") + name + " (saved " +
                   (saved == state.stream.end() ? "nothing" : saved->second) + ", now " + value +
                   ")";
  }
  if (!different.empty())
    refuse("the saved state is of another stream, it differs in " + different +
           "; make the loader as it was when the state was saved");
  const std::int64_t size = impl_->what.source->size();
  const std::string place =
      "position " + std::to_string(state.position) + " of " + std::to_string(size) + " samples";
  if (state.position < 0 || state.position > size || state.batch < 0)
    refuse("the saved state is damaged: " + place + ", batch " + std::to_string(state.batch));
  BitSet done(size);
  if (!done.set_from_text(state.position + 1, state.done_beyond))
    refuse("the saved state is damaged: what is done beyond " + place +
           " is not in hexadecimal digits, or too many of them");
  EpochStart start{state.epoch, state.batch, state.position, {}};
  for (std::int64_t i = done.next_set(0); i < size; i = done.next_set(i + 1))
    start.done_beyond.push_back(i);
  // Also between epochs: the next one may have been begun ahead.
  if (impl_->executor.belongs_here()) impl_->executor.rest();
  impl_->running = impl_->in_epoch = false;
  impl_->executor_at.reset();
  impl_->resume_at = std::move(start);
  impl_->next_epoch = state.epoch;
}

LoaderStats Loader::stats() const {
  const Impl& my = *impl_;
  LoaderStats stats;
  stats.threads = my.options.threads;
  stats.memory_limit = my.options.memory_limit;
  {
    MutexLock lock(my.stats_mutex);
    stats.samples = my.samples;
    stats.batches = my.batches;
    if (my.first_begin && my.first_batch) {
      stats.first_batch_seconds = seconds(*my.first_batch - *my.first_begin);
      stats.elapsed_seconds = seconds(my.last_batch - *my.first_begin);
    }
  }
  Work work = my.here().work();
  stats.reads = work.made_from(From::kSource) + work.made_from(From::kStore);
  stats.bytes_read = work.bytes_read + work.keeper.stored_bytes;
  stats.read_seconds = seconds(work.read.nanoseconds + work.keeper.stored_ns);
  stats.reads_queued = work.reads_queued;
  stats.consumer_wait_seconds = seconds(work.consumer_wait_ns);
  stats.worker_wait_seconds = seconds(work.worker_wait_ns);
  stats.memory_peak = my.executor.pool().peak_bytes();
  if (const HintBook* book = my.learned.book())
    stats.index = {book->entries(), book->uses(), book->bytes()};
  for (auto& [id, failure] : work.skipped) stats.skipped.push_back(std::move(failure));
  for (auto& [id, failure] : work.substituted) stats.substituted.push_back(std::move(failure));
  stats.ops = op_times(my.what, my.options.fuse, work.ops);
  if (my.cached) {
    stats.cache = my.cached->report(work.keeper, stats.reads);
    stats.cache->made_ahead = work.made_ahead;
    stats.cache->seconds = seconds(work.keeper.cache_ns);
  }
  stats.store = my.making ? std::optional(my.making->report()) : my.store_there;
  if (stats.store) stats.store->seconds = seconds(work.keeper.spool_ns);
  stats.fetch = my.here().fetched();
  stats.bound_by = bottleneck(stats);
  return stats;
}

Profile Loader::profile() const {
  const Impl& my = *impl_;
  if (!my.record)
    refuse(
        "this loader records no profile; make it with profile=True (HowFast::profile), or profile "
        "the data set by itself (cutwater.profile)");
  Profile profile = profile_of(my.what, my.record->content(), my.here().work());
  profile.threads = my.options.threads;
  MutexLock lock(my.stats_mutex);
  if (my.first_batch) profile.seconds = seconds(my.last_batch - *my.first_begin);
  return profile;
}

bool Loader::finish_store(std::chrono::nanoseconds time) {
  return !impl_->making || !impl_->executor.belongs_here() || impl_->making->wait(time);
}

std::string Loader::cache_trouble() const {
  return impl_->cached ? impl_->cached->trouble() : std::string();
}

std::string Loader::cache_damage() const {
  return impl_->cached ? impl_->cached->damage() : std::string();
}

void Loader::leave_epoch() {
  if (!impl_->running || !impl_->executor.belongs_here()) return;
  impl_->left = true;
  impl_->executor.rest();
}

void Loader::close() {
  if (!impl_->executor.belongs_here()) return;
  impl_->executor.close();
  if (impl_->cached) impl_->cached->leave();
  if (impl_->making) impl_->making->cancel();
  impl_->learned.save();
}

const What& Loader::what() const { return impl_->what; }

}  // namespace cutwater
