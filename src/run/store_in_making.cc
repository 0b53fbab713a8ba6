// SPDX-License-Identifier: Apache-2.0
#include "run/store_in_making.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/caught.h"
#include "run/cut_choice.h"
#include "store/layout.h"
#include "store/shard_writer.h"

namespace cutwater {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kIdlePerThread = std::size_t{64} << 20;
// Where samples come from a disk, or from the page cache with a copy and a checksum.
constexpr double kStoreBytesPerSecond = 1e9;

fs::path parent_of(const std::string& path) {
  const fs::path folder = fs::absolute(path).lexically_normal();
  return (folder.has_filename() ? folder : folder.parent_path()).parent_path();
}

void check_folder(const std::string& path) {
  std::error_code failed;
  if (!fs::exists(path, failed)) {
    if (!fs::is_directory(parent_of(path), failed))
      throw path_error(Code::kNotFound, path, "there is no folder to make the store in");
    return;
  }
  if (!fs::is_directory(path, failed) ||
      (!fs::is_empty(path, failed) && !fs::exists(fs::path(path) / kBuildingName, failed)))
    throw path_error(Code::kInvalidArgument, path,
                     "is neither a store nor an empty folder; give another one for the store");
}

// The samples of the spool, and those that are not there made anew, as a source at the cut.
class SpoolSource final : public Source {
 public:
  SpoolSource(const What& what, Cut cut, const Spool& spool, int threads)
      : source_(*what.source),
        pipeline_(what.pipeline),
        cut_(cut),
        spool_(spool),
        maker_(source_, what.pipeline, cut, static_cast<std::size_t>(threads) * kIdlePerThread) {}

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
  std::string stamp() const override { return source_.stamp(); }

 private:
  const Source& source_;
  const Pipeline& pipeline_;
  const Cut cut_;
  const Spool& spool_;
  const SampleMaker maker_;
};

Cut cut_of(const What& what, const StoreUse& use, const Codec& codec, bool fuse) {
  if (!use.cut.empty()) return given_cut("store", what, use.cut).cut;
  std::error_code failed;
  const fs::space_info space = fs::space(parent_of(use.path), failed);
  // The spool is as large as the store, at least.
  const std::size_t room = failed ? SIZE_MAX : static_cast<std::size_t>(space.available / 2);
  return choose_cut("store", what, codec, room, kStoreBytesPerSecond, fuse).cut;
}

}  // namespace

StoreInMaking::StoreInMaking(const What& what, const StoreUse& use, bool fuse, int threads)
    : what_(what),
      use_(use),
      codec_(codec_named(use.codec.empty() ? "none" : use.codec)),
      cut_((check_folder(use.path), cut_of(what, use, codec_, fuse))),
      threads_(threads),
      spool_(std::make_unique<Spool>(parent_of(use.path).string(), what.source->size(), cut_)) {}

StoreInMaking::~StoreInMaking() {
  if (writer_.joinable()) writer_.join();
}

std::optional<Sample> StoreInMaking::find(SampleId id, const ReadContext& into) {
  const State state = state_.load(std::memory_order_acquire);
  if (state == State::kFailed) return std::nullopt;
  if (state != State::kFinished) return spool_->find(id, into);
  Result<Sample> stored = store_->read(id, into);
  if (!stored) return std::nullopt;  // bad, or damaged since: the source will tell
  return std::move(stored).value();
}

std::optional<Cut> StoreInMaking::wants(SampleId id) {
  if (state_ != State::kCollecting || spool_->has(id)) return std::nullopt;
  return cut_;
}

void StoreInMaking::keep(const Sample& sample) try {
  spool_->add(sample);
} catch (const Error& error) {
  fail(error.what());
}

void StoreInMaking::epoch_over() {
  ++epochs_;
  if (state_ != State::kCollecting) return;
  // Some may never come by: bad ones, and those that drop_last leaves out. But after a resumed
  // epoch many have not come by yet.
  const std::int64_t size = what_.source->size(), missing = size - spool_->samples();
  if (epochs_ == 1 && missing > std::max(what_.batch_size, size / 10)) return;
  state_ = State::kWriting;
  writer_ = std::thread([this] { write(); });
}

void StoreInMaking::write() {
  try {
    MaterializeOptions options;
    options.codec = codec_;
    options.threads = threads_;
    options.on_progress = [this](const MaterializeProgress&) {
      if (cancelled_) throw Error(Code::kCancelled, "the loader was closed before it was finished");
    };
    materialize(std::make_shared<SpoolSource>(what_, cut_, *spool_, threads_), what_.pipeline, cut_,
                use_.path, options);
    store_ = open_store(use_.path);
    MutexLock lock(mutex_);
    state_.store(State::kFinished, std::memory_order_release);
    spool_->clear();
    changed_.notify_all();
  } catch (...) {
    fail(caught(-1, "store").message());
  }
}

void StoreInMaking::fail(const std::string& reason) {
  MutexLock lock(mutex_);
  if (reason_.empty()) reason_ = reason;
  state_ = State::kFailed;
  spool_->clear();
  changed_.notify_all();
}

bool StoreInMaking::wait(std::chrono::nanoseconds time) {
  MutexLock lock(mutex_);
  if (state_ == State::kWriting) changed_.wait_for(mutex_, time);
  return state_ != State::kWriting;
}

void StoreInMaking::cancel() { cancelled_ = true; }

StoreReport StoreInMaking::report() const {
  constexpr const char* kStates[] = {"collecting", "writing", "finished", "failed"};
  StoreReport report;
  report.path = use_.path;
  report.cut = what_.pipeline.cut_name(cut_);
  report.codec = to_string(codec_);
  report.state = kStates[static_cast<std::size_t>(state_.load())];
  report.samples = spool_->samples();
  report.bytes = spool_->bytes();
  MutexLock lock(mutex_);
  report.reason = reason_;
  return report;
}

}  // namespace cutwater
