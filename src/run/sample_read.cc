// SPDX-License-Identifier: Apache-2.0
#include "run/sample_read.h"

#include <cerrno>
#include <utility>

namespace cutwater {
namespace {

// Not the file's fault: nobody did it, or whoever did was interrupted. Then it is done here.
bool not_done(std::int64_t result) {
  return result == -EINTR || result == -EAGAIN || result == -ECANCELED;
}

}  // namespace

SampleRead::~SampleRead() {
  // Opened by somebody else, and then nobody went on with it.
  if (stage_ == Stage::kOpen && result_ && *result_ >= 0)
    const Fd unused(static_cast<int>(*result_));
}

SampleRead::Next SampleRead::advance() {
  try {
    for (;;)
      if (const std::optional<Next> next = step()) return *next;
  } catch (...) {
    fail(std::current_exception());
    return Next::kSample;
  }
}

// One stage, or what has to be done before it can end.
std::optional<SampleRead::Next> SampleRead::step() {
  switch (stage_) {
    case Stage::kLocate:
      at_ = stored_.locate(id_);
      stage_ = at_.file ? Stage::kMemory : Stage::kOpen;
      return std::nullopt;

    case Stage::kOpen:
      if (result_ && not_done(*result_)) {
        own_ = File::open(at_.path);
      } else if (result_) {
        own_ = File::opened(static_cast<int>(*result_), at_.path);
      } else if (at_.perhaps_cached) {
        own_ = File::open_cached(at_.path);
      }
      result_.reset();
      if (!own_) return Next::kOpen;
      at_.size = own_->size();
      stage_ = Stage::kMemory;
      return std::nullopt;

    case Stage::kMemory:
      file().check_sample_size(at_.size);
      if (buffer_.empty()) return Next::kMemory;
      stage_ = Stage::kRead;
      return std::nullopt;

    case Stage::kRead:
      if (!take_result()) return Next::kRead;
      stage_ = Stage::kWait;
      return std::nullopt;

    case Stage::kWait:  // whoever takes the sample waits for what is left of it
      if (!result_ && std::chrono::steady_clock::now() < at_.due) return Next::kWait;
      stage_ = Stage::kEnd;
      return std::nullopt;

    case Stage::kEnd: return Next::kSample;
  }
  return Next::kSample;
}

// Whether all bytes are there.
bool SampleRead::take_result() {
  if (const auto result = std::exchange(result_, std::nullopt)) {
    if (not_done(*result)) {
      file().read(offset(), rest());
      filled_ = buffer_.size();
    } else if (*result <= 0) {
      file().refuse_read(*result, offset(), rest().size());
    } else {
      filled_ += static_cast<std::size_t>(*result);
    }
  } else if (at_.perhaps_cached && !untried_) {
    const File::CachedRead read = file().read_cached(offset(), rest());
    filled_ += read.bytes;
    untried_ = read.cached == File::Cached::kCannotTell;
  }
  return filled_ == buffer_.size();
}

Result<Sample> SampleRead::take(const ReadContext& into) {
  const auto bytes = [this] {
    if (failure_) std::rethrow_exception(failure_);
    return std::move(buffer_);
  };
  return stored_.sample(id_, bytes, into);
}

}  // namespace cutwater
