// SPDX-License-Identifier: Apache-2.0
// Files as stores need them: written whole or not at all, and plain files where they are read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "source/read_file.h"

namespace cutwater {

std::string inside(const std::string& folder, std::string_view name);

// XXH3, 128 bits, of bytes that come one after another.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void add(std::span<const std::uint8_t> bytes);
  std::string text() const;  // 32 hexadecimal digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};
std::string checksum_of(std::string_view bytes);

// A file of a store, which is never a link. Throws as File::open does.
File open_plain(const std::string& path);

// A file that has its name when all of it is on the disk; before that, and if it is never finished,
// there is only a temporary one, which goes away with this object.
// Throws Error(kIo), which says what is left where there is no room.
class NewFile {
 public:
  explicit NewFile(std::string path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::span<const std::uint8_t> bytes);
  void write(std::string_view text) {
    write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }
  void write_zeros(std::size_t bytes);
  std::uint64_t size() const { return size_; }
  void sync();  // what was written so far is on the disk
  // All of it, with its name, on the disk. Returns the checksum.
  std::string finish();

 private:
  void flush();

  const std::string path_, temporary_;
  Fd fd_;
  Checksum checksum_;
  std::vector<std::uint8_t> buffer_;
  std::uint64_t size_ = 0;
  bool finished_ = false;
};

// Returns the checksum.
std::string write_whole(const std::string& path, std::string_view bytes);
void sync_folder(const std::string& path);  // names given in it are on the disk
// With the folders it lies in, all on the disk. Returns whether it was not there.
bool make_folder(const std::string& path);
void remove_file(const std::string& path);  // or is not there

// Of the one process that writes the store in a folder. Throws Error(kIo) where there is another.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  const std::string path_;
  Fd fd_;
};

// While it lives, a write beyond the limit of file sizes is an error, in this thread and those
// begun by it, not the end of the process.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal();
  ~NoFileSizeSignal();
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  bool was_blocked_ = false;
};

}  // namespace cutwater
