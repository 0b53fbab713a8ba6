// SPDX-License-Identifier: Apache-2.0
#include "profile/new_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "source/read_file.h"

namespace cutwater {
namespace {

namespace fs = std::filesystem;

constexpr int kMostNames = 1000;

void sync_folder(const fs::path& path) {
  const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) (void)::fsync(folder.get());  // some file systems cannot, and need not
}

// Links are followed, and the name is that of a folder: no '/' or '.' at its end.
fs::path real_place(const std::string& path) {
  std::error_code failed;
  fs::path place = fs::absolute(path, failed);
  if (!failed) place = fs::weakly_canonical(place, failed);
  if (failed) throw_system_error(failed.value(), path, "make the folder");
  return place.has_filename() ? place : place.parent_path();
}

}  // namespace

NewFolder::NewFolder(const std::string& path) : place_(real_place(path)) {
  std::error_code failed;
  fs::create_directories(place_.parent_path(), failed);
  if (failed) throw_system_error(failed.value(), path, "make the folder");
  // The first name that is free: killed ones may have left theirs.
  for (int number = 0; temporary_.empty(); ++number) {
    const std::string name = place_.string() + ".new-" + std::to_string(number);
    if (::mkdir(name.c_str(), 0777) == 0)
      temporary_ = name;
    else if (errno != EEXIST || number == kMostNames)
      throw_system_error(errno, place_.parent_path().string(), "make a folder in");
  }
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void NewFolder::write(const std::string& name, std::string_view bytes) const {
  const std::string path = temporary_ + "/" + name;
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  while (fd.get() >= 0 && !bytes.empty()) {
    const ssize_t wrote = ::write(fd.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (fd.get() < 0 || !bytes.empty() || ::fsync(fd.get()) != 0)
    throw_system_error(errno, path, "write");
}

void NewFolder::put_in_place() {
  sync_folder(temporary_);
  if (::rename(temporary_.c_str(), place_.c_str()) == 0) {  // there was none, or an empty one
    temporary_.clear();
  } else if (errno != ENOTEMPTY && errno != EEXIST) {
    throw_system_error(errno, place_.string(), "put the new folder at");
  } else if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, place_.c_str(), RENAME_EXCHANGE) !=
             0) {
    throw_system_error(errno, place_.string(), "replace the folder");
  }
  sync_folder(place_.parent_path());
}

}  // namespace cutwater
