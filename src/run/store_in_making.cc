// SPDX-License-Identifier: Apache-2.0
#include "run/store_in_making.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/caught.h"
#include "run/cut_choice.h"
#include "store/disk.h"
#include "store/layout.h"
#include "store/request.h"
#include "store/shard_writer.h"

namespace cutwater {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kIdlePerThread = std::size_t{64} << 20;
// Where samples come from a disk, or from the page cache with a copy and a checksum.
constexpr double kStoreBytesPerSecond = 1e9;

// A folder on the disk that the store will be on: its own, which may be a mounted one, or where
// that will lie.
std::string disk_of(const std::string& path) {
  std::error_code failed;
  if (fs::is_directory(path, failed)) return path;
  const fs::path folder = fs::absolute(path).lexically_normal();
  return (folder.has_filename() ? folder : folder.parent_path()).parent_path().string();
}

void check_folder(const std::string& path) {
  std::error_code failed;
  if (!fs::exists(path, failed)) {
    if (!fs::is_directory(disk_of(path), failed))
      throw path_error(Code::kNotFound, path, "there is no folder to make the store in");
    return;
  }
  if (!fs::is_directory(path, failed) ||
      (!fs::is_empty(path, failed) && !fs::exists(inside(path, kBuildingName), failed)))
    throw path_error(Code::kInvalidArgument, path,
                     "is neither a store nor an empty folder; give another one for the store");
}

Cut chosen_cut(const What& what, const StoreUse& use, const Codec& codec, bool fuse) {
  std::error_code failed;
  const fs::space_info space = fs::space(disk_of(use.path), failed);
  // The spool is as large as the store, at least.
  const std::size_t room = failed ? SIZE_MAX : static_cast<std::size_t>(space.available / 2);
  return CutTrials("store", what, codec, kStoreBytesPerSecond, fuse).choose(room).cut;
}

// What an earlier run has begun and not finished.
std::optional<StorePlan> begun_at(const std::string& path) {
  const std::string building = inside(path, kBuildingName);
  std::error_code failed;
  if (!fs::exists(building, failed)) return std::nullopt;
  return parse_plan(open_plain(building).text(kMaxMetaBytes), building);
}

// What is asked for, else what was begun, else what pays.
StorePlan plan_of(const What& what, const StoreUse& use, bool fuse) {
  check_folder(use.path);
  const std::optional<StorePlan> begun = begun_at(use.path);
  const bool can_go_on =
      begun && begun->cut >= what.source->cut() && begun->cut <= what.pipeline.frontier();
  Codec codec = begun ? begun->codec : Codec{};
  if (!use.codec.empty()) codec = codec_named(use.codec);
  const Cut cut = !use.cut.empty() ? given_cut("store", what, use.cut).cut
                  : can_go_on      ? begun->cut
                                   : chosen_cut(what, use, codec, fuse);
  StorePlan plan = plan_of_store(*what.source, what.pipeline, cut, codec);
  if (begun) check_same_store(*begun, plan, use.path);
  return plan;
}

// The samples of the spool, and those that are not there made anew, as a source at the cut.
class SpoolSource final : public Source {
 public:
  SpoolSource(const What& what, const StorePlan& plan, const Spool& spool, int threads)
      : source_(*what.source),
        pipeline_(what.pipeline),
        cut_(plan.cut),
        stamp_(plan.stamp),
        spool_(spool),
        maker_(source_, pipeline_, cut_, static_cast<std::size_t>(threads) * kIdlePerThread) {}

  std::int64_t size() const override { return source_.size(); }
  Cut cut() const override { return cut_; }
  std::string fingerprint() const override {
    return cut_ > 0 ? pipeline_.fingerprint(cut_) : std::string();
  }
  std::string pipeline() const override { return pipeline_.prefix(cut_).to_string(); }
  Result<Sample> read(SampleId id, const ReadContext& into) const override try {
    if (std::optional<Sample> sample = spool_.find(id, into)) return std::move(*sample);
    return maker_.make(id);
  } catch (...) {
    return caught(id, "read");
  }
  std::string home() const override { return source_.home(); }
  std::string path(SampleId id) const override { return source_.path(id); }
  bool has_labels() const override { return source_.has_labels(); }
  std::int64_t label(SampleId id) const override { return source_.label(id); }
  const std::vector<std::string>& classes() const override { return source_.classes(); }
  std::string identity() const override { return source_.identity(); }
  // That of the data as it was before the first sample was put aside. It is asked for when the
  // writing begins and before the store is sealed: samples of other data never get there.
  std::string stamp() const override {
    if (source_.stamp() != stamp_)
      throw Error(Code::kStale,
                  "the data set was changed while its store was being made; remove the store's "
                  "folder, if it is there, and begin again");
    return stamp_;
  }

 private:
  const Source& source_;
  const Pipeline& pipeline_;
  const Cut cut_;
  const std::string stamp_;
  const Spool& spool_;
  const SampleMaker maker_;
};

}  // namespace

StoreInMaking::StoreInMaking(const What& what, const StoreUse& use, bool fuse, int threads)
    : what_(what),
      use_(use),
      plan_(plan_of(what, use, fuse)),
      threads_(threads),
      spool_(disk_of(use.path), what.source->size(), plan_.cut) {}

StoreInMaking::~StoreInMaking() {
  if (writer_.joinable()) writer_.join();
}

std::optional<Kept> StoreInMaking::find(Turn turn, const ReadContext& into, KeeperWork& work) {
  const Timed timed(work.stored_ns);
  std::size_t read = 0;  // what is asked for first; then, what it is unpacked to
  const ReadContext counted(into.pool, [&](std::size_t bytes) {
    if (read == 0) read = bytes;
    if (into.reserve) into.reserve(bytes);
  });
  std::optional<Sample> sample = find_in_spool(turn.id, counted);
  if (!sample) {
    read = 0;
    sample = find_in_store(turn.id, counted);
  }
  if (!sample) return std::nullopt;
  work.stored_bytes += read;
  return Kept{std::move(*sample), From::kStore};
}

std::optional<Sample> StoreInMaking::find_in_spool(SampleId id, const ReadContext& into) try {
  const State state = state_;
  if (state == State::kFinished || state == State::kFailed) return std::nullopt;
  return spool_.find(id, into);
} catch (const Error&) {
  if (state_ != State::kFinished) throw;
  return std::nullopt;  // cleared in the meantime
}

std::optional<Sample> StoreInMaking::find_in_store(SampleId id, const ReadContext& into) {
  if (state_ != State::kFinished) return std::nullopt;
  if (std::binary_search(bad_.begin(), bad_.end(), id)) return std::nullopt;
  Result<Sample> stored = store_->read(id, into);
  if (stored) return std::move(stored).value();
  if (stored.failure().code != Code::kCancelled) ++unreadable_;
  return std::nullopt;
}

std::optional<Cut> StoreInMaking::wants(Turn turn, Cut from, From /*made_from*/) {
  if (from > plan_.cut || state_ != State::kCollecting || spool_.has(turn.id)) return std::nullopt;
  return plan_.cut;
}

void StoreInMaking::keep(const Sample& sample, std::uint32_t /*epoch*/, double /*seconds*/,
                         KeeperWork& work) try {
  const Timed timed(work.spool_ns);
  const State state = state_;
  if (state == State::kCollecting || state == State::kWriting) spool_.add(sample);
} catch (...) {
  fail(caught(-1, "store").message());
}

void StoreInMaking::epoch_over() {
  ++epochs_;
  // Some may never come by: bad ones, and those that drop_last leaves out. But after a resumed
  // epoch many have not come by yet.
  const std::int64_t size = what_.source->size(), missing = size - spool_.samples();
  if (epochs_ == 1 && missing > std::max(what_.batch_size, size / 10)) return;
  {
    MutexLock lock(mutex_);
    if (state_ != State::kCollecting) return;
    state_ = State::kWriting;
  }
  try {
    writer_ = std::thread([this] { write(); });
  } catch (const std::system_error& error) {
    fail("no thread could be started to write it: " + std::string(error.what()));
  }
}

void StoreInMaking::write() {
  try {
    MaterializeOptions options;
    options.codec = plan_.codec;
    options.threads = threads_;
    options.on_progress = [this](const MaterializeProgress&) {
      if (cancelled_) throw Error(Code::kCancelled, "the loader was closed before it was finished");
    };
    const StoreInfo made =
        materialize(std::make_shared<SpoolSource>(what_, plan_, spool_, threads_), what_.pipeline,
                    plan_.cut, use_.path, options);
    for (const Failure& failure : made.bad) bad_.push_back(failure.sample);
    store_ = open_store(use_.path);
    MutexLock lock(mutex_);
    if (state_ != State::kWriting) return;
    state_ = State::kFinished;
    spool_.clear();
    changed_.notify_all();
  } catch (...) {
    fail(caught(-1, "store").message());
  }
}

void StoreInMaking::fail(const std::string& reason) {
  MutexLock lock(mutex_);
  if (state_ == State::kFinished) return;  // it is there: what could not be added is not missed
  if (reason_.empty()) reason_ = reason;
  cancelled_ = true;
  state_ = State::kFailed;
  spool_.clear();
  changed_.notify_all();
}

bool StoreInMaking::wait(std::chrono::nanoseconds time) {
  const auto start = std::chrono::steady_clock::now();
  MutexLock lock(mutex_);
  while (state_ == State::kWriting) {
    const auto left = time - (std::chrono::steady_clock::now() - start);
    if (left.count() <= 0) return false;
    changed_.wait_for(mutex_, left);
  }
  return true;
}

void StoreInMaking::cancel() { cancelled_ = true; }

StoreReport StoreInMaking::report() const {
  constexpr const char* kStates[] = {"collecting", "writing", "finished", "failed"};
  StoreReport report;
  report.path = use_.path;
  report.cut = plan_.cut_name;
  report.codec = to_string(plan_.codec);
  report.state = kStates[static_cast<std::size_t>(state_.load())];
  report.samples = spool_.samples();
  report.bytes = spool_.bytes();
  report.damaged = spool_.damaged() + unreadable_;
  MutexLock lock(mutex_);
  report.reason = reason_;
  return report;
}

}  // namespace cutwater
