// SPDX-License-Identifier: Apache-2.0
// The listing of a source, small enough for millions of files: each directory is stored once, all
// names in one block; a file costs its name, 12 bytes, and 8 more with a label.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cutwater/source.h"

namespace cutwater {

// Immutable. Made by FileListBuilder.
class FileList {
 public:
  std::int64_t size() const { return static_cast<std::int64_t>(name_ends_.size()); }

  const std::string& root() const { return root_; }
  // root + directory + name; the root is left out before an absolute directory.
  // For all of these REQUIRES: 0 <= index < size().
  std::string path(std::int64_t index) const;
  std::string_view name(std::int64_t index) const;
  std::uint32_t directory(std::int64_t index) const { return directory_of_[at(index)]; }

  bool has_labels() const { return !labels_.empty(); }
  std::int64_t label(std::int64_t index) const { return labels_[at(index)]; }

  // Names the directories, names and labels, in order, but not the root: a listing keeps its digest
  // when the data moves. 64 hexadecimal digits; a fraction of a second for a million files.
  std::string digest() const;

  // Names the sizes and times of the files as they are now, read from the file system by some
  // threads.
  std::string stamp() const;

 private:
  friend class FileListBuilder;
  FileList() = default;
  static std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

  std::string root_;
  std::vector<std::string> directories_;  // each ends in '/', or is empty
  std::vector<std::uint32_t> directory_of_;
  std::string names_;
  std::vector<std::uint64_t> name_ends_;
  std::vector<std::int64_t> labels_;
};

class FileListBuilder {
 public:
  // `root`: what relative directories are relative to; a folder, or empty.
  explicit FileListBuilder(std::string root);

  // Directories get the numbers 0, 1… `directory`: relative to the root, or absolute, or empty.
  std::uint32_t add_directory(std::string directory);
  void add_file(std::uint32_t directory, std::string_view name);
  // A path of any directory; directories met before are found again.
  void add_path(std::string_view path);

  std::int64_t size() const { return list_.size(); }

  // REQUIRES: `labels` is empty or has one for each file.
  FileList finish(std::vector<std::int64_t> labels) &&;

 private:
  FileList list_;
  std::map<std::string, std::uint32_t, std::less<>> known_;  // directories seen by add_path
};

// Names are compared without regard to the case of ASCII letters.
std::string lower_case(std::string text);
// REQUIRES: `lower_suffix` is in lower case.
bool has_suffix(std::string_view name, std::string_view lower_suffix);

// The source that reads the files of a list, one sample each.
std::shared_ptr<const Source> make_file_source(FileList list, std::vector<std::string> classes);

}  // namespace cutwater
