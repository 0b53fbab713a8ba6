// SPDX-License-Identifier: Apache-2.0
#include "cutwater/buffer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <new>
#include <vector>

#include "core/mutex.h"

namespace cutwater {
namespace {

constexpr std::align_val_t kAlignment{kBufferAlignment};

std::uint8_t* take_from_heap(std::size_t bytes) {
  return static_cast<std::uint8_t*>(::operator new(bytes, kAlignment));
}
void return_to_heap(std::uint8_t* data) { ::operator delete(data, kAlignment); }

// Four classes per power of two, from one page on: at most a quarter is wasted, and blocks of
// nearly the same size serve each other.
std::size_t size_class(std::size_t bytes) {
  constexpr std::size_t kSmallest = 4096;
  if (bytes <= kSmallest) return kSmallest;
  const std::size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

}  // namespace

Buffer::Buffer(std::size_t size) : size_(size), capacity_(std::max<std::size_t>(size, 1)) {
  data_ = take_from_heap(capacity_);
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  if (pool_)
    pool_->give_back(data_, capacity_, counted_);
  else
    return_to_heap(data_);
}

Buffer Buffer::copy() const {
  Buffer other = pool_ ? pool_->allocate(size_) : Buffer(size_);
  if (size_ > 0) std::memcpy(other.data_, data_, size_);
  return other;
}

void Buffer::give_to_user() {
  if (pool_ && counted_) pool_->uncount(capacity_);
  counted_ = false;
}

struct BufferPool::State {
  mutable Mutex mutex;
  std::map<std::size_t, std::vector<std::uint8_t*>> idle CUTWATER_GUARDED_BY(mutex);
  std::size_t idle_bytes CUTWATER_GUARDED_BY(mutex) = 0;
  std::size_t used_bytes CUTWATER_GUARDED_BY(mutex) = 0;
  std::size_t peak_bytes CUTWATER_GUARDED_BY(mutex) = 0;
  bool keeps_idle CUTWATER_GUARDED_BY(mutex) = true;
};

std::shared_ptr<BufferPool> BufferPool::create(std::size_t limit_bytes) {
  return std::shared_ptr<BufferPool>(new BufferPool(limit_bytes));
}

BufferPool::BufferPool(std::size_t limit_bytes)
    : limit_bytes_(limit_bytes), state_(std::make_unique<State>()) {}

BufferPool::~BufferPool() {
  MutexLock lock(state_->mutex);
  for (auto& [capacity, blocks] : state_->idle)
    for (std::uint8_t* block : blocks) return_to_heap(block);
}

Buffer BufferPool::allocate(std::size_t size) {
  std::size_t capacity = size_class(size);
  std::uint8_t* data = nullptr;
  std::vector<std::uint8_t*> surplus;
  {
    MutexLock lock(state_->mutex);
    // A block up to twice as large will do: otherwise crops of all sizes keep a block of each size.
    const auto fitting = state_->idle.lower_bound(capacity);
    if (fitting != state_->idle.end() && fitting->first <= 2 * capacity) {
      capacity = fitting->first;
      data = fitting->second.back();
      fitting->second.pop_back();
      if (fitting->second.empty()) state_->idle.erase(fitting);
      state_->idle_bytes -= capacity;
    }
    state_->used_bytes += capacity;
    // Idle blocks of other sizes make way, the largest first.
    while (!state_->idle.empty() && state_->used_bytes + state_->idle_bytes > limit_bytes_) {
      const auto largest = std::prev(state_->idle.end());
      surplus.push_back(largest->second.back());
      largest->second.pop_back();
      state_->idle_bytes -= largest->first;
      if (largest->second.empty()) state_->idle.erase(largest);
    }
    state_->peak_bytes = std::max(state_->peak_bytes, state_->used_bytes + state_->idle_bytes);
  }
  for (std::uint8_t* block : surplus) return_to_heap(block);

  Buffer buffer;
  buffer.size_ = size;
  buffer.capacity_ = capacity;
  buffer.counted_ = true;
  buffer.pool_ = shared_from_this();
  try {
    buffer.data_ = data != nullptr ? data : take_from_heap(capacity);
  } catch (...) {
    uncount(capacity);
    throw;
  }
  return buffer;
}

void BufferPool::give_back(std::uint8_t* data, std::size_t capacity, bool counted) {
  {
    MutexLock lock(state_->mutex);
    if (counted) state_->used_bytes -= capacity;
    if (state_->keeps_idle && state_->used_bytes + state_->idle_bytes + capacity <= limit_bytes_) {
      state_->idle[capacity].push_back(data);
      state_->idle_bytes += capacity;
      state_->peak_bytes = std::max(state_->peak_bytes, state_->used_bytes + state_->idle_bytes);
      return;
    }
  }
  return_to_heap(data);
}

void BufferPool::uncount(std::size_t capacity) {
  MutexLock lock(state_->mutex);
  state_->used_bytes -= capacity;
}

void BufferPool::give_up_idle() {
  std::map<std::size_t, std::vector<std::uint8_t*>> idle;
  {
    MutexLock lock(state_->mutex);
    idle.swap(state_->idle);
    state_->idle_bytes = 0;
    state_->keeps_idle = false;
  }
  for (auto& [capacity, blocks] : idle)
    for (std::uint8_t* block : blocks) return_to_heap(block);
}

std::size_t BufferPool::used_bytes() const {
  MutexLock lock(state_->mutex);
  return state_->used_bytes;
}
std::size_t BufferPool::idle_bytes() const {
  MutexLock lock(state_->mutex);
  return state_->idle_bytes;
}
std::size_t BufferPool::peak_bytes() const {
  MutexLock lock(state_->mutex);
  return state_->peak_bytes;
}

}  // namespace cutwater
