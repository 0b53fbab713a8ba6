// SPDX-License-Identifier: Apache-2.0
// Messages of cutwater.proto as gRPC carries them. A sample's bytes go around the message: they are
// not copied into one, and come out where whoever receives them wants them.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/shared_bytes.h"
#include "cutwater/buffer.h"
#include "cutwater/error.h"
#include "proto/cutwater.pb.h"

namespace cutwater::wire {

namespace pb = cutwater::v1;

// Of what is said here; others do not understand each other.
inline constexpr char kVersion[] = "4";

inline constexpr char kDescribe[] = "/cutwater.v1.Storage/Describe";
inline constexpr char kList[] = "/cutwater.v1.Storage/List";
inline constexpr char kRead[] = "/cutwater.v1.Storage/Read";
inline constexpr char kFetch[] = "/cutwater.v1.Storage/Fetch";

// What either side says of bytes that are no message: asking again may help.
inline constexpr char kDamaged[] = "what came is no message, or was damaged on its way";

// Limits that both sides keep to.
inline constexpr int kMostWanted = 1024;   // samples in one request
inline constexpr int kMostWays = 64;       // in one Begin
inline constexpr int kMostListed = 16384;  // samples in one Listing
inline constexpr std::size_t kMostRequestBytes = 1 << 20;
inline constexpr std::size_t kMostReplyBytes = std::size_t{1} << 30;
inline constexpr std::size_t kMostFormBytes = kMostReplyBytes - (1 << 20);  // of a sample in it

// REQUIRES: `check`, which they end with, is not set.
grpc::ByteBuffer bytes_of(const google::protobuf::MessageLite& message);
// False: the bytes are none of such a message, or not as they were sent.
bool parse(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite& message);

// The answer with a form behind it (empty: none), whose bytes stay where they are until they are
// sent.
grpc::ByteBuffer reply_bytes(pb::Reply& reply, const SharedBytes& form);

// Several answers on their way into one message.
class ReplyGroup {
 public:
  // The form as for reply_bytes().
  void add(pb::Reply& reply, const SharedBytes& form);
  bool empty() const { return slices_.empty(); }
  std::size_t bytes() const { return bytes_; }
  grpc::ByteBuffer message() const { return {slices_.data(), slices_.size()}; }

 private:
  std::vector<grpc::Slice> slices_;
  std::size_t bytes_ = 0;
};

struct ReceivedReply {
  pb::Reply reply;
  Buffer form;  // empty: none came
};
// `allocate` is asked once for the form's place. Nothing: the bytes are no reply.
std::optional<ReceivedReply> parse_reply(const grpc::ByteBuffer& bytes,
                                         const std::function<Buffer(std::size_t)>& allocate);
// Each answer of a group, and how many bytes of the message it took, in their order. False: from
// some place on the bytes are no answer; those before it have been handed over.
bool parse_replies(const grpc::ByteBuffer& bytes,
                   const std::function<Buffer(std::size_t)>& allocate,
                   const std::function<void(ReceivedReply received, std::size_t bytes)>& take);

pb::Failure to_message(const Failure& failure);
// Total on any message: a code that does not exist is one of ours that the other side should not
// have sent.
Failure from_message(const pb::Failure& message, std::int64_t sample);

}  // namespace cutwater::wire
