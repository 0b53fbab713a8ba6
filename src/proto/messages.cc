// SPDX-License-Identifier: Apache-2.0
#define XXH_INLINE_ALL
#include "proto/messages.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace cutwater::wire {
namespace {

constexpr std::uint8_t kFormTag = 15 << 3 | 2;   // field 15, length-delimited
constexpr std::uint8_t kFormAtTag = 1 << 3 | 5;  // field 1, four bytes
constexpr std::size_t kFormAtBytes = 5;
constexpr std::uint8_t kCheckTag = 14 << 3 | 1;  // field 14, eight bytes
constexpr std::size_t kCheckBytes = 9;

std::string length_text(std::size_t length) {
  std::string text(1, static_cast<char>(kFormTag));
  for (; length >= 128; length >>= 7) text.push_back(static_cast<char>((length & 127) | 128));
  text.push_back(static_cast<char>(length));
  return text;
}

// Writes a message and its check.
void write_checked(const google::protobuf::MessageLite& message, std::uint8_t* to) {
  std::uint8_t* const end = message.SerializeWithCachedSizesToArray(to);
  const std::uint64_t check = XXH3_64bits(to, static_cast<std::size_t>(end - to));
  *end = kCheckTag;
  std::memcpy(end + 1, &check, sizeof check);
}

bool parse_checked(std::string_view bytes, google::protobuf::MessageLite& message) {
  if (bytes.size() < kCheckBytes) return false;
  const std::string_view end = bytes.substr(bytes.size() - kCheckBytes);
  bytes.remove_suffix(kCheckBytes);
  std::uint64_t check = 0;
  std::memcpy(&check, end.data() + 1, sizeof check);
  return static_cast<std::uint8_t>(end[0]) == kCheckTag &&
         check == XXH3_64bits(bytes.data(), bytes.size()) &&
         message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
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
  grpc::Slice slice(message.ByteSizeLong() + kCheckBytes);
  write_checked(message, const_cast<std::uint8_t*>(slice.begin()));
  return {&slice, 1};
}

bool parse(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite& message) {
  grpc::Slice slice;
  if (!bytes.TrySingleSlice(&slice).ok() && !bytes.DumpToSingleSlice(&slice).ok()) return false;
  return parse_checked({reinterpret_cast<const char*>(slice.begin()), slice.size()}, message);
}

grpc::ByteBuffer reply_bytes(pb::Reply& reply, std::shared_ptr<const Buffer> form) {
  reply.set_form_at(1);  // takes the same room whatever it is
  const std::string length = form ? length_text(form->size()) : std::string();
  const std::size_t head = reply.ByteSizeLong() + kCheckBytes;
  reply.set_form_at(static_cast<std::uint32_t>(head + length.size()));
  std::array<grpc::Slice, 2> slices{grpc::Slice(head + length.size()), grpc::Slice()};
  auto* const place = const_cast<std::uint8_t*>(slices[0].begin());
  write_checked(reply, place);
  std::ranges::copy(length, place + head);
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
  if (!parse_checked(head, received.reply) || !received.reply.form().empty()) return std::nullopt;
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
