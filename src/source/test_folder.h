// SPDX-License-Identifier: Apache-2.0
// For tests: a folder of their own, and what they often ask.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cutwater/error.h"
#include "cutwater/source.h"

namespace cutwater {

// Gone with all its content when the test ends.
class TestFolder {
 public:
  TestFolder() : path_(testing::TempDir() + "cutwater-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make " + path_);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }

  std::string folder(const std::string& name) const {
    std::filesystem::create_directories(path(name));
    return path(name);
  }
  std::string file(const std::string& name, std::string_view content = "image") const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  void link(const std::string& name, const std::string& target) const {
    std::filesystem::create_symlink(target, path(name));
  }

 private:
  std::string path_;
};

inline std::vector<std::string> paths_of(const Source& source) {
  std::vector<std::string> paths;
  for (SampleId id = 0; id < source.size(); ++id) paths.push_back(source.path(id));
  return paths;
}

inline std::vector<std::int64_t> labels_of(const Source& source) {
  std::vector<std::int64_t> labels;
  for (SampleId id = 0; id < source.size(); ++id) labels.push_back(source.label(id));
  return labels;
}

// The bytes of a sample's image.
inline std::string image_of(const Source& source, SampleId id) {
  const auto pool = BufferPool::create(1 << 20);
  Result<Sample> sample = source.read(id, *pool);
  const Tensor* image = sample.value().find(kImageField);
  return {reinterpret_cast<const char*>(image->view().bytes()), image->spec().bytes()};
}

// What `open` throws.
template <class Open>
Failure failure_of(const Open& open) {
  try {
    open();
  } catch (const Error& error) {
    Failure failure = error.failure();
    failure.reason = error.what();
    return failure;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

// Matches the code and a part of the message.
MATCHER_P2(FailsWith, code, part, "") {
  *result_listener << name_of(arg.code) << ": " << arg.reason;
  return arg.code == code && arg.reason.find(part) != std::string::npos;
}

}  // namespace cutwater
