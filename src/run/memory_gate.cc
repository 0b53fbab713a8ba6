// SPDX-License-Identifier: Apache-2.0
#include "run/memory_gate.h"

#include <string>

#include "cutwater/error.h"

namespace cutwater {

void MemoryGate::begin_read(std::size_t bytes) {
  MutexLock lock(mutex_);
  while (!closed_ && !read_fits(bytes)) changed_.wait(mutex_);
  if (closed_) throw Error(Code::kCancelled, "the loader was closed");
  read_bytes_ += bytes;
}

bool MemoryGate::try_begin_read(std::size_t bytes) {
  MutexLock lock(mutex_);
  if (!read_fits(bytes)) return false;
  read_bytes_ += bytes;
  return true;
}

void MemoryGate::force_read(std::size_t bytes) {
  MutexLock lock(mutex_);
  read_bytes_ += bytes;
}

void MemoryGate::end_read(std::size_t bytes) {
  if (bytes == 0) return;
  MutexLock lock(mutex_);
  read_bytes_ -= bytes;
  changed_.notify_all();
}

void MemoryGate::enter(std::size_t bytes) {
  if (bytes > limit_bytes_)
    throw Error(Code::kInvalidArgument, "needs " + std::to_string(bytes) +
                                            " bytes of working memory, more than memory_limit " +
                                            std::to_string(limit_bytes_) + "; raise memory_limit");
  MutexLock lock(mutex_);
  // Alone inside, a sample may always go on: waiting would help nobody.
  while (!closed_ && inside_bytes_ > 0 &&
         read_bytes_ + inside_bytes_ + bytes + batch_bytes_ > limit_bytes_)
    changed_.wait(mutex_);
  if (closed_) throw Error(Code::kCancelled, "the loader was closed");
  inside_bytes_ += bytes;
}

bool MemoryGate::try_enter(std::size_t bytes) {
  MutexLock lock(mutex_);
  const std::size_t work_bytes = read_bytes_ + inside_bytes_ + bytes;
  if (closed_ || work_bytes > limit_bytes_ / 4 || work_bytes + batch_bytes_ > limit_bytes_)
    return false;
  inside_bytes_ += bytes;
  return true;
}

void MemoryGate::leave(std::size_t bytes) {
  if (bytes == 0) return;
  MutexLock lock(mutex_);
  inside_bytes_ -= bytes;
  changed_.notify_all();
}

void MemoryGate::set_batch_bytes(std::size_t bytes) {
  MutexLock lock(mutex_);
  if (bytes < batch_bytes_) changed_.notify_all();
  batch_bytes_ = bytes;
}

void MemoryGate::close() {
  MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace cutwater
