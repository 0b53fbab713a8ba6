// SPDX-License-Identifier: Apache-2.0
// Sources whose samples are files: the one that folders and tables share, and open_files().
#include <sys/stat.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/sha256.h"
#include "cutwater/source.h"
#include "source/file_list.h"
#include "source/labels.h"
#include "source/read_file.h"
#include "source/stored_bytes.h"

namespace cutwater {
namespace {

class FileSource final : public Source, private StoredBytes {
 public:
  FileSource(FileList list, std::vector<std::string> classes)
      : list_(std::move(list)), classes_(std::move(classes)) {}

  std::int64_t size() const override { return list_.size(); }

  Result<Sample> read(SampleId id, const ReadContext& into) const override {
    return sample(
        id, [&] { return read_file(list_.path(id), into); }, into);
  }
  const StoredBytes* stored_bytes() const override { return this; }

  std::string home() const override { return list_.root(); }
  std::string path(SampleId id) const override { return list_.path(id); }
  bool has_labels() const override { return list_.has_labels(); }
  std::int64_t label(SampleId id) const override { return list_.label(id); }
  const std::vector<std::string>& classes() const override { return classes_; }

  std::string identity() const override {
    std::call_once(identified_, [this] { identity_ = identify(); });
    return identity_;
  }

  // Sizes and times of all files; about a second for a million.
  std::string stamp() const override { return list_.stamp(); }

 private:
  StoredAt locate(SampleId id) const override { return {list_.path(id), {}, 0, 0, true}; }

  Result<Sample> sample(SampleId id, const std::function<Buffer()>& bytes,
                        const ReadContext&) const override {
    std::optional<std::int64_t> label;
    if (has_labels()) label = list_.label(id);
    return stored_sample(id, label, bytes, [&] { return list_.path(id); });
  }

  // The listing does not tell a data set from its resized copy. The sizes of a few files do, and
  // cost next to nothing; unlike times and places they survive a move.
  std::string identify() const {
    constexpr std::int64_t kProbes = 64;
    std::string text = "file source 1 " + list_.digest();
    for (const std::string& name : classes_) text += '\0' + name;
    const std::int64_t probes = std::min(kProbes, list_.size());
    for (std::int64_t i = 0; i < probes; ++i) {
      struct stat status;
      const std::int64_t index = i * list_.size() / probes;
      const bool found = ::stat(list_.path(index).c_str(), &status) == 0;
      text += '\0' + (found ? std::to_string(status.st_size) : "?");
    }
    return sha256_hex(text);
  }

  FileList list_;
  std::vector<std::string> classes_;
  mutable std::once_flag identified_;
  mutable std::string identity_;
};

}  // namespace

std::shared_ptr<const Source> make_file_source(FileList list, std::vector<std::string> classes) {
  return std::make_shared<FileSource>(std::move(list), std::move(classes));
}

std::shared_ptr<const Source> open_files(const std::vector<std::string>& paths,
                                         const std::vector<std::int64_t>& labels,
                                         std::vector<std::string> classes) {
  const auto refuse = [](const std::string& reason) {
    throw Error(Code::kInvalidArgument, "list of files: " + reason);
  };
  if (paths.empty()) refuse("it is empty; give at least one path");
  check_labels("list of files", paths.size(), labels, classes,
               [&](std::size_t i) { return paths[i]; });
  FileListBuilder builder("");
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].empty()) refuse("path " + std::to_string(i) + " is empty");
    if (paths[i].find('\0') != std::string::npos) {
      refuse("path " + std::to_string(i) + " has a zero byte");
    }
    builder.add_path(paths[i]);
  }
  return make_file_source(std::move(builder).finish(labels), std::move(classes));
}

}  // namespace cutwater
