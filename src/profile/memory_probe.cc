// SPDX-License-Identifier: Apache-2.0
#include "profile/memory_probe.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "core/thread_clock.h"
#include "core/xxh3.h"
#include "profile/median.h"
#include "source/read_file.h"

namespace cutwater {
namespace {

constexpr std::size_t kProbedBytes = std::size_t{32} << 20;

double rate_of(std::size_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
}

// A mapping of this many bytes; of the file, where there is one. Null: there is none.
using Mapping = std::unique_ptr<std::uint8_t, void (*)(std::uint8_t*)>;
Mapping mapped(int fd) {
  const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* const memory = mmap(nullptr, kProbedBytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  return {memory == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(memory),
          [](std::uint8_t* bytes) { munmap(bytes, kProbedBytes); }};
}

}  // namespace

double probe_fresh_memory(Team& team, Measure& measure) {
  std::vector<double> rates(team.size());
  team.every([&](std::size_t worker) {
    const Mapping fresh = mapped(-1);
    if (!fresh) return;
    (void)madvise(fresh.get(), kProbedBytes, MADV_HUGEPAGE);
    const std::span<std::uint8_t> from = measure.rings()[worker].memory();
    const std::size_t bytes = std::min(kProbedBytes, from.size());
    rates[worker] = rate_of(bytes, timed([&] { std::memcpy(fresh.get(), from.data(), bytes); }));
  });
  return median(rates);
}

SharedMemoryRates probe_shared_memory(Team& team, Measure& measure) {
  std::vector<double> copied(team.size()), checked(team.size()), again(team.size());
  team.every([&](std::size_t worker) {
    const Fd file(memfd_create("cutwater-probe", MFD_CLOEXEC));
    if (file.get() < 0 || ftruncate(file.get(), kProbedBytes) != 0) return;
    const Mapping owner = mapped(file.get()), writer = mapped(file.get()),
                  reader = mapped(file.get());
    if (!owner || !writer || !reader) return;
    std::memset(owner.get(), 1, kProbedBytes);
    const OutputRing& ring = measure.rings()[worker];
    const std::span<std::uint8_t> from = measure.rings()[worker].memory();
    const auto copy = [&] {
      for (std::size_t at = 0; at < kProbedBytes; at += from.size())
        std::memcpy(writer.get() + at, from.data(), std::min(from.size(), kProbedBytes - at));
    };
    const auto check = [&] {
      ring.evict_caches();
      return rate_of(kProbedBytes, timed([&] { (void)xxh3({reader.get(), kProbedBytes}); }));
    };
    copied[worker] = rate_of(kProbedBytes, timed(copy));
    checked[worker] = check();
    again[worker] = check();
  });
  return {median(copied), median(checked), median(again)};
}

double probe_memory(Team& team, Measure& measure) {
  constexpr int kRounds = 5;
  std::vector<double> rates(team.size() * kRounds);
  for (std::size_t round = 0; round < kRounds; ++round)
    team.every([&](std::size_t worker) {
      const std::span<std::uint8_t> memory = measure.rings()[worker].memory();
      const std::size_t half = memory.size() / 2;
      const auto copy = [&] { std::memcpy(memory.data(), memory.data() + half, half); };
      rates[round * team.size() + worker] = rate_of(half, timed(copy));
    });
  return median(rates);
}

}  // namespace cutwater
