// SPDX-License-Identifier: Apache-2.0
#include "store/disk.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "store/layout.h"

namespace cutwater {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

std::string hex(XXH128_hash_t hash) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

[[noreturn]] void refuse_write(int number, const std::string& path) {
  if (number == ENOSPC || number == EDQUOT || number == EFBIG) {
    throw path_error(
        Code::kIo, path,
        "there is no room for more of it (" + std::generic_category().message(number) + "); " +
            (number == EFBIG ? "raise the limit of file sizes (ulimit -f)" : "make room"));
  }
  throw_system_error(number, path, "write");
}

}  // namespace

std::string inside(const std::string& folder, std::string_view name) {
  return folder + (folder.ends_with('/') ? "" : "/") + std::string(name);
}

struct Checksum::State {
  State() : hash(XXH3_createState()) {
    if (hash == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(hash);
  }
  ~State() { XXH3_freeState(hash); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  XXH3_state_t* hash;
};

Checksum::Checksum() : state_(std::make_unique<State>()) {}
Checksum::~Checksum() = default;

void Checksum::add(std::span<const std::uint8_t> bytes) {
  XXH3_128bits_update(state_->hash, bytes.data(), bytes.size());
}

std::string Checksum::text() const { return hex(XXH3_128bits_digest(state_->hash)); }

std::string checksum_of(std::string_view bytes) {
  return hex(XXH3_128bits(bytes.data(), bytes.size()));
}

File open_plain(const std::string& path) {
  int fd;
  do fd = ::open(path.c_str(), File::kOpenFlags | O_NOFOLLOW);
  while (fd < 0 && errno == EINTR);
  if (fd < 0 && errno == ELOOP)
    throw path_error(Code::kInvalidArgument, path,
                     "is a link, and a store has plain files only; it is not as we write them");
  return File::opened(fd < 0 ? -errno : fd, path);
}

NewFile::NewFile(std::string path)
    : path_(std::move(path)),
      temporary_(path_ + std::string(kTemporarySuffix)),
      fd_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666)) {
  if (fd_.get() < 0) throw_system_error(errno, temporary_, "create");
  buffer_.reserve(kBufferBytes);
}

NewFile::~NewFile() {
  if (!finished_) ::unlink(temporary_.c_str());
}

void NewFile::write(std::span<const std::uint8_t> bytes) {
  size_ += bytes.size();
  checksum_.add(bytes);
  while (!bytes.empty()) {
    const std::size_t part = std::min(bytes.size(), kBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(part));
    bytes = bytes.subspan(part);
    if (buffer_.size() == kBufferBytes) flush();
  }
}

void NewFile::write_zeros(std::size_t bytes) {
  const std::vector<std::uint8_t> zeros(bytes);
  write(zeros);
}

void NewFile::flush() {
  std::span<const std::uint8_t> rest = buffer_;
  while (!rest.empty()) {
    const ssize_t wrote = ::write(fd_.get(), rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) refuse_write(errno, path_);
    rest = rest.subspan(static_cast<std::size_t>(wrote));
  }
  buffer_.clear();
}

void NewFile::sync() {
  flush();
  if (::fsync(fd_.get()) != 0) refuse_write(errno, path_);
}

std::string NewFile::finish() {
  sync();
  if (::close(fd_.release()) != 0) refuse_write(errno, path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) refuse_write(errno, path_);
  finished_ = true;
  return checksum_.text();
}

std::string write_whole(const std::string& path, std::string_view bytes) {
  NewFile file(path);
  file.write(bytes);
  return file.finish();
}

void sync_folder(const std::string& path) {
  const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 && errno == EACCES) return;  // one that may be written to, but not read
  if (folder.get() < 0) throw_system_error(errno, path, "open");
  // Some file systems cannot, and need not.
  if (::fsync(folder.get()) != 0 && errno != EINVAL && errno != EROFS)
    throw_system_error(errno, path, "write");
}

bool make_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::vector<fs::path> missing;
  for (fs::path at = path; !at.empty() && !fs::exists(at, failed); at = at.parent_path())
    missing.push_back(at);
  const bool made = fs::create_directories(path, failed);
  if (failed) throw_system_error(failed.value(), path, "make the folder");
  for (const fs::path& folder : missing) {
    const fs::path parent = folder.parent_path();
    sync_folder(parent.empty() ? "." : parent.string());
  }
  return made;
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_system_error(errno, path, "remove");
}

FolderLock::FolderLock(const std::string& folder) : path_(inside(folder, kLockName)) {
  for (;;) {
    fd_ = Fd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (fd_.get() < 0) throw_system_error(errno, path_, "create");
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) throw_system_error(errno, path_, "lock");
      throw path_error(Code::kIo, folder,
                       "another process is writing this store; wait until it has ended");
    }
    // Whoever held it before may have removed the file after it was opened here.
    struct stat mine, named;
    if (::fstat(fd_.get(), &mine) == 0 && ::stat(path_.c_str(), &named) == 0 &&
        mine.st_ino == named.st_ino && mine.st_dev == named.st_dev)
      return;
  }
}

FolderLock::~FolderLock() { ::unlink(path_.c_str()); }

NoFileSizeSignal::NoFileSizeSignal() {
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  was_blocked_ = sigismember(&before, SIGXFSZ) == 1;
}

NoFileSizeSignal::~NoFileSizeSignal() {
  if (was_blocked_) return;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  const timespec no_wait{0, 0};
  while (sigtimedwait(&signals, nullptr, &no_wait) == SIGXFSZ) continue;
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace cutwater
