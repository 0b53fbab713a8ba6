// SPDX-License-Identifier: Apache-2.0
#include "ops/image/scratch.h"

#include <array>
#include <cstddef>
#include <new>
#include <utility>

namespace cutwater::image {
namespace {

constexpr std::int64_t kKeptBytes = 256 << 10;  // no idle block is larger

struct Block {
  std::uint8_t* data = nullptr;
  std::int64_t bytes = 0;
};

Block allocate(std::int64_t bytes) {
  return {static_cast<std::uint8_t*>(
              ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{kCacheLine})),
          bytes};
}
void release(const Block& block) { ::operator delete (block.data, std::align_val_t{kCacheLine}); }

// The idle blocks of a thread. The last one given back is the first one taken: work that repeats
// finds the block it had before.
struct Idle {
  std::array<Block, 8> blocks;
  std::size_t count = 0;

  ~Idle() {
    while (count > 0) release(blocks[--count]);
  }
};
thread_local Idle idle;

Block take(std::int64_t bytes) {
  if (idle.count == 0) return allocate(rounded_up(bytes, 4096));
  const Block block = idle.blocks[--idle.count];
  if (block.bytes >= bytes) return block;
  release(block);
  return allocate(rounded_up(bytes, 4096));
}

void give_back(const Block& block) {
  if (block.bytes <= kKeptBytes && idle.count < idle.blocks.size())
    idle.blocks[idle.count++] = block;
  else
    release(block);
}

}  // namespace

Scratch::Scratch(std::int64_t bytes) {
  const Block block = take(bytes);
  data_ = block.data;
  bytes_ = block.bytes;
}

Scratch::~Scratch() { give_back({data_, bytes_}); }

}  // namespace cutwater::image
