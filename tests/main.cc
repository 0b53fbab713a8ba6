// The tests' main: as GoogleMock's, with a watchdog. A test that hangs is named, says what each of
// its threads was doing, and ends the run; otherwise it would take all the time there is and leave
// nothing to go by.
#include <dirent.h>
#include <execinfo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

namespace {

// The longest test takes some seconds, half a minute under a sanitizer on a busy machine.
constexpr std::chrono::minutes kLongest{4};

void print_stack(int /*signal*/) {
  std::array<void*, 64> frames{};
  const int depth = backtrace(frames.data(), static_cast<int>(frames.size()));
  backtrace_symbols_fd(frames.data(), depth, STDERR_FILENO);
}

// One thread after the other, so that their lines do not mix.
void print_all_stacks() {
  DIR* const threads = opendir("/proc/self/task");
  if (threads == nullptr) return;
  while (const dirent* entry = readdir(threads)) {
    const int thread = std::atoi(entry->d_name);
    if (thread == 0 || thread == gettid()) continue;
    std::cerr << "thread " << thread << ":\n" << std::flush;
    syscall(SYS_tgkill, getpid(), thread, SIGUSR2);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  closedir(threads);
}

class Watchdog : public testing::EmptyTestEventListener {
 public:
  Watchdog() {
    std::array<void*, 1> frame{};
    backtrace(frame.data(), 1);  // loads what it needs, which a signal's handler must not
    struct sigaction action {};
    action.sa_handler = print_stack;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR2, &action, nullptr);
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() override { stop(); }

  // A thread for each test: some tests fork, and their children need none.
  void OnTestStart(const testing::TestInfo& test) override {
    over_ = false;
    watcher_ = std::thread(
        [this, name = std::string(test.test_suite_name()) + "." + test.name()] { watch(name); });
  }
  void OnTestEnd(const testing::TestInfo& /*test*/) override { stop(); }

 private:
  void watch(const std::string& name) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kLongest, [this] { return over_; })) return;
    std::cerr << "\n[  HANGS   ] " << name << " has run for " << kLongest.count() << " minutes\n";
    print_all_stacks();
    std::cerr << "[  HANGS   ] " << name << ": the tests end here\n" << std::flush;
    _exit(3);
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    if (watcher_.joinable()) watcher_.join();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = true;
  std::thread watcher_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new Watchdog);
  return RUN_ALL_TESTS();
}
