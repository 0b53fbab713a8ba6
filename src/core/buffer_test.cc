// SPDX-License-Identifier: Apache-2.0
#include "cutwater/buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace cutwater {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::size_t kSmallest = 4 * kKiB;  // a block of the pool

bool aligned(const Buffer& buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer.data()) % kBufferAlignment == 0;
}

TEST(Buffer, StartsEmpty) {
  const Buffer buffer;
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_TRUE(buffer.empty());
  EXPECT_TRUE(buffer.view().empty());
}

TEST(Buffer, IsAlignedAndWritableToItsLastByte) {
  const auto pool = BufferPool::create(64 * kMiB);
  for (const std::size_t size :
       {0UL, 1UL, 63UL, 64UL, 4095UL, 4096UL, 4097UL, 100'000UL, 1'000'003UL}) {
    Buffer heap(size), pooled = pool->allocate(size);
    for (Buffer* buffer : {&heap, &pooled}) {
      EXPECT_EQ(buffer->size(), size);
      EXPECT_TRUE(aligned(*buffer)) << size;
      std::ranges::fill(buffer->span(), std::uint8_t{7});
      EXPECT_EQ(std::ranges::count(buffer->view(), 7), static_cast<std::ptrdiff_t>(size));
    }
  }
}

TEST(Buffer, AMoveTakesBytesAndCountAlong) {
  const auto pool = BufferPool::create(kMiB);
  Buffer first = pool->allocate(100);
  const std::uint8_t* const data = first.data();
  Buffer second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(pool->used_bytes(), kSmallest);

  Buffer third = pool->allocate(200);
  third = std::move(second);  // what it held goes back
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size(), 100U);
  EXPECT_EQ(pool->used_bytes(), kSmallest);
  EXPECT_EQ(pool->idle_bytes(), kSmallest);
}

TEST(Buffer, ACopyHasItsOwnBytesOfTheSamePool) {
  const auto pool = BufferPool::create(kMiB);
  Buffer original = pool->allocate(5);
  std::memcpy(original.data(), "abcde", 5);
  Buffer copy = original.copy();
  original.data()[0] = 'x';
  EXPECT_EQ(std::string(copy.view().begin(), copy.view().end()), "abcde");
  EXPECT_EQ(pool->used_bytes(), 2 * kSmallest);

  const Buffer heap(3);
  EXPECT_EQ(heap.copy().size(), 3U);
  EXPECT_EQ(Buffer().copy().size(), 0U);
}

TEST(BufferPool, HandsTheSameBlockOutAgain) {
  const auto pool = BufferPool::create(kMiB);
  const std::uint8_t* first = nullptr;
  {
    const Buffer buffer = pool->allocate(10'000);
    first = buffer.data();
    EXPECT_EQ(pool->idle_bytes(), 0U);
  }
  EXPECT_EQ(pool->used_bytes(), 0U);
  EXPECT_GT(pool->idle_bytes(), 0U);
  const Buffer again = pool->allocate(9'900);  // nearly the same size: the same class
  EXPECT_EQ(again.data(), first);
  EXPECT_EQ(pool->idle_bytes(), 0U);
}

TEST(BufferPool, WastesAtMostAQuarter) {
  const auto pool = BufferPool::create(1UL << 40);
  for (std::size_t size = 5000; size < 20 * kMiB; size = size * 9 / 8 + 1) {
    const Buffer buffer = pool->allocate(size);
    EXPECT_GE(pool->used_bytes(), size);
    EXPECT_LE(pool->used_bytes(), size + size / 4 + 1);
  }
}

TEST(BufferPool, GivesIdleMemoryUpBeforeItGoesOverTheLimit) {
  const auto pool = BufferPool::create(kMiB);
  { const Buffer large = pool->allocate(512 * kKiB), other = pool->allocate(256 * kKiB); }
  EXPECT_EQ(pool->idle_bytes(), 768 * kKiB);
  const Buffer needed = pool->allocate(640 * kKiB);
  EXPECT_EQ(pool->used_bytes(), 640 * kKiB);
  EXPECT_EQ(pool->idle_bytes(), 256 * kKiB) << "the largest idle block makes way, no more";
  EXPECT_LE(pool->peak_bytes(), kMiB);
}

TEST(BufferPool, AllocatesBeyondItsLimitButKeepsNothingThere) {
  const auto pool = BufferPool::create(kMiB);
  {
    const Buffer huge = pool->allocate(4 * kMiB);
    EXPECT_EQ(pool->used_bytes(), 4 * kMiB);
  }
  EXPECT_EQ(pool->used_bytes(), 0U);
  EXPECT_EQ(pool->idle_bytes(), 0U);
  EXPECT_EQ(pool->peak_bytes(), 4 * kMiB);
}

TEST(BufferPool, WhatTheUserHasIsNotCounted) {
  const auto pool = BufferPool::create(kMiB);
  Buffer buffer = pool->allocate(kSmallest);
  const std::uint8_t* const data = buffer.data();
  buffer.give_to_user();
  EXPECT_EQ(pool->used_bytes(), 0U);
  buffer.give_to_user();  // once is enough
  EXPECT_EQ(pool->used_bytes(), 0U);
  buffer = Buffer();
  EXPECT_EQ(pool->used_bytes(), 0U);
  EXPECT_EQ(pool->idle_bytes(), kSmallest);
  EXPECT_EQ(pool->allocate(1).data(), data) << "it came back for reuse";
}

TEST(BufferPool, WhatTheUserReturnsIsKeptOnlyWhereThereIsRoom) {
  const auto pool = BufferPool::create(2 * kSmallest);
  Buffer first = pool->allocate(1), second = pool->allocate(1), third;
  first.give_to_user();
  third = pool->allocate(1);
  first = Buffer();
  EXPECT_EQ(pool->used_bytes(), 2 * kSmallest);
  EXPECT_EQ(pool->idle_bytes(), 0U);
}

TEST(BufferPool, ThePeakIsTheHighestSumOfUsedAndIdle) {
  const auto pool = BufferPool::create(kMiB);
  std::vector<Buffer> held;
  std::mt19937 random(5);
  std::size_t highest = 0;
  for (int i = 0; i < 500; ++i) {
    if (held.size() < 3 || random() % 2 == 0)
      held.push_back(pool->allocate(1 + random() % (64 * kKiB)));
    else if (random() % 2 == 0)
      held[random() % held.size()].give_to_user();
    else
      std::swap(held[random() % held.size()], held.back()), held.pop_back();
    highest = std::max(highest, pool->used_bytes() + pool->idle_bytes());
    ASSERT_EQ(pool->peak_bytes(), highest) << "step " << i;
  }
}

TEST(BufferPool, ABlockUpToTwiceAsLargeWillDo) {
  const auto pool = BufferPool::create(kMiB);
  const std::uint8_t* block = nullptr;
  {
    const Buffer large = pool->allocate(64 * kKiB);
    block = large.data();
  }
  EXPECT_NE(pool->allocate(20 * kKiB).data(), block) << "three times as large is a waste";
  const Buffer smaller = pool->allocate(40 * kKiB);
  EXPECT_EQ(smaller.data(), block);
  EXPECT_EQ(smaller.size(), 40 * kKiB);
  EXPECT_GE(pool->used_bytes(), 64 * kKiB) << "what the block takes counts, not what is asked for";
}

TEST(BufferPool, LivesAsLongAsAnyOfItsBuffers) {
  auto pool = BufferPool::create(kMiB);
  const std::weak_ptr<BufferPool> watch = pool;
  Buffer buffer = pool->allocate(100);
  Buffer idle = pool->allocate(100);
  idle = Buffer();
  pool.reset();
  EXPECT_FALSE(watch.expired());
  std::ranges::fill(buffer.span(), std::uint8_t{1});
  Buffer copy = buffer.copy();
  buffer = Buffer();
  EXPECT_FALSE(watch.expired());
  copy = Buffer();
  EXPECT_TRUE(watch.expired());
}

TEST(BufferPool, ServesManyThreads) {
  const auto pool = BufferPool::create(kMiB);
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        for (int i = 0; i < 500; ++i) {
          Buffer buffer = pool->allocate(1 + random() % (32 * kKiB));
          const auto mine = static_cast<std::uint8_t>(t);
          std::ranges::fill(buffer.span(), mine);
          if (i % 3 == 0) buffer.give_to_user();
          EXPECT_EQ(buffer.view().front(), mine);
          EXPECT_EQ(buffer.view().back(), mine);
        }
      });
  }
  EXPECT_EQ(pool->used_bytes(), 0U);
  EXPECT_LE(pool->idle_bytes(), kMiB);
}

}  // namespace
}  // namespace cutwater
