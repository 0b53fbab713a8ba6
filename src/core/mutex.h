// SPDX-License-Identifier: Apache-2.0
// A mutex whose rules the compiler checks: clang's -Wthread-safety refuses a guarded member that is
// touched without its lock. Elsewhere the annotations vanish.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define CUTWATER_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define CUTWATER_THREAD_ANNOTATION(x)
#endif
#define CUTWATER_CAPABILITY(x) CUTWATER_THREAD_ANNOTATION(capability(x))
#define CUTWATER_SCOPED_CAPABILITY CUTWATER_THREAD_ANNOTATION(scoped_lockable)
#define CUTWATER_GUARDED_BY(x) CUTWATER_THREAD_ANNOTATION(guarded_by(x))
#define CUTWATER_REQUIRES(...) CUTWATER_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define CUTWATER_ACQUIRE(...) CUTWATER_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define CUTWATER_RELEASE(...) CUTWATER_THREAD_ANNOTATION(release_capability(__VA_ARGS__))

namespace cutwater {

class CUTWATER_CAPABILITY("mutex") Mutex {
 public:
  void lock() CUTWATER_ACQUIRE() { mutex_.lock(); }
  void unlock() CUTWATER_RELEASE() { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

class CUTWATER_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) CUTWATER_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() CUTWATER_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits are written as loops over guarded state: while (!ready_) ready_changed_.wait(mutex_);
class Condition {
 public:
  void wait(Mutex& mutex) CUTWATER_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  // False when the time ran out first.
  bool wait_for(Mutex& mutex, std::chrono::nanoseconds time) CUTWATER_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool woken = changed_.wait_for(lock, time) == std::cv_status::no_timeout;
    lock.release();
    return woken;
  }
  void notify_one() { changed_.notify_one(); }
  void notify_all() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace cutwater
