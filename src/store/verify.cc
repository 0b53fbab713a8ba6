// SPDX-License-Identifier: Apache-2.0
// verify_store: every byte of every file against its checksum; then, in a shard that is damaged,
// which samples are.
#include <algorithm>
#include <optional>
#include <utility>

#include "store/disk.h"
#include "store/layout.h"
#include "store/store_files.h"

namespace cutwater {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20;

class Verification {
 public:
  Verification(std::string folder, const std::function<void(const MaterializeProgress&)>& progress)
      : folder_(std::move(folder)), on_progress_(progress) {}

  std::vector<StoreDamage> run() {
    std::optional<StoreMeta> meta;
    std::optional<StoreIndex> index;
    trying(kMetaName, [&] { meta = read_meta(folder_); });
    if (!meta) return std::move(damage_);
    progress_.samples = meta->plan.samples;
    trying(kIndexName, [&] { index = read_index(folder_, *meta); });
    for (std::size_t i = 0; i < meta->shards.size(); ++i) {
      const auto shard = static_cast<std::int64_t>(i);
      trying(shard_name(shard), [&] { check_shard(*meta, index, shard); });
      progress_.done = meta->plan.end_of(shard);
      if (on_progress_) on_progress_(progress_);
    }
    return std::move(damage_);
  }

 private:
  // What is wrong with a file is put on the list.
  template <class Check>
  void trying(std::string_view file, Check&& check) {
    try {
      check();
    } catch (const Error& error) {
      const bool of_folder = error.code() == Code::kNotFound && file == kMetaName;
      if (of_folder || error.code() == Code::kCancelled) throw;
      damage_.push_back({std::string(file), -1, error.failure().reason});
    }
  }

  void check_shard(const StoreMeta& meta, const std::optional<StoreIndex>& index,
                   std::int64_t shard) {
    const ShardMeta& expected = meta.shards[static_cast<std::size_t>(shard)];
    const File file = open_plain(inside(folder_, shard_name(shard)));
    if (file.size() == expected.bytes && checksum_of_file(file) == expected.checksum) return;
    const std::size_t before = damage_.size();
    if (index) find_samples(meta.plan, *index, shard, file);
    check_size(file, expected);
    if (damage_.size() == before)
      damage_.push_back({shard_name(shard), -1,
                         "it is damaged, but no sample is: a header or padding has changed"});
  }

  std::string checksum_of_file(const File& file) {
    Checksum checksum;
    std::vector<std::uint8_t> piece(static_cast<std::size_t>(
        std::min<std::uint64_t>(kPiece, std::max<std::uint64_t>(file.size(), 1))));
    for (std::uint64_t at = 0; at < file.size(); at += piece.size()) {
      const std::span<std::uint8_t> part = std::span(piece).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), file.size() - at)));
      file.read(at, part);
      checksum.add(part);
      progress_.bytes += part.size();
      if (on_progress_) on_progress_(progress_);
    }
    return checksum.text();
  }

  void find_samples(const StorePlan& plan, const StoreIndex& index, std::int64_t shard,
                    const File& file) {
    std::vector<std::uint8_t> bytes;
    for (SampleId id = plan.first_of(shard); id < plan.end_of(shard); ++id)
      for (std::size_t k = 0; index.stored(id) && k < index.tensors(); ++k) {
        const StoredTensor tensor = index.tensor(id, k);
        const bool there =
            tensor.offset <= file.size() && tensor.size <= file.size() - tensor.offset;
        if (there) {
          bytes.resize(static_cast<std::size_t>(tensor.size));
          file.read(tensor.offset, bytes);
          if (checksum_of_payload(bytes) == tensor.checksum) continue;
        }
        damage_.push_back(
            {shard_name(shard), id, there ? "its bytes are damaged" : "its bytes are not there"});
        break;
      }
  }

  const std::string folder_;
  const std::function<void(const MaterializeProgress&)>& on_progress_;
  MaterializeProgress progress_;
  std::vector<StoreDamage> damage_;
};

}  // namespace

std::vector<StoreDamage> verify_store(
    const std::string& path, const std::function<void(const MaterializeProgress&)>& on_progress) {
  return Verification(path, on_progress).run();
}

}  // namespace cutwater
