// SPDX-License-Identifier: Apache-2.0
// A folder for a target whose input is a file, gone with all its content at the end.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "fuzz.h"

namespace cutwater::fuzz {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "cutwater-fuzz.XXXXXX").string();
    require(::mkdtemp(name.data()) != nullptr, "a folder can be made");
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string path() const { return path_.string(); }
  std::string path(std::string_view name) const { return (path_ / name).string(); }
  void write(std::string_view name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace cutwater::fuzz
