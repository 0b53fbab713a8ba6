// SPDX-License-Identifier: Apache-2.0
#include "variant/form.h"

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "core/xxh3.h"
#include "cutwater/error.h"

namespace cutwater {
namespace {

static_assert(std::endian::native == std::endian::little, "forms are written little-endian");

constexpr std::uint32_t kMagic = 0x31465743;  // "CWF1"
constexpr std::size_t kHashedFrom = 16;       // what stands before is checked by value
// Smaller tensors, such as labels, are not worth a frame.
constexpr std::size_t kLeastEncoded = 256;
// What is smaller is copied, rather than that its sample is kept for it.
constexpr std::size_t kLeastLent = 4096;

struct Head {
  std::uint32_t magic;
  std::uint32_t checksum_kind;
  std::uint64_t checksum;
  std::uint64_t size;
  std::int64_t sample;
  std::int32_t cut;
  std::uint32_t fields;
};
static_assert(sizeof(Head) == 40);

struct Record {
  std::uint8_t dtype, layout, rank, name_size, filter, compressor, level, zero;
  std::uint64_t offset, size;
  std::array<std::int64_t, Shape::kMaxRank> dims;
};
static_assert(sizeof(Record) == 72);

[[noreturn]] void damaged(const std::string& why) {
  throw Error(Code::kBadSample, "a kept form is damaged: " + why);
}

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

std::uint64_t hash_of(std::span<const std::uint8_t> head, std::span<const std::uint8_t> tail = {}) {
  return xxh3(head.subspan(kHashedFrom), tail);
}

// Reads plain values off the front.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  template <class T>
  T take() {
    T value;
    const std::span<const std::uint8_t> from = take(sizeof value);
    std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  std::span<const std::uint8_t> take(std::size_t count) {
    if (count > bytes_.size() - at_) damaged("it ends too early");
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }

 private:
  const std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

TensorSpec spec_of(const Record& record) {
  TensorSpec spec;
  if (record.dtype > static_cast<std::uint8_t>(DType::kF64) ||
      record.layout > static_cast<std::uint8_t>(Layout::kPacked) || record.rank > Shape::kMaxRank)
    damaged("there is no such tensor");
  spec.dtype = static_cast<DType>(record.dtype);
  spec.layout = static_cast<Layout>(record.layout);
  for (std::size_t axis = 0; axis < record.rank; ++axis) spec.shape.push_back(record.dims[axis]);
  if (!stated_bytes(spec)) damaged("there cannot be a tensor of " + to_string(spec));
  return spec;
}

Codec codec_of(const Record& record) {
  if (record.filter > static_cast<std::uint8_t>(Filter::kDelta) ||
      record.compressor > static_cast<std::uint8_t>(Compressor::kZstd))
    damaged("there is no such codec");
  return {static_cast<Filter>(record.filter), static_cast<Compressor>(record.compressor),
          record.level};
}

}  // namespace

FormWriter::FormWriter(const Sample& sample, const Codec& codec, Checksum checksum)
    : sample_(sample), codec_(codec), checksum_(checksum), parts_(sample.fields.size()) {
  std::size_t at = sizeof(Head);
  for (const Field& field : sample.fields) {
    if (field.name.size() > UINT8_MAX)
      throw Error(Code::kInvalidArgument, "the field '" + field.name + "' has too long a name");
    at += sizeof(Record) + field.name.size();
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Tensor& tensor = sample.fields[i].tensor;
    Part& part = parts_[i];
    part.size = tensor.spec().bytes();
    if (!codec.is_none() && part.size >= kLeastEncoded) {
      encode(codec, tensor.spec(), {tensor.view().bytes(), part.size}, part.encoded.emplace());
      if (part.encoded->size() < part.size)
        part.size = part.encoded->size();
      else
        part.encoded.reset();
    }
    if (!part.encoded && part.size >= kLeastLent && (!last_ || part.size > parts_[*last_].size))
      last_ = i;
  }
  const auto place = [&at](Part& part) {
    part.offset = aligned(at);
    at = part.offset + part.size;
  };
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (i != last_) place(parts_[i]);
  if (last_) place(parts_[*last_]);
  size_ = at;
}

std::span<const std::uint8_t> FormWriter::tail() const {
  if (!last_) return {};
  return {sample_.fields[*last_].tensor.view().bytes(), parts_[*last_].size};
}

std::size_t FormWriter::head_size() const { return size_ - tail().size(); }

void FormWriter::write(std::span<std::uint8_t> place) const {
  write_head(place.first(head_size()));
  const std::span<const std::uint8_t> rest = tail();
  if (!rest.empty()) std::memcpy(place.data() + head_size(), rest.data(), rest.size());
}

void FormWriter::write_head(std::span<std::uint8_t> place) const {
  std::uint8_t* at = place.data();
  const auto put = [&at](const void* bytes, std::size_t count) {
    if (count > 0) std::memcpy(at, bytes, count);
    at += count;
  };
  Head head{kMagic,      static_cast<std::uint32_t>(checksum_),    0, size_, sample_.id,
            sample_.cut, static_cast<std::uint32_t>(parts_.size())};
  put(&head, sizeof head);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Field& field = sample_.fields[i];
    const TensorSpec& spec = field.tensor.spec();
    const Codec codec = parts_[i].encoded ? codec_ : Codec{};
    Record record{static_cast<std::uint8_t>(spec.dtype),
                  static_cast<std::uint8_t>(spec.layout),
                  static_cast<std::uint8_t>(spec.shape.rank()),
                  static_cast<std::uint8_t>(field.name.size()),
                  static_cast<std::uint8_t>(codec.filter),
                  static_cast<std::uint8_t>(codec.compressor),
                  static_cast<std::uint8_t>(codec.level),
                  0,
                  parts_[i].offset,
                  parts_[i].size,
                  {}};
    std::copy(spec.shape.begin(), spec.shape.end(), record.dims.begin());
    put(&record, sizeof record);
  }
  for (const Field& field : sample_.fields) put(field.name.data(), field.name.size());
  const auto zeros_to = [&](std::size_t offset) {
    std::uint8_t* const next = place.data() + offset;
    std::memset(at, 0, static_cast<std::size_t>(next - at));
    at = next;
  };
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (i == last_) continue;
    zeros_to(parts_[i].offset);
    const auto& encoded = parts_[i].encoded;
    put(encoded ? encoded->data() : sample_.fields[i].tensor.view().bytes(), parts_[i].size);
  }
  zeros_to(place.size());
  if (checksum_ == Checksum::kNone) return;
  head.checksum = hash_of(place, tail());
  std::memcpy(place.data(), &head, sizeof head);
}

SharedBytes shared_form(std::shared_ptr<const Sample> sample, const Codec& codec, Checksum checksum,
                        BufferPool& pool) {
  const FormWriter writer(*sample, codec, checksum);
  Buffer head = pool.allocate(writer.head_size());
  writer.write_head(head.span());
  const std::array runs{head.view(), writer.tail()};
  if (runs[1].empty()) sample.reset();  // nothing of it is needed any more
  using Held = std::pair<std::shared_ptr<const Sample>, Buffer>;
  return {runs, std::make_shared<const Held>(std::move(sample), std::move(head))};
}

Sample read_form(const FormSource& from, SampleId id, Cut cut) {
  Reader reader(from.bytes);
  const auto head = reader.take<Head>();
  if (head.magic != kMagic) damaged("it does not begin as one");
  if (head.size != from.bytes.size()) damaged("it is of another size than it says");
  if (head.checksum_kind != static_cast<std::uint32_t>(from.checksum))
    damaged("it has no such checksum");
  if (from.checksum == Checksum::kXxh3 && head.checksum != hash_of(from.bytes))
    damaged("its checksum does not match");
  if (head.sample != id || head.cut != cut) damaged("it is of another sample or cut");

  const auto count = static_cast<std::size_t>(head.fields);
  if (count > from.bytes.size() / sizeof(Record)) damaged("it ends too early");
  Reader records(reader.take(count * sizeof(Record)));
  Sample sample;
  sample.id = id;
  sample.cut = cut;
  sample.holds = from.hold;
  sample.fields.reserve(count);
  std::size_t decoded_bytes = 0;
  std::vector<std::pair<std::size_t, Record>> encoded;
  for (std::size_t i = 0; i < count; ++i) {
    const auto record = records.take<Record>();
    const std::span<const std::uint8_t> name = reader.take(record.name_size);
    const TensorSpec spec = spec_of(record);
    const Codec codec = codec_of(record);
    if (record.offset % kBufferAlignment != 0 || record.offset > from.bytes.size() ||
        record.size > from.bytes.size() - record.offset)
      damaged("a tensor lies outside");
    sample.fields.push_back({{reinterpret_cast<const char*>(name.data()), name.size()}, {}});
    if (codec.is_none()) {
      if (record.size != spec.bytes()) damaged("a tensor has another size than its shape");
      // Borrowed for reading: an op never writes into its input.
      auto* const bytes = const_cast<std::uint8_t*>(from.bytes.data() + record.offset);
      sample.fields.back().tensor = Tensor::borrowed({spec, bytes});
      continue;
    }
    check_frame(codec, from.bytes.subspan(record.offset, record.size), spec.bytes());
    if (spec.bytes() > from.most_bytes - decoded_bytes) damaged("it stands for too many bytes");
    decoded_bytes += spec.bytes();
    encoded.emplace_back(i, record);
  }
  if (encoded.empty()) return sample;

  if (from.reserve) from.reserve(decoded_bytes);
  for (const auto& [i, record] : encoded) {
    Tensor& tensor = sample.fields[i].tensor;
    const TensorSpec spec = spec_of(record);
    tensor = Tensor(spec, from.pool->allocate(spec.bytes()));
    decode(codec_of(record), spec, from.bytes.subspan(record.offset, record.size),
           {tensor.span().bytes(), spec.bytes()});
  }
  return sample;
}

}  // namespace cutwater
