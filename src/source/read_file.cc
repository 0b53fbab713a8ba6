// SPDX-License-Identifier: Apache-2.0
#include "source/read_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>

#include "core/caught.h"

namespace cutwater {
namespace {

// No image is this large; a sparse file that claims to be must not bring the process down.
constexpr std::uint64_t kMaxSampleBytes = std::uint64_t{2} << 30;

std::string way_out(int number) {
  switch (number) {
    case EACCES:
    case EPERM: return "; check its permissions";
    case EMFILE: return "; raise the limit of open files (ulimit -n)";
    case ELOOP: return "; a link leads to itself";
    default: return "";
  }
}

// Knows whether the process or the storage, not the file, is at fault.
class SystemError : public Error {
 public:
  SystemError(int number, Failure failure) : Error(std::move(failure)), number_(number) {}
  bool out_of_resources() const {
    return number_ == EMFILE || number_ == ENFILE || number_ == ENOMEM;
  }
  // Another try has the same answer, as long as nobody changes the file.
  bool lasting() const {
    switch (number_) {
      case ENOENT:
      case ENOTDIR:
      case EACCES:
      case EPERM:
      case ELOOP:
      case EISDIR:
      case ENAMETOOLONG: return true;
      default: return false;
    }
  }

 private:
  int number_;
};

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a file of a known kind";
}

[[noreturn]] void throw_not_regular(const std::string& path, mode_t mode) {
  throw path_error(Code::kInvalidArgument, path, "is " + kind_of(mode) + ", not a regular file");
}

}  // namespace

Error path_error(Code code, const std::string& path, std::string reason) {
  return Error(Failure{code, std::move(reason), -1, path, {}});
}

void throw_system_error(int number, const std::string& path, const std::string& doing) {
  const Code code = number == ENOENT || number == ENOTDIR ? Code::kNotFound : Code::kIo;
  std::string reason =
      "cannot " + doing + ": " + std::generic_category().message(number) + way_out(number);
  throw SystemError(number, Failure{code, std::move(reason), -1, path, {}});
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

// O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
const int File::kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

File File::open(const std::string& path) {
  int fd;
  do fd = ::open(path.c_str(), kOpenFlags);
  while (fd < 0 && errno == EINTR);
  return opened(fd < 0 ? -errno : fd, path);
}

std::optional<File> File::open_cached(const std::string& path) {
  static std::atomic<bool> supported{true};
  if (supported.load(std::memory_order_relaxed)) {
    struct open_how how = {};
    how.flags = static_cast<std::uint64_t>(kOpenFlags);
    how.resolve = RESOLVE_CACHED;
    const long fd = ::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how);
    if (fd >= 0) return opened(static_cast<int>(fd), path);
    if (errno == EAGAIN) return std::nullopt;
    // An old kernel, or a sandbox that does not know the call.
    if (errno == ENOSYS || errno == EINVAL || errno == EPERM) supported = false;
  }
  return open(path);
}

File File::opened(int result, const std::string& path) {
  struct stat status;
  if (result < 0) {
    // Sockets, and devices that are not there, cannot be opened at all.
    const bool special = result == -ENXIO && ::stat(path.c_str(), &status) == 0;
    if (special) throw_not_regular(path, status.st_mode);
    throw_system_error(-result, path, "open");
  }
  File file;
  file.fd_ = Fd(result);
  file.path_ = path;
  if (::fstat(result, &status) != 0) throw_system_error(errno, path, "stat");
  if (!S_ISREG(status.st_mode)) throw_not_regular(path, status.st_mode);
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  file.mtime_ns_ = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  file.permissions_ = status.st_mode & 0777u;
  return file;
}

void File::read(std::uint64_t offset, std::span<std::uint8_t> into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(fd_.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) refuse_read(got < 0 ? -errno : 0, offset, into.size());
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

File::CachedRead File::read_cached(std::uint64_t offset, std::span<std::uint8_t> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    iovec rest{into.data() + done, into.size() - done};
    const ssize_t got =
        ::preadv2(fd_.get(), &rest, 1, static_cast<off_t>(offset + done), RWF_NOWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return {done, Cached::kNotAll};
    if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) return {done, Cached::kCannotTell};
    if (got <= 0) refuse_read(got < 0 ? -errno : 0, offset + done, into.size() - done);
    done += static_cast<std::size_t>(got);
  }
  return {done, Cached::kAll};
}

void File::refuse_read(std::int64_t result, std::uint64_t offset, std::size_t missing) const {
  if (result < 0) throw_system_error(static_cast<int>(-result), path_, "read");
  throw path_error(Code::kIo, path_,
                   "ends at byte " + std::to_string(offset) + ", " + std::to_string(missing) +
                       " bytes are missing; it became shorter while it was read");
}

void File::check_sample_size(std::uint64_t size) const {
  if (size == 0) throw path_error(Code::kInvalidArgument, path_, "is empty (0 bytes)");
  if (size <= kMaxSampleBytes) return;
  throw path_error(Code::kInvalidArgument, path_,
                   "has " + std::to_string(size) + " bytes; a sample may have up to " +
                       std::to_string(kMaxSampleBytes));
}

Buffer File::read_sample(std::uint64_t offset, std::uint64_t size, const ReadContext& into) const {
  check_sample_size(size);
  Buffer buffer = into.allocate(static_cast<std::size_t>(size));
  read(offset, buffer.span());
  return buffer;
}

std::string File::text(std::uint64_t limit) const {
  if (size_ > limit) {
    throw path_error(Code::kInvalidArgument, path_,
                     "has " + std::to_string(size_) + " bytes; up to " + std::to_string(limit) +
                         " are accepted");
  }
  std::string text(static_cast<std::size_t>(size_), '\0');
  read(0, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  return text;
}

Buffer read_file(const std::string& path, const ReadContext& into) {
  const File file = File::open(path);
  return file.read_sample(0, file.size(), into);
}

Result<Sample> sample_or_failure(SampleId id, const std::function<Sample()>& read,
                                 const std::function<std::string()>& path) {
  Failure failure;
  try {
    return read();
  } catch (const SystemError& error) {
    failure = caught(id, "read");
    failure.code = error.out_of_resources() ? Code::kIo : Code::kBadSample;
    failure.storage_failed = !error.lasting();
  } catch (const Error& error) {
    failure = caught(id, "read");
    // kIo: it became shorter, or another file, under our hands.
    failure.storage_failed = failure.storage_failed || error.code() == Code::kIo;
    if (error.code() != Code::kCancelled) failure.code = Code::kBadSample;
  } catch (...) {
    failure = caught(id, "read");
  }
  failure.path = path();
  return failure;
}

Result<Sample> stored_sample(SampleId id, std::optional<std::int64_t> label,
                             const std::function<Buffer()>& read,
                             const std::function<std::string()>& path) {
  const auto whole = [&] {
    Buffer bytes = read();
    const TensorSpec spec{DType::kU8, {static_cast<std::int64_t>(bytes.size())}};
    Sample sample;
    sample.id = id;
    sample.fields.push_back({std::string(kImageField), Tensor(spec, std::move(bytes))});
    if (label) sample.fields.push_back({std::string(kLabelField), Tensor::scalar(*label)});
    return sample;
  };
  return sample_or_failure(id, whole, path);
}

}  // namespace cutwater
