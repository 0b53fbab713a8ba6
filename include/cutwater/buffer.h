// SPDX-License-Identifier: Apache-2.0
// Memory: Buffer owns, a span views, copy() copies. All buffers of a loader come from one
// BufferPool and are counted against its one budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace cutwater {

class BufferPool;

inline constexpr std::size_t kBufferAlignment = 64;

// Move-only, 64-byte aligned bytes. Goes back to its pool when destroyed; without a pool, to the
// heap. The bytes are not initialised.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size);  // from the heap, outside any budget
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Buffer();

  std::uint8_t* data() { return data_; }
  const std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Valid while this buffer lives and is not moved from.
  std::span<const std::uint8_t> view() const { return {data_, size_}; }
  std::span<std::uint8_t> span() { return {data_, size_}; }

  Buffer copy() const;

  // From now on the bytes belong to the user of the library: no longer counted in the budget, yet
  // they return to the pool for reuse when it has room for them.
  void give_to_user();

 private:
  friend class BufferPool;
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(counted_, other.counted_);
    std::swap(pool_, other.pool_);
  }

  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  bool counted_ = false;
  std::shared_ptr<BufferPool> pool_;
};

// Recycles buffers by size class within one budget. Fresh pages cost more than all the work done in
// them (a page fault each 4 KiB), so memory is handed round, not returned. Any thread.
//
// allocate() never waits and never fails for want of budget: who may start is decided before, by
// MemoryGate. What the pool promises is that idle memory is given up first.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  static std::shared_ptr<BufferPool> create(std::size_t limit_bytes);
  ~BufferPool();

  Buffer allocate(std::size_t size);

  void give_up_idle();  // back to the system, and keep no more

  std::size_t limit_bytes() const { return limit_bytes_; }
  std::size_t used_bytes() const;  // counted and in use
  std::size_t idle_bytes() const;  // kept for reuse
  std::size_t peak_bytes() const;  // highest used + idle so far

 private:
  friend class Buffer;
  explicit BufferPool(std::size_t limit_bytes);
  void give_back(std::uint8_t* data, std::size_t capacity, bool counted);
  void uncount(std::size_t capacity);

  struct State;
  std::size_t limit_bytes_;
  std::unique_ptr<State> state_;
};

}  // namespace cutwater
