// SPDX-License-Identifier: Apache-2.0
// Team: threads that do one thing together, again and again. They live as long as the team does,
// so that what a thread keeps (codec contexts, working memory) is warm, as in a loader.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "core/mutex.h"

namespace cutwater {

// Used by one thread, that which made it.
class Team {
 public:
  // `look_up` is called by the using thread some times a second while it waits; what it throws ends
  // the wait. REQUIRES: size >= 1.
  Team(int size, std::function<void()> look_up);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  std::size_t size() const { return threads_.size(); }

  // Calls work(worker) on every thread at once, and returns when all have done it. What is thrown
  // inside is thrown here, once no thread works any more.
  void every(const std::function<void(std::size_t worker)>& work);
  // Calls work(worker, i) once for each i in [0, count), each on the next thread that is free.
  // After a failure the rest is left out.
  void each(std::size_t count, const std::function<void(std::size_t worker, std::size_t i)>& work);

 private:
  void live(std::size_t worker);
  void wait();
  void end();

  const std::function<void()> look_up_;
  std::atomic<bool> stop_{false};  // of the present work
  Mutex mutex_;
  Condition begin_, done_;
  const std::function<void(std::size_t)>* work_ CUTWATER_GUARDED_BY(mutex_) = nullptr;
  std::uint64_t round_ CUTWATER_GUARDED_BY(mutex_) = 0;
  std::size_t working_ CUTWATER_GUARDED_BY(mutex_) = 0;
  bool over_ CUTWATER_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ CUTWATER_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace cutwater
