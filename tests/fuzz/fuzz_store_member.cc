// SPDX-License-Identifier: Apache-2.0
// The bytes of a sample in a store, with an index that calls them sound: they become the tensor
// that the index says, or a bad sample; and whatever it is, the ops of any pipeline take or refuse
// it.
#include "folder.h"
#include "ops/presets.h"
#include "store/disk.h"
#include "store/index.h"
#include "store/layout.h"

namespace cutwater::fuzz {
namespace {

TensorSpec spec_of(std::uint8_t kind, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size);
  switch (kind % 8) {
    case 0: return {DType::kU8, {count}};
    case 1: return {DType::kU8, {count, 2, 3, 3}, Layout::kPacked};
    case 2: return {DType::kU8, {count % 37, 5, 3}, Layout::kPixels};
    case 3: return {DType::kF32, {3, 4, count % 41}, Layout::kPlanes};
    case 4: return {DType::kI16, {3, count % 13, 8}, Layout::kPlanesLast};
    case 5: return {DType::kF32, {count % 5, count % 7, count % 11}, Layout::kPlanesLast};
    case 6: return {DType::kU8, {count % 6, count % 3, 4, 3}, Layout::kPixels};
    default: return {DType::kU8, {0, std::int64_t{1} << (count % 64), count}};
  }
}

// From every cut that the sample may be said to stand at.
void run_on(const Source& store) {
  static const std::vector<Pipeline> kPipelines = {
      named_pipeline("imagenet"), named_pipeline("imagenet-train"),
      named_pipeline("decode | five_crop(2) | to_tensor | random_crop(2)"),
      named_pipeline("decode | to_tensor(channels_last=True) | normalize([0.5], [0.5]) | "
                     "random_crop(2)")};
  RunContext how;
  how.pool = BufferPool::create(0);
  for (const Pipeline& pipeline : kPipelines)
    for (Cut cut = 0; cut < pipeline.last_cut(); ++cut) {
      Result<Sample> sample = store.read(0, *how.pool);
      sample.value().cut = cut;
      Result<Draws> draws = pipeline.draw(sample.value(), 1, 2);
      Result<Sample> made = draws ? pipeline.run(std::move(sample).value(), cut,
                                                 pipeline.last_cut(), draws.value(), how)
                                  : Result<Sample>(draws.failure());
      require(made || made.failure().code == Code::kBadSample ||
                  made.failure().code == Code::kInvalidArgument,
              "ops make a sample or refuse it");
    }
}

}  // namespace

FUZZ_TARGET(store_member) {
  static const Folder folder;
  constexpr std::size_t kHead = 4;
  if (input.size() <= kHead) return;
  constexpr const char* kCodecs[] = {"none", "lz4", "zstd:3", "shuffle-zstd:1", "delta-zstd:1"};
  StoreMeta meta;
  StorePlan& plan = meta.plan;
  plan.cut = 1;
  plan.samples = 1;
  plan.fields = {"image"};
  plan.codec = codec_named(kCodecs[input[0] % 5]);
  const Input payload = input.subspan(kHead);
  const std::size_t size =
      plan.codec.is_none() ? payload.size() : input[2] * std::size_t{256} + input[3];
  const StoredTensor tensor{kTarBlock, payload.size(), checksum_of_payload(payload),
                            spec_of(input[1], size)};

  const std::string shard =
      std::string(kTarBlock, '\0') + std::string(payload.begin(), payload.end());
  std::string index = index_header(plan);
  append_row(index, {0, true, 0, {tensor}});
  meta.shards = {{shard.size(), checksum_of(shard)}};
  meta.index = {index.size(), checksum_of(index)};
  folder.write(shard_name(0), shard);
  folder.write(kIndexName, index);
  folder.write(kMetaName, to_text(meta));

  std::shared_ptr<const Source> store;
  try {
    store = open_store(folder.path());
  } catch (const Error& error) {
    require((plan.codec.is_none() || !stated_bytes(tensor.spec)) &&
                error.code() == Code::kInvalidArgument,
            std::string("a sound index is accepted: ") + error.what());
    return;
  }
  const auto pool = BufferPool::create(0);
  Result<Sample> sample = store->read(0, *pool);
  if (sample) {
    require(sample.value().find("image")->spec() == tensor.spec, "a sample is what the index says");
    require(sample.value().cut == 1, "it stands at its cut");
    run_on(*store);
  } else {
    require(sample.failure().code == Code::kBadSample, sample.failure().message());
  }
}

}  // namespace cutwater::fuzz
