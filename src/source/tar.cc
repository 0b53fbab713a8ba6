// SPDX-License-Identifier: Apache-2.0
// open_tar: samples read in place from tar shards.
#include <deque>
#include <mutex>
#include <utility>

#include "core/mutex.h"
#include "core/sha256.h"
#include "cutwater/source.h"
#include "source/file_list.h"
#include "source/read_file.h"
#include "source/stored_bytes.h"
#include "source/tar_index.h"

namespace cutwater {
namespace {

// The shards, a bounded number of them open at a time. Up to that number each stays open for good.
class Shards {
 public:
  static constexpr std::size_t kMaxOpen = 256;

  // Takes the next shard. REQUIRES: not called once get() may be.
  void add(File shard) {
    MutexLock lock(mutex_);
    known_.push_back({shard.path(), shard.size(), shard.mtime_ns()});
    const std::size_t number = open_.size();
    open_.emplace_back();
    if (number < kMaxOpen) keep_open(number, std::make_shared<const File>(std::move(shard)));
  }

  // Any thread. The file stays open as long as the caller holds it. Throws Error(kIo) when the
  // shard is no longer the one that was added; as File::open does.
  std::shared_ptr<const File> get(std::size_t shard) const {
    {
      MutexLock lock(mutex_);
      if (open_[shard]) return open_[shard];
    }
    const Known& known = known_[shard];
    auto file = std::make_shared<const File>(File::open(known.path));
    if (file->size() != known.size || file->mtime_ns() != known.mtime_ns) {
      throw path_error(Code::kIo, known.path,
                       "the shard was changed while in use; open the data again");
    }
    MutexLock lock(mutex_);
    if (!open_[shard]) keep_open(shard, file);
    return file;
  }

  // Not of times: a copy of the shards on another machine is the same data.
  std::string digest() const {
    std::string text;
    for (const Known& known : known_) text += std::to_string(known.size) + '\n';
    return sha256_hex(text);
  }

 private:
  struct Known {
    std::string path;
    std::uint64_t size;
    std::int64_t mtime_ns;
  };

  void keep_open(std::size_t shard, std::shared_ptr<const File> file) const
      CUTWATER_REQUIRES(mutex_) {
    if (in_order_.size() == kMaxOpen) {
      open_[in_order_.front()].reset();
      in_order_.pop_front();
    }
    open_[shard] = std::move(file);
    in_order_.push_back(shard);
  }

  std::vector<Known> known_;
  mutable Mutex mutex_;
  mutable std::vector<std::shared_ptr<const File>> open_ CUTWATER_GUARDED_BY(mutex_);  // or null
  mutable std::deque<std::size_t> in_order_ CUTWATER_GUARDED_BY(mutex_);  // open ones, oldest first
};

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
    return sample(id, [&] {
      const StoredAt at = locate(id);
      return at.file->read_sample(at.offset, at.size, into);
    });
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

 private:
  StoredAt locate(SampleId id) const override {
    const Extent& extent = extents_[static_cast<std::size_t>(id)];
    return {{}, shards_->get(list_.directory(id)), extent.offset, extent.size, true};
  }

  Result<Sample> sample(SampleId id, const std::function<Buffer()>& bytes) const override {
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
