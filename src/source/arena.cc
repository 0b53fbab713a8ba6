// SPDX-License-Identifier: Apache-2.0
#include "source/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace cutwater {

Arena::~Arena() {
  for (const Chunk& chunk : chunks_) ::munmap(chunk.data, chunk.bytes);
}

std::uint8_t* Arena::allocate(std::size_t bytes) {
  const std::size_t needed = rounded(std::max<std::size_t>(bytes, 1));
  if (chunks_.empty() || chunks_.back().bytes - used_ < needed) {
    chunks_.reserve(chunks_.size() + 1);
    const std::size_t size = std::max(needed, kChunkBytes);
    void* const fresh =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) throw std::bad_alloc();
    // Reading at random misses the TLB on small pages for each sample. A kernel without huge pages
    // refuses, and nothing is lost.
    ::madvise(fresh, size, MADV_HUGEPAGE);
    chunks_.push_back({static_cast<std::uint8_t*>(fresh), size});
    used_ = 0;
  }
  std::uint8_t* const place = chunks_.back().data + used_;
  used_ += needed;
  return place;
}

}  // namespace cutwater
