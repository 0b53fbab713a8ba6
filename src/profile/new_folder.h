// SPDX-License-Identifier: Apache-2.0
// NewFolder: files that come all together, or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace cutwater {

class NewFolder {
 public:
  // Makes a folder beside `path`, and those above it where they are missing. Throws Error.
  explicit NewFolder(const std::string& path);
  ~NewFolder();  // what is not in its place goes
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  // Returns when the file is on the disk. Throws Error(kIo).
  void write(const std::string& name, std::string_view bytes) const;
  // Now it is at `path`, and the folder that was there is gone: whoever looks, at any time, finds
  // the whole old one or the whole new one. Throws Error(kIo); then the old one stays.
  void put_in_place();

 private:
  std::filesystem::path place_;
  std::string temporary_;
};

}  // namespace cutwater
