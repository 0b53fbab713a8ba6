// SPDX-License-Identifier: Apache-2.0
// open_tar: samples read in place from tar shards.
#include <mutex>
#include <utility>

#include "core/sha256.h"
#include "cutwater/source.h"
#include "source/file_list.h"
#include "source/read_file.h"
#include "source/shards.h"
#include "source/stored_bytes.h"
#include "source/tar_index.h"

namespace cutwater {
namespace {

struct Extent {
  std::uint64_t offset;
  std::uint64_t size;
};

// In the list a shard is a directory and an image member a file in it.
class TarSource final : public Source, private StoredBytes {
 public:
  TarSource(FileList list, std::vector<Extent> extents, std::unique_ptr<const Shards> shards)
      : list_(std::move(list)), extents_(std::move(extents)), shards_(std::move(shards)) {}

  std::int64_t size() const override { return list_.size(); }

  Result<Sample> read(SampleId id, const ReadContext& into) const override {
    return read_part(id, into);
  }
  const StoredBytes* stored_bytes() const override { return this; }

  std::string home() const override { return list_.root(); }
  std::string path(SampleId id) const override { return list_.path(id); }
  bool has_labels() const override { return list_.has_labels(); }
  std::int64_t label(SampleId id) const override { return list_.label(id); }
  const std::vector<std::string>& classes() const override { return classes_; }

  std::string identity() const override {
    std::call_once(identified_, [this] {
      identity_ = sha256_hex("tar source 1 " + list_.digest() + shards_->digest());
    });
    return identity_;
  }
  std::string stamp() const override { return shards_->stamp(); }

 private:
  StoredAt locate(SampleId id) const override {
    const Extent& extent = extents_[static_cast<std::size_t>(id)];
    return {{}, shards_->get(list_.directory(id)), extent.offset, extent.size, true};
  }

  Result<Sample> sample(SampleId id, const std::function<Buffer()>& bytes,
                        const ReadContext&) const override {
    std::optional<std::int64_t> label;
    if (has_labels()) label = list_.label(id);
    return stored_sample(id, label, bytes, [&] { return list_.path(id); });
  }

  FileList list_;
  std::vector<Extent> extents_;
  std::unique_ptr<const Shards> shards_;
  std::vector<std::string> classes_;  // none: labels are numbers
  mutable std::once_flag identified_;
  mutable std::string identity_;
};

std::size_t name_begin(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? 0 : slash + 1;
}

// The folder that all shards lie in, if there is one: it does not count for the identity.
std::string common_folder(const std::vector<std::string>& shards) {
  std::string folder = shards.front().substr(0, name_begin(shards.front()));
  for (const std::string& shard : shards) {
    if (shard.substr(0, name_begin(shard)) != folder) return "";
  }
  return folder;
}

}  // namespace

std::shared_ptr<const Source> open_tar(const std::vector<std::string>& shards) {
  if (shards.empty()) {
    throw Error(Code::kInvalidArgument, "list of tar shards: it is empty; give at least one path");
  }
  const std::string folder = common_folder(shards);
  FileListBuilder builder(folder);
  std::vector<Extent> extents;
  std::vector<std::int64_t> labels;
  auto opened = std::make_unique<Shards>();
  for (const std::string& path : shards) {
    File file = File::open(path);
    const TarIndex index = kept_tar_index(file);
    if (!index.samples.empty() && !extents.empty() && index.has_labels == labels.empty()) {
      throw path_error(
          Code::kInvalidArgument, path,
          std::string(index.has_labels ? "has .cls members but the shards before have none"
                                       : "has no .cls members but the shards before do") +
              "; all samples need a label, or none");
    }
    const std::uint32_t directory = builder.add_directory(path.substr(folder.size()));
    for (std::size_t i = 0; i < index.samples.size(); ++i) {
      builder.add_file(directory, index.name(i));
      extents.push_back({index.samples[i].offset, index.samples[i].size});
      if (index.has_labels) labels.push_back(index.samples[i].label);
    }
    opened->add(std::move(file));
  }
  if (extents.empty()) {
    throw path_error(
        Code::kNotFound, shards.front(),
        shards.size() == 1 ? "has no sample" : "this and the other shards have no sample");
  }
  return std::make_shared<TarSource>(std::move(builder).finish(std::move(labels)),
                                     std::move(extents), std::move(opened));
}

}  // namespace cutwater
