// SPDX-License-Identifier: Apache-2.0
// open_store: a source that stands at the cut at which its samples were written.
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "source/read_file.h"
#include "source/shards.h"
#include "source/stored_bytes.h"
#include "store/disk.h"
#include "store/index.h"
#include "store/layout.h"
#include "store/meta.h"
#include "store/store_files.h"

namespace cutwater {
namespace {

class StoreSource final : public Source, private StoredBytes {
 public:
  StoreSource(std::string folder, StoreMeta meta, StoreIndex index,
              std::unique_ptr<const Shards> shards)
      : folder_(std::move(folder)),
        plan_(std::move(meta.plan)),
        bad_(std::move(meta.bad)),
        index_(std::move(index)),
        shards_(std::move(shards)) {}

  std::int64_t size() const override { return plan_.samples; }
  Cut cut() const override { return plan_.cut; }
  std::string fingerprint() const override { return plan_.cut > 0 ? plan_.fingerprint : ""; }
  std::string pipeline() const override { return plan_.pipeline; }

  Result<Sample> read(SampleId id, const ReadContext& into) const override {
    return read_part(id, into);
  }
  const StoredBytes* stored_bytes() const override { return this; }

  std::string home() const override { return inside(folder_, ""); }
  std::string path(SampleId id) const override {
    if (const Failure* failure = bad(id)) return failure->path;
    std::string name = shard_name(index_.shard(id)) + "/" + sample_key(id);
    if (plan_.cut > 0) name += "." + member_suffix("", "npy", plan_.codec);
    return inside(folder_, name);
  }
  bool has_labels() const override { return plan_.has_labels; }
  std::int64_t label(SampleId id) const override { return index_.label(id); }
  const std::vector<std::string>& classes() const override { return plan_.classes; }
  std::string identity() const override { return plan_.identity; }
  std::string stamp() const override { return plan_.stamp; }

 private:
  const Failure* bad(SampleId id) const {
    if (index_.stored(id)) return nullptr;
    return &*std::lower_bound(bad_.begin(), bad_.end(), id,
                              [](const Failure& f, SampleId wanted) { return f.sample < wanted; });
  }

  // From the first tensor's first byte to the last one's last.
  StoredAt locate(SampleId id) const override {
    if (const Failure* failure = bad(id)) throw Error(*failure);
    const std::uint64_t begin = index_.tensor(id, 0).offset;
    const StoredTensor last = index_.tensor(id, index_.tensors() - 1);
    const std::uint64_t size = last.offset + last.size - begin;
    // Nobody reads nothing: a tensor without elements is read with the byte before it.
    const std::uint64_t before = size == 0 ? 1 : 0;
    return {{}, shards_->get(index_.shard(id)), begin - before, size + before, true};
  }

  Result<Sample> sample(SampleId id, const std::function<Buffer()>& bytes,
                        const ReadContext& into) const override {
    // Exactly the failure that the data set itself would have had.
    if (const Failure* failure = bad(id)) return *failure;
    const auto make = [&] { return unpacked(id, bytes(), into); };
    Result<Sample> made = sample_or_failure(id, make, [&] { return path(id); });
    if (!made) made.failure().storage_failed = true;  // it was sound when it was written
    return made;
  }

  Sample unpacked(SampleId id, Buffer read, const ReadContext& into) const {
    Sample sample;
    sample.id = id;
    sample.cut = plan_.cut;
    sample.fields.reserve(plan_.fields.size());
    const std::uint64_t begin = index_.tensor(id, 0).offset;
    std::vector<Tensor> tensors;
    for (std::size_t k = 0; k < index_.tensors(); ++k) {
      const StoredTensor stored = index_.tensor(id, k);
      const auto at = static_cast<std::size_t>(stored.offset - begin);
      const auto size = static_cast<std::size_t>(stored.size);
      const std::span<const std::uint8_t> encoded =
          size == 0 ? std::span<const std::uint8_t>() : read.view().subspan(at, size);
      if (checksum_of_payload(encoded) != stored.checksum)
        throw Error(Code::kBadSample,
                    "its bytes in the store are damaged: their checksum is not that of the index; "
                    "'cutwater verify' finds all that is, then make the store again");
      if (plan_.codec.is_none() && index_.tensors() == 1) {
        tensors.emplace_back(stored.spec, size == 0 ? Buffer() : std::move(read));
        break;
      }
      check_frame(plan_.codec, encoded, stored.spec.bytes());
      Buffer buffer = into.allocate(stored.spec.bytes());
      decode(plan_.codec, stored.spec, encoded, buffer.span());
      tensors.emplace_back(stored.spec, std::move(buffer));
    }
    std::size_t k = 0;
    for (const std::string& name : plan_.fields) {
      const bool is_label = plan_.label_field && name == kLabelField;
      sample.fields.push_back(
          {name, is_label ? Tensor::scalar(index_.label(id)) : std::move(tensors[k++])});
    }
    return sample;
  }

  const std::string folder_;
  const StorePlan plan_;
  const std::vector<Failure> bad_;
  const StoreIndex index_;
  const std::unique_ptr<const Shards> shards_;
};

}  // namespace

bool is_store(const std::string& path) {
  struct stat status;
  return ::lstat(inside(path, kMetaName).c_str(), &status) == 0 &&
         ::lstat(inside(path, kIndexName).c_str(), &status) == 0;
}

StoreInfo store_info(const std::string& path) { return info_of(read_meta(path)); }

void check_size(const File& file, const ShardMeta& meta) {
  if (file.size() != meta.bytes)
    throw path_error(Code::kInvalidArgument, file.path(),
                     "has " + std::to_string(file.size()) + " bytes, and " +
                         std::to_string(meta.bytes) +
                         " when the store was written; make the store again");
}

StoreIndex read_index(const std::string& folder, const StoreMeta& meta) {
  const std::string path = inside(folder, kIndexName);
  const File file = open_plain(path);
  check_size(file, meta.index);
  std::string bytes = file.text(file.size());
  if (checksum_of(bytes) != meta.index.checksum)
    throw path_error(Code::kInvalidArgument, path,
                     "is damaged: its checksum is not that of the store; make the store again");
  return {std::move(bytes), meta, path};
}

std::shared_ptr<const Source> open_store(const std::string& path) {
  StoreMeta meta = read_meta(path);
  StoreIndex index = read_index(path, meta);
  auto shards = std::make_unique<Shards>();
  for (std::size_t i = 0; i < meta.shards.size(); ++i) {
    File shard = open_plain(inside(path, shard_name(static_cast<std::int64_t>(i))));
    check_size(shard, meta.shards[i]);
    shards->add(std::move(shard));
  }
  return std::make_shared<StoreSource>(path, std::move(meta), std::move(index), std::move(shards));
}

void check_store_is_of(const StoreInfo& store, const Source& source, const Pipeline& pipeline) {
  std::string differs;
  const auto add = [&](const std::string& what) {
    differs += (differs.empty() ? "" : ", ") + what;
  };
  if (store.cut > pipeline.last_cut() || store.fingerprint != pipeline.fingerprint(store.cut))
    add("the pipeline (the store was made by '" + store.pipeline + "' up to cut '" +
        store.cut_name + "', this one is '" + pipeline.to_string() + "')");
  if (store.source_identity != source.identity())
    add("the data set (other files, names, labels or sizes)");
  else if (store.source_stamp != source.stamp())
    add("the files of the data set (a size or a time has changed)");
  if (!differs.empty())
    throw Error(Code::kStale, "the store is of something else; there differs " + differs +
                                  ". Materialize to another folder, or remove this one first");
}

}  // namespace cutwater
