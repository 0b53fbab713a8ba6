// SPDX-License-Identifier: Apache-2.0
#include "proto/messages.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/xxh3.h"

namespace cutwater::wire {
namespace {

constexpr std::uint8_t kFormTag = 15 << 3 | 2;   // field 15, length-delimited
constexpr std::uint8_t kFormAtTag = 1 << 3 | 5;  // field 1, four bytes
constexpr std::size_t kFormAtBytes = 5;
constexpr std::uint8_t kCheckTag = 14 << 3 | 1;  // field 14, eight bytes
constexpr std::size_t kCheckBytes = 9;
constexpr std::uint8_t kReplyTag = 1 << 3 | 2;  // of Replies: field 1, length-delimited

// What stands before the bytes of such a field.
std::string field_text(std::uint8_t tag, std::size_t length) {
  std::string text(1, static_cast<char>(tag));
  for (; length >= 128; length >>= 7) text.push_back(static_cast<char>((length & 127) | 128));
  text.push_back(static_cast<char>(length));
  return text;
}

// Writes a message and its check.
void write_checked(const google::protobuf::MessageLite& message, std::uint8_t* to) {
  std::uint8_t* const end = message.SerializeWithCachedSizesToArray(to);
  const std::uint64_t check = xxh3({to, end});
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
         check == xxh3({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}) &&
         message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// The bytes of a message as gRPC has them: in pieces.
class Pieces {
 public:
  bool open(const grpc::ByteBuffer& bytes) { return bytes.Dump(&slices_).ok(); }

  // The next bytes; they are gone over once. REQUIRES: there are as many.
  void read(std::uint8_t* to, std::size_t count) {
    while (count > 0) {
      const grpc::Slice& slice = slices_[slice_];
      const std::size_t part = std::min(slice.size() - at_, count);
      std::memcpy(to, slice.begin() + at_, part);
      to += part;
      count -= part;
      at_ += part;
      if (at_ < slice.size()) continue;
      ++slice_;
      at_ = 0;
    }
  }

 private:
  std::vector<grpc::Slice> slices_;
  std::size_t slice_ = 0, at_ = 0;
};

// The reply that the next `size` bytes are.
std::optional<ReceivedReply> read_reply(Pieces& from, std::size_t size,
                                        const std::function<Buffer(std::size_t)>& allocate) {
  if (size < kFormAtBytes || size > kMostReplyBytes) return std::nullopt;
  std::array<std::uint8_t, kFormAtBytes> first;
  from.read(first.data(), first.size());
  std::uint32_t form_at = 0;
  std::memcpy(&form_at, first.data() + 1, sizeof form_at);
  if (first[0] != kFormAtTag || form_at < kFormAtBytes || form_at > size ||
      form_at > kMostRequestBytes)
    return std::nullopt;

  std::string head(form_at, '\0');
  std::ranges::copy(first, head.begin());
  from.read(reinterpret_cast<std::uint8_t*>(head.data()) + first.size(), form_at - first.size());
  if (size > form_at) {
    const std::string length = field_text(kFormTag, size - form_at);
    if (!head.ends_with(length)) return std::nullopt;
    head.resize(head.size() - length.size());
  }
  ReceivedReply received;
  if (!parse_checked(head, received.reply) || !received.reply.form().empty()) return std::nullopt;
  if (size > form_at) {
    received.form = allocate(size - form_at);
    from.read(received.form.data(), size - form_at);
  }
  return received;
}

// A reply's head: all but its form, with what stands before it in a group.
grpc::Slice head_of(pb::Reply& reply, std::size_t form_bytes, bool in_group) {
  reply.set_form_at(1);  // takes the same room whatever it is
  const std::string length = form_bytes > 0 ? field_text(kFormTag, form_bytes) : std::string();
  const std::size_t head = reply.ByteSizeLong() + kCheckBytes;
  const std::size_t form_at = head + length.size();
  reply.set_form_at(static_cast<std::uint32_t>(form_at));
  std::string before;
  if (in_group) before = field_text(kReplyTag, form_at + form_bytes);
  grpc::Slice slice(before.size() + form_at);
  auto* const place = const_cast<std::uint8_t*>(slice.begin());
  std::ranges::copy(before, place);
  write_checked(reply, place + before.size());
  std::ranges::copy(length, place + before.size() + head);
  return slice;
}

// They hold the form until it is sent.
void add_slices(const SharedBytes& form, std::vector<grpc::Slice>& slices) {
  using Hold = std::shared_ptr<const void>;
  for (const std::span<const std::uint8_t> run : form.runs) {
    if (run.empty()) continue;
    auto held = std::make_unique<Hold>(form.hold);
    slices.emplace_back(
        const_cast<std::uint8_t*>(run.data()), run.size(),
        [](void* hold) { delete static_cast<Hold*>(hold); }, held.get());
    (void)held.release();
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

grpc::ByteBuffer reply_bytes(pb::Reply& reply, const SharedBytes& form) {
  std::vector<grpc::Slice> slices{head_of(reply, form.size(), false)};
  add_slices(form, slices);
  return {slices.data(), slices.size()};
}

void ReplyGroup::add(pb::Reply& reply, const SharedBytes& form) {
  slices_.push_back(head_of(reply, form.size(), true));
  bytes_ += slices_.back().size() + form.size();
  add_slices(form, slices_);
}

std::optional<ReceivedReply> parse_reply(const grpc::ByteBuffer& bytes,
                                         const std::function<Buffer(std::size_t)>& allocate) {
  Pieces pieces;
  if (!pieces.open(bytes)) return std::nullopt;
  return read_reply(pieces, bytes.Length(), allocate);
}

bool parse_replies(const grpc::ByteBuffer& bytes,
                   const std::function<Buffer(std::size_t)>& allocate,
                   const std::function<void(ReceivedReply received, std::size_t bytes)>& take) {
  Pieces pieces;
  std::size_t left = bytes.Length();
  if (left == 0 || !pieces.open(bytes)) return false;
  while (left > 0) {
    const std::size_t before = left;
    const auto next = [&] {
      std::uint8_t byte = 0;
      pieces.read(&byte, 1);
      --left;
      return byte;
    };
    if (next() != kReplyTag) return false;
    std::size_t size = 0;
    std::uint8_t byte = 128;
    for (int shift = 0; byte >= 128; shift += 7) {
      if (left == 0 || shift > 28) return false;  // none is as long as that
      byte = next();
      size |= std::size_t{byte & 127U} << shift;
    }
    if (size > left) return false;
    std::optional<ReceivedReply> received = read_reply(pieces, size, allocate);
    if (!received) return false;
    left -= size;
    take(std::move(*received), before - left);
  }
  return true;
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
