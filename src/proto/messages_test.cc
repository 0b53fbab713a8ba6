// SPDX-License-Identifier: Apache-2.0
#include "proto/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "variant/form.h"

namespace cutwater::wire {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes flat(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  EXPECT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
  return {slice.begin(), slice.end()};
}

// As gRPC may hand them over: in pieces of any sizes.
grpc::ByteBuffer in_pieces(const Bytes& bytes, std::mt19937& random) {
  std::vector<grpc::Slice> slices;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = std::min<std::size_t>(1 + random() % 40, bytes.size() - at);
    slices.emplace_back(bytes.data() + at, size);
    at += size;
  }
  return {slices.data(), slices.size()};
}

pb::Reply some_reply(std::mt19937& random) {
  pb::Reply reply;
  if (random() % 4 > 0) reply.set_token(random());
  reply.set_way(random() % 3);
  reply.set_stored_bytes(std::uint64_t{random()} << (random() % 32));
  if (random() % 2 > 0) reply.set_queued_s(1.5F);
  for (unsigned i = random() % 6; i > 0; --i) {
    reply.add_way_bytes(static_cast<float>(random()));
    reply.add_way_s(static_cast<float>(i));
  }
  if (random() % 2 > 0) reply.set_path("no\xff UTF-8");
  if (random() % 3 == 0) {
    reply.mutable_failure()->set_reason(std::string(random() % 300, 'r'));
    reply.mutable_failure()->set_path("no\xff UTF-8");
  }
  return reply;
}

// None, or a sound form of sample 5 at cut 2.
SharedBytes some_form(std::mt19937& random) {
  if (random() % 4 == 0) return {};
  const auto sample = std::make_shared<Sample>();
  sample->id = 5;
  sample->cut = 2;
  const auto size = static_cast<std::int64_t>(1 + random() % 400);
  Buffer content(static_cast<std::size_t>(size));
  for (std::uint8_t& byte : content.span()) byte = static_cast<std::uint8_t>(random());
  sample->fields.push_back({"image", Tensor({DType::kU8, {size}}, std::move(content))});
  return shared_form(sample, {}, Checksum::kXxh3, *BufferPool::create(1 << 20));
}

std::optional<ReceivedReply> received(const grpc::ByteBuffer& bytes) {
  return parse_reply(bytes, [](std::size_t size) { return Buffer(size); });
}

Bytes bytes_in(const Buffer& buffer) { return {buffer.data(), buffer.data() + buffer.size()}; }
Bytes bytes_in(const SharedBytes& form) {
  Bytes bytes(form.size());
  form.copy_to(bytes);
  return bytes;
}

TEST(Messages, RepliesComeAsTheyWereSent) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    pb::Reply reply = some_reply(random);
    const auto form = some_form(random);
    const Bytes bytes = flat(reply_bytes(reply, form));
    const auto back = received(in_pieces(bytes, random));
    ASSERT_TRUE(back) << round;
    EXPECT_EQ(back->reply.SerializeAsString(), reply.SerializeAsString());
    EXPECT_EQ(bytes_in(back->form), bytes_in(form));
    // It is a message like any other, too.
    pb::Reply plain;
    ASSERT_TRUE(plain.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    EXPECT_EQ(Bytes(plain.form().begin(), plain.form().end()), bytes_in(form));
    EXPECT_EQ(plain.form_at() + plain.form().size(), bytes.size());
  }
}

TEST(Messages, GroupsComeAsTheyWereSent) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    ReplyGroup group;
    std::vector<std::string> heads;
    std::vector<Bytes> forms;
    for (unsigned i = 1 + random() % 6; i > 0; --i) {
      pb::Reply reply = some_reply(random);
      const auto form = some_form(random);
      group.add(reply, form);
      heads.push_back(reply.SerializeAsString());
      forms.push_back(bytes_in(form));
    }
    Bytes bytes = flat(group.message());
    EXPECT_EQ(bytes.size(), group.bytes());
    pb::Replies plain;  // a message like any other
    ASSERT_TRUE(plain.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    ASSERT_EQ(static_cast<std::size_t>(plain.reply_size()), heads.size());

    const auto parsed = [&](std::size_t& count) {
      std::size_t all_bytes = 0;
      count = 0;
      return parse_replies(
                 in_pieces(bytes, random), [](std::size_t size) { return Buffer(size); },
                 [&](const ReceivedReply& back, std::size_t its) {
                   ASSERT_LT(count, heads.size());
                   EXPECT_EQ(back.reply.SerializeAsString(), heads[count]);
                   EXPECT_EQ(bytes_in(back.form), forms[count]);
                   all_bytes += its;
                   ++count;
                 }) &&
             all_bytes == bytes.size();
    };
    std::size_t count = 0;
    EXPECT_TRUE(parsed(count));
    EXPECT_EQ(count, heads.size());
    bytes.resize(bytes.size() - 1 - random() % (bytes.size() - 1));
    (void)parsed(count);  // true: it ends just behind an answer
    EXPECT_LT(count, heads.size());
  }
  EXPECT_FALSE(parse_replies(
      grpc::ByteBuffer(), [](std::size_t size) { return Buffer(size); },
      [](const ReceivedReply&, std::size_t) { FAIL(); }));
}

// A form's own bytes are its own matter: read_form() looks at their checksum.
TEST(Messages, NothingElseIsAReply) {
  std::mt19937 random(2);
  int only_the_form_differs = 0;
  for (int round = 0; round < 3000; ++round) {
    pb::Reply reply = some_reply(random);
    const auto form = some_form(random);
    Bytes bytes = flat(reply_bytes(reply, form));
    switch (random() % 4) {
      case 0: bytes.resize(random() % bytes.size()); break;
      case 1:
        bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1U << random() % 8);
        break;
      case 2: bytes.push_back(static_cast<std::uint8_t>(random())); break;
      default:
        for (unsigned i = 1 + random() % 9; i > 0; --i)
          bytes.insert(bytes.begin() + random() % bytes.size(),
                       static_cast<std::uint8_t>(random()));
    }
    const auto back = received(in_pieces(bytes, random));
    if (!back) continue;
    ++only_the_form_differs;
    EXPECT_EQ(back->reply.SerializeAsString(), reply.SerializeAsString());
    ASSERT_FALSE(form.empty());
    const auto pool = BufferPool::create(1 << 20);
    FormSource from{back->form.view(), nullptr, pool.get()};
    from.checksum = Checksum::kXxh3;
    EXPECT_THROW((void)read_form(from, 5, 2), Error);
  }
  EXPECT_GT(only_the_form_differs, 100);
}

TEST(Messages, ForgedLengthsAskForNoMemory) {
  pb::Reply reply;
  const Bytes content(100);
  const Bytes good = flat(reply_bytes(reply, {{content}}));
  for (const std::uint32_t form_at : {0U, 4U, 5U, 1U << 20, 1U << 31, ~0U}) {
    Bytes bytes = good;
    std::memcpy(bytes.data() + 1, &form_at, sizeof form_at);
    const grpc::Slice slice(bytes.data(), bytes.size());
    EXPECT_FALSE(parse_reply({&slice, 1}, [](std::size_t) -> Buffer {
      ADD_FAILURE() << "nothing is to be allocated";
      return Buffer(1);
    }));
  }
  EXPECT_FALSE(received(grpc::ByteBuffer())) << "no bytes at all";
}

TEST(Messages, RequestsAreTakenAsTheyWereSentOrNotAtAll) {
  std::mt19937 random(3);
  pb::FetchRequest request;
  request.mutable_begin()->set_name("data");
  request.mutable_begin()->set_seed(7);
  for (int i = 0; i < 20; ++i) request.add_wanted()->set_epoch(i);
  const Bytes good = flat(bytes_of(request));
  pb::FetchRequest back;
  ASSERT_TRUE(parse(in_pieces(good, random), back));
  EXPECT_EQ(back.SerializeAsString(), request.SerializeAsString());
  for (std::size_t at = 0; at < good.size(); ++at) {
    Bytes bytes = good;
    bytes[at] ^= static_cast<std::uint8_t>(1U << random() % 8);
    EXPECT_FALSE(parse(in_pieces(bytes, random), back)) << "byte " << at;
    bytes.resize(at);
    EXPECT_FALSE(parse(in_pieces(bytes, random), back)) << at << " bytes";
  }
}

TEST(Messages, FailuresGoAround) {
  Failure failure{Code::kBadSample, "cannot be", 7, "some\xff/path", "decode"};
  failure.storage_failed = true;
  const Failure back = from_message(to_message(failure), 7);
  EXPECT_EQ(back.message(), failure.message());
  EXPECT_EQ(back.code, failure.code);
  EXPECT_TRUE(back.storage_failed);
  pb::Failure odd;
  odd.set_code(99);
  EXPECT_EQ(from_message(odd, 1).code, Code::kInternal);
}

}  // namespace
}  // namespace cutwater::wire
