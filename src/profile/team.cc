// SPDX-License-Identifier: Apache-2.0
#include "profile/team.h"

#include <chrono>
#include <utility>

namespace cutwater {
namespace {

constexpr std::chrono::milliseconds kLookUp{50};

}  // namespace

Team::Team(int size, std::function<void()> look_up) : look_up_(std::move(look_up)) {
  try {
    for (int i = 0; i < size; ++i)
      threads_.emplace_back([this, i] { live(static_cast<std::size_t>(i)); });
  } catch (...) {
    end();
    throw;
  }
}

Team::~Team() { end(); }

void Team::end() {
  {
    MutexLock lock(mutex_);
    over_ = true;
  }
  begin_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::live(std::size_t worker) {
  std::uint64_t seen = 0;
  for (;;) {
    const std::function<void(std::size_t)>* work = nullptr;
    {
      MutexLock lock(mutex_);
      while (!over_ && round_ == seen) begin_.wait(mutex_);
      if (over_) return;
      seen = round_;
      work = work_;
    }
    std::exception_ptr failure;
    try {
      (*work)(worker);
    } catch (...) {
      failure = std::current_exception();
      stop_ = true;
    }
    MutexLock lock(mutex_);
    if (failure && !failure_) failure_ = failure;
    if (--working_ == 0) done_.notify_all();
  }
}

void Team::every(const std::function<void(std::size_t)>& work) {
  stop_ = false;
  {
    MutexLock lock(mutex_);
    work_ = &work;
    working_ = threads_.size();
    failure_ = nullptr;
    ++round_;
  }
  begin_.notify_all();
  std::exception_ptr failure;
  try {
    wait();
  } catch (...) {
    failure = std::current_exception();
    stop_ = true;
  }
  MutexLock lock(mutex_);
  while (working_ > 0) done_.wait(mutex_);  // the work refers to the caller's variables
  if (!failure) failure = std::exchange(failure_, nullptr);
  if (failure) std::rethrow_exception(failure);
}

void Team::wait() {
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (working_ > 0) done_.wait_for(mutex_, kLookUp);
      if (working_ == 0) return;
    }
    if (look_up_) look_up_();
  }
}

void Team::each(std::size_t count, const std::function<void(std::size_t, std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  every([&](std::size_t worker) {
    for (std::size_t i; !stop_ && (i = next++) < count;) work(worker, i);
  });
}

}  // namespace cutwater
