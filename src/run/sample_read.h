// SPDX-License-Identifier: Apache-2.0
// SampleRead: one sample's stored bytes on their way into memory. What the system has at hand is
// taken at once; where storage has to be waited for, it says what for, so that a thread need not
// be the one that waits.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "cutwater/buffer.h"
#include "source/stored_bytes.h"

namespace cutwater {

// One thread at a time.
class SampleRead {
 public:
  // REQUIRES: `stored` outlives this.
  SampleRead(const StoredBytes& stored, SampleId id) : stored_(stored), id_(id) {}
  SampleRead(const SampleRead&) = delete;
  SampleRead& operator=(const SampleRead&) = delete;
  ~SampleRead();

  enum class Next : std::uint8_t {
    kSample,  // nothing: take() it
    kMemory,  // give() it memory for size() bytes
    kOpen,    // open path()
    kRead,    // read from fd() at offset() into rest()
    kWait,    // until due()
  };
  // Goes on as far as it can without waiting. Never throws: what went wrong, take() returns.
  Next advance();

  std::size_t size() const { return static_cast<std::size_t>(at_.size); }
  void give(Buffer buffer) { buffer_ = std::move(buffer); }

  const std::string& path() const { return at_.path; }
  int fd() const { return file().fd(); }
  std::uint64_t offset() const { return at_.offset + filled_; }
  std::span<std::uint8_t> rest() { return buffer_.span().subspan(filled_); }
  std::chrono::steady_clock::time_point due() const { return at_.due; }
  // After kRead: whether it was not tried, because this file system cannot say if it would wait.
  bool untried() const { return untried_; }

  // How the open or the read ended: what the system call returns, or -errno; any result: the wait
  // is over. A read may be short.
  void done(std::int64_t result) { result_ = result; }
  // Nobody else will do it: the next advance() waits.
  void leave_to_me() { result_ = -EAGAIN; }

  // It cannot be read, for a reason from outside.
  void fail(std::exception_ptr why) {
    failure_ = std::move(why);
    stage_ = Stage::kEnd;
  }

  // What has to be unpacked goes into a buffer of the context's. REQUIRES: advance() returned
  // kSample, or it failed; called once.
  Result<Sample> take(const ReadContext& into);

 private:
  enum class Stage : std::uint8_t { kLocate, kOpen, kMemory, kRead, kWait, kEnd };

  const File& file() const { return own_ ? *own_ : *at_.file; }
  std::optional<Next> step();
  bool take_result();

  const StoredBytes& stored_;
  const SampleId id_;
  Stage stage_ = Stage::kLocate;
  StoredAt at_;
  std::optional<File> own_;  // where the sample is a file of its own
  Buffer buffer_;
  std::size_t filled_ = 0;
  bool untried_ = false;
  std::optional<std::int64_t> result_;  // of what was waited for
  std::exception_ptr failure_;
};

}  // namespace cutwater
