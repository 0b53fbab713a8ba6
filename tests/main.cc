// The tests' main: as GoogleMock's, with a watchdog. A test that hangs is named, says what each of
// its threads was doing, and ends the run; otherwise it would take all the time there is and leave
// nothing to go by.
// The watchdog is a signal and no thread: some tests fork.
#include <execinfo.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

namespace {

// The longest test takes some seconds, half a minute under a sanitizer on a busy machine.
constexpr unsigned kLongestSeconds = 240;

std::string test_name;  // of the one that runs

// What follows runs in signal handlers, perhaps in the middle of malloc: nothing in it allocates.

void say(std::string_view text) {
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) _exit(3);
}

void print_stack(int /*signal*/) {
  std::array<void*, 64> frames{};
  const int depth = backtrace(frames.data(), static_cast<int>(frames.size()));
  backtrace_symbols_fd(frames.data(), depth, STDERR_FILENO);
}

// One thread after the other, so that their lines do not mix.
void print_all_stacks() {
  struct Entry {  // as getdents64(2) has it
    std::uint64_t inode;
    std::int64_t next;
    std::uint16_t size;
    std::uint8_t type;
    char name[1];
  };
  const int threads = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  alignas(Entry) static std::array<char, 1 << 16> list;
  const long bytes = syscall(SYS_getdents64, threads, list.data(), list.size());
  for (long at = 0; at < bytes;) {
    const auto* const entry = reinterpret_cast<const Entry*>(list.data() + at);
    at += entry->size;
    const int thread = std::atoi(entry->name);
    if (thread == 0) continue;
    say("thread ");
    say(entry->name);
    say("\n");
    syscall(SYS_tgkill, getpid(), thread, SIGUSR2);
    const timespec until_printed{0, 200'000'000};
    nanosleep(&until_printed, nullptr);
  }
}

void hangs(int /*signal*/) {
  say("\n[  HANGS   ] ");
  say(test_name);
  say(" has run for minutes\n");
  print_all_stacks();
  say("[  HANGS   ] the tests end here\n");
  _exit(3);
}

class Watchdog : public testing::EmptyTestEventListener {
 public:
  Watchdog() {
    std::array<void*, 1> frame{};
    backtrace(frame.data(), 1);  // loads what it needs, which a signal's handler must not
    struct sigaction action {};
    action.sa_flags = SA_RESTART;
    action.sa_handler = print_stack;
    sigaction(SIGUSR2, &action, nullptr);
    action.sa_handler = hangs;
    sigaction(SIGALRM, &action, nullptr);
  }
  void OnTestStart(const testing::TestInfo& test) override {
    test_name = std::string(test.test_suite_name()) + "." + test.name();
    alarm(kLongestSeconds);
  }
  void OnTestEnd(const testing::TestInfo& /*test*/) override { alarm(0); }
};

}  // namespace

#ifdef __SANITIZE_THREAD__
// Tests fork daemons, also while clients have threads, and the daemons then have some of their own.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }
#endif

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new Watchdog);
  return RUN_ALL_TESTS();
}
