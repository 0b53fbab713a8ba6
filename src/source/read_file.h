// SPDX-License-Identifier: Apache-2.0
// Stored bytes into memory: regular files only, whole or in part, without ever hanging on a pipe or
// a device and without ever delivering fewer bytes than were asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "cutwater/buffer.h"
#include "cutwater/error.h"
#include "cutwater/sample.h"
#include "cutwater/source.h"

namespace cutwater {

// An error about the file or folder `path`; reads "path: reason".
Error path_error(Code code, const std::string& path, std::string reason);

// The operating system's refusal `number` (an errno) about `path`: kNotFound where it does not
// exist, else kIo. `doing` is what was tried, as in "open".
[[noreturn]] void throw_system_error(int number, const std::string& path, const std::string& doing);

// Owns a file descriptor.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// An open regular file. Reads carry their position, so threads may share one.
class File {
 public:
  // Throws Error: kNotFound, kInvalidArgument (not a regular file), kIo.
  static File open(const std::string& path);
  // Nothing where the storage would have to be waited for. Throws as open() does.
  static std::optional<File> open_cached(const std::string& path);
  // The same in two halves, for who opens by other means: with these flags, and what came of it:
  // the descriptor, or -errno. Throws as open() does.
  static const int kOpenFlags;
  static File opened(int result, const std::string& path);

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }
  std::uint64_t size() const { return size_; }         // when it was opened
  std::int64_t mtime_ns() const { return mtime_ns_; }  // when it was opened
  std::uint32_t permissions() const { return permissions_; }

  // Fills `into` from `offset` on. Throws Error(kIo), also when the file has ended before.
  void read(std::uint64_t offset, std::span<std::uint8_t> into) const;
  // As far as it goes without waiting for the storage.
  enum class Cached : std::uint8_t { kAll, kNotAll, kCannotTell };
  struct CachedRead {
    std::size_t bytes;  // that were read
    Cached cached;      // kCannotTell: this file system cannot tell
  };
  CachedRead read_cached(std::uint64_t offset, std::span<std::uint8_t> into) const;
  // For who reads by other means: throws what read() would have, where there is nothing at `offset`
  // (result 0), or for -errno. REQUIRES: result <= 0.
  [[noreturn]] void refuse_read(std::int64_t result, std::uint64_t offset,
                                std::size_t missing) const;

  // Throws Error(kInvalidArgument) where a sample cannot have so many bytes.
  void check_sample_size(std::uint64_t size) const;
  // The bytes of one sample. Throws Error: kIo, kInvalidArgument for none or absurdly many bytes.
  Buffer read_sample(std::uint64_t offset, std::uint64_t size, const ReadContext& into) const;
  // The whole file. Throws Error: kIo, kInvalidArgument when it is larger than `limit`.
  std::string text(std::uint64_t limit) const;

 private:
  File() = default;

  std::string path_;
  Fd fd_;
  std::uint64_t size_ = 0;
  std::int64_t mtime_ns_ = 0;
  std::uint32_t permissions_ = 0;
};

// The whole file as one sample. Throws as File does.
Buffer read_file(const std::string& path, const ReadContext& into);

// The sample that `read` returns. What it throws comes back as a failure with id, path and op: the
// sample is bad, unless this process has run out of something that the sample is not to blame for.
// Failure::storage_failed tells bad files from those that could not be read this time.
Result<Sample> sample_or_failure(SampleId id, const std::function<Sample()>& read,
                                 const std::function<std::string()>& path);

// The sample whose bytes `read` returns, by the field convention of a source: "image" as stored,
// and "label" where there is one. What `read` throws comes back as above.
Result<Sample> stored_sample(SampleId id, std::optional<std::int64_t> label,
                             const std::function<Buffer()>& read,
                             const std::function<std::string()>& path);

}  // namespace cutwater
