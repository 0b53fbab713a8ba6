// SPDX-License-Identifier: Apache-2.0
// Arena: memory that only grows, in large pieces, and is given back all at once. Samples that stay
// in memory lie here side by side: no header, no rounding to a power of two, huge pages if there
// are any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cutwater {

// One thread at a time.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  Arena(Arena&& other) noexcept : chunks_(std::move(other.chunks_)), used_(other.used_) {
    other.chunks_.clear();
  }
  ~Arena();

  static constexpr std::size_t rounded(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  // At least one byte, aligned as buffers are; valid until the arena is destroyed or rewound to
  // before. The bytes are zero or what was there before a rewind. Throws std::bad_alloc.
  std::uint8_t* allocate(std::size_t bytes);

  // What was allocated since the mark may be given away again.
  struct Mark {
    std::size_t chunks, used;
  };
  Mark mark() const { return {chunks_.size(), used_}; }
  void rewind(const Mark& mark) { used_ = mark.chunks == chunks_.size() ? mark.used : 0; }

 private:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kChunkBytes = std::size_t{32} << 20;

  struct Chunk {
    std::uint8_t* data;
    std::size_t bytes;
  };
  std::vector<Chunk> chunks_;
  std::size_t used_ = 0;  // of the last chunk
};

}  // namespace cutwater
