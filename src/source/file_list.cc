// SPDX-License-Identifier: Apache-2.0
#include "source/file_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <future>
#include <system_error>
#include <utility>

#include "core/sha256.h"

namespace cutwater {
namespace {

// Digests are compared between machines, and arrays are hashed as they lie in memory.
static_assert(std::endian::native == std::endian::little);

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// In pieces, because sha256_hex makes a copy of what it is given.
std::string digest_of(std::string_view block) {
  constexpr std::size_t kPiece = 1 << 20;
  std::string pieces = std::to_string(block.size());
  for (std::size_t at = 0; at < block.size(); at += kPiece) {
    pieces += ' ' + sha256_hex(block.substr(at, kPiece));
  }
  return sha256_hex(pieces);
}

template <class T>
std::string digest_of(const std::vector<T>& values) {
  return digest_of(
      std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
}

std::string with_slash(std::string folder) {
  if (!folder.empty() && folder.back() != '/') folder += '/';
  return folder;
}

}  // namespace

std::string FileList::path(std::int64_t index) const {
  const std::string& folder = directories_[directory(index)];
  const std::string_view root = folder.starts_with('/') ? std::string_view() : root_;
  const std::string_view file = name(index);
  std::string path;
  path.reserve(root.size() + folder.size() + file.size());
  return path.append(root).append(folder).append(file);
}

std::string_view FileList::name(std::int64_t index) const {
  const std::uint64_t begin = index == 0 ? 0 : name_ends_[at(index - 1)];
  return std::string_view(names_).substr(begin, name_ends_[at(index)] - begin);
}

std::string FileList::digest() const {
  std::string directories;
  for (const std::string& directory : directories_) {
    directories += directory;
    directories += '\0';  // in no path
  }
  return sha256_hex("files 1 " + digest_of(directories) + digest_of(directory_of_) +
                    digest_of(names_) + digest_of(name_ends_) + digest_of(labels_));
}

std::string FileList::stamp() const {
  struct Seen {
    std::int64_t bytes, mtime_ns;
  };
  std::vector<Seen> seen(name_ends_.size());
  const auto look = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      struct stat status;
      const bool found = ::stat(path(i).c_str(), &status) == 0;
      const std::int64_t time =
          found ? std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec
                : errno;
      seen[at(i)] = {found ? std::int64_t{status.st_size} : -1, time};
    }
  };
  // Slow storage answers several at once faster than one after another.
  constexpr std::int64_t kThreads = 8, kWorthAThread = 2000;
  const std::int64_t parts = std::clamp<std::int64_t>(size() / kWorthAThread, 1, kThreads);
  const auto part = [&](std::int64_t number) {
    look(number * size() / parts, (number + 1) * size() / parts);
  };
  std::vector<std::future<void>> others;  // each waits for its own when it goes
  std::int64_t number = 1;
  try {
    for (; number < parts; ++number) others.push_back(std::async(std::launch::async, part, number));
  } catch (const std::system_error&) {  // no more threads
  }
  for (; number < parts; ++number) part(number);
  part(0);
  for (std::future<void>& other : others) other.get();
  return digest_of(seen);
}

FileListBuilder::FileListBuilder(std::string root) { list_.root_ = with_slash(std::move(root)); }

std::uint32_t FileListBuilder::add_directory(std::string directory) {
  list_.directories_.push_back(with_slash(std::move(directory)));
  return static_cast<std::uint32_t>(list_.directories_.size() - 1);
}

void FileListBuilder::add_file(std::uint32_t directory, std::string_view name) {
  list_.directory_of_.push_back(directory);
  list_.names_ += name;
  list_.name_ends_.push_back(list_.names_.size());
}

void FileListBuilder::add_path(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string_view::npos ? 0 : slash + 1;
  const std::string_view directory = path.substr(0, name);
  auto known = known_.find(directory);
  if (known == known_.end()) {
    known = known_.emplace(directory, add_directory(std::string(directory))).first;
  }
  add_file(known->second, path.substr(name));
}

FileList FileListBuilder::finish(std::vector<std::int64_t> labels) && {
  list_.labels_ = std::move(labels);
  return std::move(list_);
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), lower);
  return text;
}

bool has_suffix(std::string_view name, std::string_view lower_suffix) {
  return name.size() >= lower_suffix.size() &&
         std::equal(lower_suffix.rbegin(), lower_suffix.rend(), name.rbegin(),
                    [](char suffix, char c) { return suffix == lower(c); });
}

}  // namespace cutwater
