// SPDX-License-Identifier: Apache-2.0
#include "proto/messages.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace cutwater::wire {
namespace {

constexpr std::uint8_t kFormTag = 15 << 3 | 2;   // field 15, length-delimited
constexpr std::uint8_t kFormAtTag = 1 << 3 | 5;  // field 1, four bytes
constexpr std::size_t kFormAtBytes = 5;

std::string length_text(std::size_t length) {
  std::string text(1, static_cast<char>(kFormTag));
  for (; length >= 128; length >>= 7) text.push_back(static_cast<char>((length & 127) | 128));
  text.push_back(static_cast<char>(length));
  return text;
}

// Copies bytes [from, from + count) of the slices.
void copy_out(const std::vector<grpc::Slice>& slices, std::size_t from, std::size_t count,
              std::uint8_t* to) {
  for (const grpc::Slice& slice : slices) {
    if (count == 0) return;
    if (from >= slice.size()) {
      from -= slice.size();
      continue;
    }
    const std::size_t part = std::min(slice.size() - from, count);
    std::memcpy(to, slice.begin() + from, part);
    to += part;
    count -= part;
    from = 0;
  }
}

}  // namespace

grpc::ByteBuffer bytes_of(const google::protobuf::MessageLite& message) {
  grpc::Slice slice(message.ByteSizeLong());
  message.SerializeWithCachedSizesToArray(const_cast<std::uint8_t*>(slice.begin()));
  return {&slice, 1};
}

bool parse(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite& message) {
  grpc::Slice slice;
  if (bytes.TrySingleSlice(&slice).ok())
    return message.ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
  return bytes.DumpToSingleSlice(&slice).ok() &&
         message.ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
}

grpc::ByteBuffer reply_bytes(pb::Reply& reply, std::shared_ptr<const Buffer> form) {
  reply.set_form_at(1);  // takes the same room whatever it is
  const std::string length = form ? length_text(form->size()) : std::string();
  reply.set_form_at(static_cast<std::uint32_t>(reply.ByteSizeLong() + length.size()));
  std::array<grpc::Slice, 2> slices{grpc::Slice(reply.SerializeAsString() + length), grpc::Slice()};
  if (!form) return {slices.data(), 1};
  auto held = std::make_unique<std::shared_ptr<const Buffer>>(std::move(form));
  const Buffer& bytes = **held;
  slices[1] = grpc::Slice(
      const_cast<std::uint8_t*>(bytes.data()), bytes.size(),
      [](void* hold) { delete static_cast<std::shared_ptr<const Buffer>*>(hold); }, held.get());
  (void)held.release();
  return {slices.data(), 2};
}

std::optional<ReceivedReply> parse_reply(const grpc::ByteBuffer& bytes,
                                         const std::function<Buffer(std::size_t)>& allocate) {
  std::vector<grpc::Slice> slices;
  const std::size_t size = bytes.Length();
  if (size < kFormAtBytes || size > kMostReplyBytes || !bytes.Dump(&slices).ok())
    return std::nullopt;
  std::array<std::uint8_t, kFormAtBytes> first;
  copy_out(slices, 0, first.size(), first.data());
  std::uint32_t form_at = 0;
  std::memcpy(&form_at, first.data() + 1, sizeof form_at);
  if (first[0] != kFormAtTag || form_at < kFormAtBytes || form_at > size ||
      form_at > kMostRequestBytes)
    return std::nullopt;

  std::string head(form_at, '\0');
  copy_out(slices, 0, form_at, reinterpret_cast<std::uint8_t*>(head.data()));
  if (size > form_at) {
    const std::string length = length_text(size - form_at);
    if (!head.ends_with(length)) return std::nullopt;
    head.resize(head.size() - length.size());
  }
  ReceivedReply received;
  if (!received.reply.ParseFromString(head) || !received.reply.form().empty()) return std::nullopt;
  if (size > form_at) {
    received.form = allocate(size - form_at);
    copy_out(slices, form_at, size - form_at, received.form.data());
  }
  return received;
}

pb::Failure to_message(const Failure& failure) {
  pb::Failure message;
  message.set_code(static_cast<std::uint32_t>(failure.code));
  message.set_reason(failure.reason);
  message.set_path(failure.path);
  message.set_op(failure.op);
  message.set_storage_failed(failure.storage_failed);
  return message;
}

Failure from_message(const pb::Failure& message, std::int64_t sample) {
  Failure failure;
  failure.code = message.code() <= static_cast<std::uint32_t>(Code::kInternal)
                     ? static_cast<Code>(message.code())
                     : Code::kInternal;
  failure.reason = message.reason();
  failure.path = message.path();
  failure.op = message.op();
  failure.sample = sample;
  failure.storage_failed = message.storage_failed();
  return failure;
}

}  // namespace cutwater::wire
