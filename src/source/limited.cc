// SPDX-License-Identifier: Apache-2.0
#include "source/limited.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "core/caught.h"
#include "source/stored_bytes.h"

namespace cutwater {
namespace {

class LimitedSource final : public Source, public StoredBytes {
 public:
  LimitedSource(std::shared_ptr<const Source> source, std::shared_ptr<Link> link)
      : source_(std::move(source)), link_(std::move(link)), stored_(source_->stored_bytes()) {}

  std::int64_t size() const override { return source_->size(); }
  Cut cut() const override { return source_->cut(); }
  std::string fingerprint() const override { return source_->fingerprint(); }
  std::string pipeline() const override { return source_->pipeline(); }
  std::string home() const override { return source_->home(); }
  std::string path(SampleId id) const override { return source_->path(id); }
  bool has_labels() const override { return source_->has_labels(); }
  std::int64_t label(SampleId id) const override { return source_->label(id); }
  const std::vector<std::string>& classes() const override { return source_->classes(); }
  std::string identity() const override { return source_->identity(); }
  std::string stamp() const override { return source_->stamp(); }

  Result<Sample> read(SampleId id, const ReadContext& into) const override try {
    std::uint64_t bytes = 0;  // what is asked for first; then, what it is unpacked to
    Result<Sample> sample = source_->read(id, {into.pool, [&](std::size_t asked) {
                                                 if (bytes == 0) bytes = asked;
                                                 if (into.reserve) into.reserve(asked);
                                               }});
    if (sample && bytes == 0)  // borrowed from memory
      for (const Field& field : sample.value().fields) bytes += field.tensor.spec().bytes();
    link_->wait_until(link_->book(bytes));
    return sample;
  } catch (...) {
    return caught(id, "read");
  }

  const StoredBytes* stored_bytes() const override { return stored_ != nullptr ? this : nullptr; }

  // The moment at which the bytes are asked for.
  StoredAt locate(SampleId id) const override {
    StoredAt at = stored_->locate(id);
    std::uint64_t bytes = at.size;
    std::error_code failed;
    if (!at.file) bytes = std::filesystem::file_size(at.path, failed);
    if (failed) return at;  // whoever opens it says why
    const Link::Clock::time_point due = at.due = link_->book(bytes);
    MutexLock lock(mutex_);
    // One that nobody has come for, because its epoch was left, makes way.
    const auto found = due_.find(id);
    if (found != due_.end() && found->second <= Link::Clock::now())
      found->second = due;
    else
      due_.emplace(id, due);
    return at;
  }

  Result<Sample> sample(SampleId id, const std::function<Buffer()>& bytes,
                        const ReadContext& into) const override try {
    if (const auto due = take_due(id)) link_->wait_until(*due);
    return stored_->sample(id, bytes, into);
  } catch (...) {
    return caught(id, "read");
  }

 private:
  // Of several reads of one sample, any: they are of the same size.
  std::optional<Link::Clock::time_point> take_due(SampleId id) const {
    MutexLock lock(mutex_);
    const auto found = due_.find(id);
    if (found == due_.end()) return std::nullopt;
    return due_.extract(found).mapped();
  }

  const std::shared_ptr<const Source> source_;
  const std::shared_ptr<Link> link_;
  const StoredBytes* const stored_;
  mutable Mutex mutex_;
  mutable std::multimap<SampleId, Link::Clock::time_point> due_ CUTWATER_GUARDED_BY(mutex_);
};

}  // namespace

Link::Clock::time_point Link::book(std::uint64_t bytes) {
  const std::chrono::duration<double> takes(static_cast<double>(bytes) / bytes_per_second_);
  MutexLock lock(mutex_);
  bytes_ += bytes;
  free_ = std::max(free_, Clock::now() - kAhead) + std::chrono::ceil<Clock::duration>(takes);
  return free_;
}

void Link::wait_until(Clock::time_point due) {
  MutexLock lock(mutex_);
  while (!closed_ && Clock::now() < due) closed_changed_.wait_for(mutex_, due - Clock::now());
  if (closed_) throw Error(Code::kCancelled, "the link was closed");
}

void Link::close() {
  MutexLock lock(mutex_);
  closed_ = true;
  closed_changed_.notify_all();
}

std::uint64_t Link::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

std::shared_ptr<const Source> limited(std::shared_ptr<const Source> source,
                                      std::shared_ptr<Link> link) {
  return std::make_shared<LimitedSource>(std::move(source), std::move(link));
}

}  // namespace cutwater
