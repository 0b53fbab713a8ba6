// SPDX-License-Identifier: Apache-2.0
// What a store says about itself: meta.json and its kin, as they come and sealed, and the rows of
// an index. What is accepted can be read without another look.
#include "core/npy.h"
#include "fuzz.h"
#include "store/disk.h"
#include "store/index.h"

namespace cutwater::fuzz {
namespace {

template <class Read>
void read_or_refuse(Read read) {
  try {
    read();
  } catch (const Error& error) {
    require(error.code() == Code::kInvalidArgument, std::string("refused: ") + error.what());
  }
}

void check_text(const std::string& text) {
  read_or_refuse([&] { parse_plan(text, "building.json"); });
  read_or_refuse([&] { parse_part(text, "part"); });
  read_or_refuse([&] {
    const StoreMeta meta = parse_meta(text, "meta.json");
    require(static_cast<std::int64_t>(meta.shards.size()) == meta.plan.shards(),
            "every shard is listed");
    require(meta.plan.end_of(meta.plan.shards() - 1) == meta.plan.samples, "shards hold samples");
    require(to_text(parse_meta(to_text(meta), "again")) == to_text(meta), "text is read back");
  });
}

void check_rows(Input rows, bool packed) {
  StoreMeta meta;
  StorePlan& plan = meta.plan;
  plan.fields = {"image"};
  if (packed) plan.codec = codec_named("lz4");
  plan.samples = static_cast<std::int64_t>(rows.size() / row_bytes(1));
  if (plan.samples == 0) return;
  plan.samples_per_shard = std::min<std::int64_t>(plan.samples, 3);
  meta.shards.resize(static_cast<std::size_t>(plan.shards()), {8192, std::string(32, '0')});
  const std::string file = index_header(plan) + std::string(rows.begin(), rows.end());
  read_or_refuse([&] {
    const StoreIndex index(file, meta, "index.npy");
    for (SampleId id = 0; id < plan.samples; ++id) {
      require(index.stored(id), "nothing is bad where nothing is listed as bad");
      const StoredTensor tensor = index.tensor(id, 0);
      require(tensor.offset + tensor.size <= 8192 && tensor.offset >= 512,
              "samples lie within their shard");
      require(packed || tensor.spec.bytes() == tensor.size, "sizes are those of the shapes");
      require(tensor.spec.bytes() <= std::size_t{2} << 30, "no sample is absurdly large");
    }
  });
}

}  // namespace

FUZZ_TARGET(store_index) {
  if (input.empty()) return;
  const Input rest = input.subspan(1);
  if (input[0] % 4 >= 2) return check_rows(rest, input[0] % 4 == 3);
  const std::string text(rest.begin(), rest.end());
  check_text(text);
  check_text(text + ",\n  \"checksum\": \"" + checksum_of(text) + "\"\n}\n");
}

}  // namespace cutwater::fuzz
