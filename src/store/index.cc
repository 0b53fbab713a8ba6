// SPDX-License-Identifier: Apache-2.0
#include "store/index.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "core/npy.h"
#include "source/read_file.h"
#include "store/layout.h"

namespace cutwater {
namespace {

// Rows are written and read as they lie in memory.
static_assert(std::endian::native == std::endian::little);

// Columns, in bytes from the row's begin, and of a tensor from the tensor's.
constexpr std::size_t kShardAt = 0, kStoredAt = 4, kLabelAt = 8, kTensorsAt = 16;
constexpr std::size_t kOffsetAt = 0, kSizeAt = 8, kChecksumAt = 16, kShapeAt = 24, kDtypeAt = 72,
                      kLayoutAt = 73, kRankAt = 74, kTensorBytes = 76;

template <class T>
void put(std::string& rows, T value) {
  rows.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T get(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

[[noreturn]] void refuse(const std::string& why) { throw Error(Code::kInvalidArgument, why); }

}  // namespace

std::uint64_t checksum_of_payload(std::span<const std::uint8_t> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::size_t row_bytes(std::size_t tensors) { return kTensorsAt + tensors * kTensorBytes; }

void append_row(std::string& rows, const StoredRow& row) {
  put(rows, row.shard);
  put(rows, static_cast<std::uint32_t>(row.stored ? 1 : 0));
  put(rows, row.label);
  for (const StoredTensor& tensor : row.tensors) {
    put(rows, tensor.offset);
    put(rows, tensor.size);
    put(rows, tensor.checksum);
    for (std::size_t axis = 0; axis < Shape::kMaxRank; ++axis)
      put(rows, axis < tensor.spec.shape.rank() ? tensor.spec.shape[axis] : std::int64_t{0});
    put(rows, static_cast<std::uint8_t>(tensor.spec.dtype));
    put(rows, static_cast<std::uint8_t>(tensor.spec.layout));
    put(rows, static_cast<std::uint16_t>(tensor.spec.shape.rank()));
  }
}

std::string index_header(const StorePlan& plan) {
  std::string descr = "[('shard', '<u4'), ('stored', '<u4'), ('label', '<i8'), ('fields', [";
  for (const std::string& name : plan.tensors())
    descr += (descr.ends_with('[') ? "('" : ", ('") + name +
             "', [('offset', '<u8'), ('size', '<u8'), ('checksum', '<u8'), ('shape', '<i8', (6,)), "
             "('dtype', '|u1'), ('layout', '|u1'), ('rank', '<u2')])";
  const std::int64_t shape[] = {plan.samples};
  return npy_header(descr + "])]", shape);
}

StoreIndex::StoreIndex(std::string file, const StoreMeta& meta, const std::string& path)
    : file_(std::move(file)),
      tensors_(meta.plan.tensors().size()),
      row_bytes_(cutwater::row_bytes(tensors_)) {
  const std::string header = index_header(meta.plan);
  header_bytes_ = header.size();
  try {
    if (!file_.starts_with(header)) refuse("it does not begin as the index of this store");
    const std::size_t rows = file_.size() - header_bytes_;
    if (rows % row_bytes_ != 0 ||
        rows / row_bytes_ != static_cast<std::uint64_t>(meta.plan.samples))
      refuse("it has " + std::to_string(rows) + " bytes of rows, not those of " +
             std::to_string(meta.plan.samples) + " samples");
    check(meta);
  } catch (const Error& error) {
    throw path_error(Code::kInvalidArgument, path,
                     error.failure().reason + "; make the store again");
  }
}

bool StoreIndex::stored(SampleId id) const { return get<std::uint32_t>(row(id) + kStoredAt) != 0; }
std::uint32_t StoreIndex::shard(SampleId id) const {
  return get<std::uint32_t>(row(id) + kShardAt);
}
std::int64_t StoreIndex::label(SampleId id) const { return get<std::int64_t>(row(id) + kLabelAt); }

StoredTensor StoreIndex::tensor(SampleId id, std::size_t tensor) const {
  const char* const at = row(id) + kTensorsAt + tensor * kTensorBytes;
  StoredTensor found{get<std::uint64_t>(at + kOffsetAt),
                     get<std::uint64_t>(at + kSizeAt),
                     get<std::uint64_t>(at + kChecksumAt),
                     {}};
  found.spec.dtype = static_cast<DType>(get<std::uint8_t>(at + kDtypeAt));
  found.spec.layout = static_cast<Layout>(get<std::uint8_t>(at + kLayoutAt));
  const std::size_t rank = std::min<std::size_t>(get<std::uint16_t>(at + kRankAt), Shape::kMaxRank);
  for (std::size_t axis = 0; axis < rank; ++axis)
    found.spec.shape.push_back(get<std::int64_t>(at + kShapeAt + 8 * axis));
  return found;
}

void StoreIndex::check(const StoreMeta& meta) const {
  const StorePlan& plan = meta.plan;
  const auto classes = static_cast<std::int64_t>(plan.classes.size());
  auto bad = meta.bad.begin();
  std::uint64_t end = 0;  // of what the shard's samples so far take
  for (SampleId id = 0; id < plan.samples; ++id) {
    const auto refuse_sample = [id](const std::string& why) {
      refuse("sample " + std::to_string(id) + " " + why);
    };
    const std::int64_t shard = id / plan.samples_per_shard;
    if (id == plan.first_of(shard)) end = 0;
    if (get<std::uint32_t>(row(id) + kStoredAt) > 1 || this->shard(id) != shard)
      refuse_sample("is said to be in shard " + std::to_string(this->shard(id)) + ", not in " +
                    std::to_string(shard));
    if (plan.has_labels ? classes > 0 && (label(id) < 0 || label(id) >= classes) : label(id) != 0)
      refuse_sample("has the label " + std::to_string(label(id)) + ", which there is not");
    const bool listed = bad != meta.bad.end() && bad->sample == id;
    if (listed) ++bad;
    if (listed == stored(id)) refuse_sample("is both bad and stored, or neither");
    std::uint64_t begin = 0, decoded = 0;
    for (std::size_t k = 0; k < tensors_; ++k) {
      const char* const at = row(id) + kTensorsAt + k * kTensorBytes;
      if (!stored(id)) {
        if (!std::all_of(at, at + kTensorBytes, [](char c) { return c == 0; }))
          refuse_sample("is bad, yet has a place");
        continue;
      }
      if (get<std::uint8_t>(at + kDtypeAt) > static_cast<std::uint8_t>(DType::kF64) ||
          get<std::uint8_t>(at + kLayoutAt) > static_cast<std::uint8_t>(Layout::kPacked) ||
          get<std::uint16_t>(at + kRankAt) > Shape::kMaxRank)
        refuse_sample("has a dtype, layout or rank that there is not");
      const StoredTensor tensor = this->tensor(id, k);
      for (std::size_t axis = tensor.spec.shape.rank(); axis < Shape::kMaxRank; ++axis)
        if (get<std::int64_t>(at + kShapeAt + 8 * axis) != 0)
          refuse_sample("has more dimensions than its rank");
      const std::optional<std::uint64_t> bytes = stated_bytes(tensor.spec);
      if (!bytes || *bytes > kMostSampleBytes || tensor.size > kMostSampleBytes)
        refuse_sample("is said to be " + to_string(tensor.spec) + " in " +
                      std::to_string(tensor.size) + " bytes, which cannot be");
      if (plan.codec.is_none() ? tensor.size != *bytes : tensor.size == 0)
        refuse_sample("has " + std::to_string(tensor.size) + " bytes, which is not " +
                      to_string(tensor.spec));
      const std::uint64_t shard_bytes = meta.shards[static_cast<std::size_t>(shard)].bytes;
      if (tensor.offset < end + kTarBlock || tensor.offset > shard_bytes ||
          tensor.size > shard_bytes - tensor.offset)
        refuse_sample("is said to be at " + std::to_string(tensor.offset) + ", " +
                      std::to_string(tensor.size) +
                      " bytes, which is beyond the shard or in another sample");
      end = tensor.offset + tensor.size;
      if (k == 0) begin = tensor.offset;
      decoded += *bytes;
      if (end - begin > kMostSampleBytes || decoded > kMostSampleBytes)
        refuse_sample("has more than " + std::to_string(kMostSampleBytes) + " bytes");
    }
  }
}

}  // namespace cutwater
