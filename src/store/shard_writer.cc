// SPDX-License-Identifier: Apache-2.0
#include "store/shard_writer.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/npy.h"
#include "store/disk.h"
#include "store/layout.h"

namespace cutwater {
namespace {

std::span<const std::uint8_t> bytes_of(const Tensor& tensor) {
  return {tensor.view().bytes(), tensor.spec().bytes()};
}

}  // namespace

SampleMaker::SampleMaker(const Source& source, const Pipeline& pipeline, Cut cut,
                         std::size_t memory_bytes)
    : source_(source), pipeline_(pipeline), cut_(cut), pool_(BufferPool::create(memory_bytes)) {
  nothing_drawn_.steps.resize(pipeline.steps().size());  // nothing is, up to the frontier
}

Result<Sample> SampleMaker::make(SampleId id) const {
  Result<Sample> made = source_.read(id, *pool_);
  if (made) {
    RunContext how;
    how.pool = pool_;
    made = pipeline_.run(std::move(made).value(), source_.cut(), cut_, nothing_drawn_, how);
  }
  if (made) return made;
  Failure& failure = made.failure();
  failure.path = source_.path(id);
  if (failure.storage_failed && failure.code == Code::kBadSample) {
    failure.code = Code::kIo;
    failure.reason += "; it may be sound, so the store does not leave it out";
  }
  return made;
}

std::uint64_t Member::bytes_in_tar() const { return kTarBlock + bytes() + tar_padding(bytes()); }

const std::vector<Member>& SampleMembers::of(const Sample& sample, const std::string& path) {
  members_.clear();
  encoded_.resize(sample.fields.size());
  const auto refuse = [&](const std::string& why) {
    throw Error(Failure{Code::kInvalidArgument, why, sample.id, path, "materialize"});
  };
  bool same = sample.fields.size() == plan_.fields.size();
  for (std::size_t i = 0; same && i < sample.fields.size(); ++i)
    same = sample.fields[i].name == plan_.fields[i];
  if (!same) refuse("has other fields than the samples before it; a store needs the same in all");

  const std::string key = sample_key(sample.id);
  std::optional<Member> label;
  bool first = true;
  std::uint64_t stored = 0, decoded = 0;
  for (const Field& field : sample.fields) {
    if (plan_.label_field && field.name == kLabelField) {
      std::int64_t value = 0;
      std::memcpy(&value, field.tensor.view().bytes(), sizeof value);
      const std::string text = std::to_string(value);
      label.emplace();
      label->name = key + ".cls";
      label->head.assign(text.begin(), text.end());
      label->is_label = true;
      continue;
    }
    if (!stated_bytes(field.tensor.spec()))
      refuse("has a field '" + field.name +
             "' that cannot be stored: " + to_string(field.tensor.spec()));
    members_.push_back(tensor(field, first, key, path));
    first = false;
    stored += members_.back().bytes_in_tar();
    decoded += members_.back().spec.bytes();
  }
  if (stored > kMostSampleBytes || decoded > kMostSampleBytes)
    refuse("has " + std::to_string(std::max(stored, decoded)) +
           " bytes at this cut, all fields together; up to " + std::to_string(kMostSampleBytes) +
           " can be stored");
  if (label) members_.push_back(std::move(*label));
  return members_;
}

Member SampleMembers::tensor(const Field& field, bool first, const std::string& key,
                             const std::string& path) {
  Member member;
  member.spec = field.tensor.spec();
  member.data = bytes_of(field.tensor);
  const bool as_stored = plan_.cut == 0 && first;
  const std::string extension = as_stored ? stored_extension(path, member.data) : "npy";
  member.name =
      key + "." + member_suffix(first ? std::string_view() : field.name, extension, plan_.codec);
  if (!as_stored) {
    const Shape shape = npy_shape(member.spec);
    const DType dtype = member.spec.layout == Layout::kPacked ? DType::kU8 : member.spec.dtype;
    const std::string header = npy_header(npy_type(dtype), {shape.begin(), shape.end()});
    member.head.assign(header.begin(), header.end());
  }
  if (plan_.codec.is_none()) return member;
  if (!as_stored) {
    // A frame of its own, so that the tensor's data is one, too.
    const Codec unfiltered{Filter::kNone, plan_.codec.compressor, plan_.codec.level};
    const std::vector<std::uint8_t> plain = std::exchange(member.head, {});
    encode(unfiltered, {DType::kU8, {static_cast<std::int64_t>(plain.size())}}, plain, member.head);
  }
  std::vector<std::uint8_t>& data = encoded_[members_.size()];
  encode(plan_.codec, member.spec, member.data, data);
  member.data = data;
  return member;
}

void write_shard(const std::string& folder, const StorePlan& plan, const SampleMaker& maker,
                 std::int64_t shard, ShardProgress& progress) {
  ShardPart part;
  part.shard = shard;
  NewFile file(inside(folder, shard_name(shard)));
  SampleMembers members(plan);
  for (SampleId id = plan.first_of(shard); id < plan.end_of(shard); ++id) {
    if (progress.stop) throw Error(Code::kCancelled, "stopped");
    const std::uint64_t begin = file.size();
    StoredRow row;
    row.shard = static_cast<std::uint32_t>(shard);
    if (plan.has_labels) row.label = maker.source().label(id);
    Result<Sample> made = maker.make(id);
    if (made) {
      row.stored = true;
      for (const Member& member : members.of(made.value(), maker.source().path(id))) {
        file.write(tar_header(member.name, member.bytes()));
        file.write(member.head);
        if (!member.is_label) {
          row.tensors.push_back(
              {file.size(), member.data.size(), checksum_of_payload(member.data), member.spec});
          part.raw_bytes += member.spec.bytes();
        }
        file.write(member.data);
        file.write_zeros(tar_padding(member.bytes()));
      }
    } else if (made.failure().code == Code::kBadSample) {
      row.tensors.resize(plan.tensors().size());
      part.bad.push_back(std::move(made.failure()));
    } else {
      throw Error(std::move(made.failure()));
    }
    append_row(part.rows, row);
    ++progress.samples;
    progress.bytes += file.size() - begin;
  }
  file.write_zeros(2 * kTarBlock);
  progress.bytes += 2 * kTarBlock;
  part.meta.bytes = file.size();
  part.meta.checksum = file.finish();
  write_whole(inside(folder, part_name(shard)), to_text(part));
  sync_folder(folder);
}

}  // namespace cutwater
