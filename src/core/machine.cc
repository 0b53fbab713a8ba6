// SPDX-License-Identifier: Apache-2.0
#include "core/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "cutwater/error.h"

namespace cutwater {
namespace {

std::optional<std::string> first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  return word;
}

std::optional<double> number_in(const std::string& path) {
  const auto word = first_word(path);
  if (!word || word->find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return std::stod(*word);
}

// The folder of this process in the unified (v2) hierarchy: "0::/a/b" in /proc/self/cgroup.
std::string cgroup2_path() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("0::", 0) == 0) return line.substr(3);
  return {};
}

// Calls visit with this process's cgroup folder and each of its parents: any may set a limit.
template <class F>
void for_each_cgroup2(F&& visit) {
  std::string path = cgroup2_path();
  for (;;) {
    visit("/sys/fs/cgroup" + path);
    if (path.size() <= 1) return;
    path.resize(path.rfind('/'));
  }
}

}  // namespace

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return std::max(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), 1);
}

std::optional<double> cpu_quota() {
  std::optional<double> least;
  const auto consider = [&](double cores) { least = std::min(cores, least.value_or(cores)); };
  for_each_cgroup2([&](const std::string& folder) {
    std::ifstream file(folder + "/cpu.max");  // "200000 100000", or "max 100000"
    std::string quota;
    double period = 0;
    if (file >> quota >> period && quota != "max" && period > 0)
      consider(std::stod(quota) / period);
  });
  const auto quota = number_in("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const auto period = number_in("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (quota && period && *period > 0) consider(*quota / *period);
  return least;
}

int usable_cores() {
  const int cores = affinity_cores();
  const auto quota = cpu_quota();
  if (!quota) return cores;
  return std::clamp(static_cast<int>(std::ceil(*quota)), 1, cores);
}

std::size_t usable_memory_bytes() {
  auto bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  for_each_cgroup2([&](const std::string& folder) {
    bytes = std::min(bytes, number_in(folder + "/memory.max").value_or(bytes));
  });
  bytes = std::min(bytes, number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes").value_or(bytes));
  return static_cast<std::size_t>(bytes);
}

namespace {

// Of a cgroup: what the kernel takes back before it kills anybody.
double page_cache_bytes(const std::string& folder) {
  std::ifstream file(folder + "/memory.stat");  // "inactive_file 1234"
  double sum = 0, bytes = 0;
  for (std::string word; file >> word >> bytes;)
    if (word == "inactive_file" || word == "active_file") sum += bytes;
  return sum;
}

// By this line of the system, and by what the cgroup has left, beside its page cache or with it.
std::size_t memory_left(std::string_view line, bool with_page_cache) {
  auto free = static_cast<double>(usable_memory_bytes());
  std::ifstream file("/proc/meminfo");  // "MemAvailable:   21847896 kB"
  double kibibytes = 0;
  for (std::string word; file >> word;)
    if (word == line && file >> kibibytes) free = std::min(free, kibibytes * 1024);
  for_each_cgroup2([&](const std::string& folder) {
    const auto limit = number_in(folder + "/memory.max"),
               used = number_in(folder + "/memory.current");
    if (!limit || !used) return;
    const double cached = with_page_cache ? page_cache_bytes(folder) : 0;
    free = std::min(free, std::max(*limit - *used + cached, 0.0));
  });
  return static_cast<std::size_t>(free);
}

}  // namespace

std::size_t free_memory_bytes() { return memory_left("MemAvailable:", true); }
std::size_t unused_memory_bytes() { return memory_left("MemFree:", false); }

int default_threads() {
  const char* const text = std::getenv("CUTWATER_THREADS");
  if (text == nullptr) return usable_cores();
  const int threads = std::atoi(text);
  if (threads < 1 || threads > kMostThreads)
    throw Error(Code::kInvalidArgument, "the environment's CUTWATER_THREADS must be in 1.." +
                                            std::to_string(kMostThreads) + ", got '" + text + "'");
  return threads;
}

}  // namespace cutwater
