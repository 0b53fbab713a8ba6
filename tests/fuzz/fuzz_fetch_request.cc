// SPDX-License-Identifier: Apache-2.0
// What a trainer may send to a server, and a server to a trainer: whatever it is, it is taken as it
// was sent or refused in words, and nothing is read or made for it that does not exist.
#include <algorithm>
#include <array>

#include "cutwater/error.h"
#include "fuzz.h"
#include "ops/all_ops.h"
#include "serve/data_sets.h"
#include "variant/form.h"

namespace cutwater::fuzz {
namespace {

namespace pb = wire::pb;

constexpr std::array<std::uint8_t, 4> kStored = {1, 2, 3, 4};

serve::DataSets& data_sets() {
  static const std::shared_ptr<const Source> source = open_memory({kStored, kStored, kStored});
  static serve::DataSets sets({{"data", source}, {"other", source}}, all_ops(), 1);
  return sets;
}

grpc::ByteBuffer buffer_of(Input bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  return {&slice, 1};
}

// Refused in words, or done.
template <class Work>
bool accepted(Work work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    const Code code = error.code();
    require(code == Code::kInvalidArgument || code == Code::kNotFound || code == Code::kStale,
            std::string("refused as what it is: ") + error.what());
    require(!error.failure().reason.empty(), "refused in words");
    return false;
  }
}

void check_stream(const pb::Begin& begin) {
  std::shared_ptr<const serve::Stream> stream;
  if (!accepted([&] { stream = data_sets().stream(begin); })) return;
  require(stream->pipeline.fingerprint() == begin.fingerprint(), "a stream is what was meant");
  const std::vector<serve::Way>& ways = stream->book->ways();
  require(!ways.empty() && ways.size() <= wire::kMostWays, "the number of ways is bounded");
  require(ways[0] == serve::Way{}, "the first is as stored");
  for (const serve::Way& way : ways)
    require(
        way.cut >= 0 && way.cut <= stream->pipeline.last_cut() && (!way.excerpt || way.cut == 0),
        "there is such a cut");
  std::vector<serve::Offer> offers;
  stream->book->estimate({4, 0.5}, offers);
  require(serve::WayBook::best(offers, 0) < ways.size(), "one of them is best");
}

// As a server reads it; the input says what is right where it cannot know it.
void check_request(Input input) {
  pb::FetchRequest request;
  if (!request.ParseFromArray(input.data(), static_cast<int>(input.size()))) return;
  request.clear_check();
  const grpc::ByteBuffer sent = wire::bytes_of(request);
  pb::FetchRequest taken;
  require(wire::parse(sent, taken) && taken.SerializeAsString() == request.SerializeAsString(),
          "a request is taken as it was sent");
  pb::Begin begin = request.begin();
  check_stream(begin);
  begin.set_name("data");
  pb::DescribeRequest about;
  about.set_name("data");
  const std::string identity = data_sets().describe(about).identity();
  begin.set_identity(identity);
  begin.set_version(wire::kVersion);
  check_stream(begin);
  if (accepted([&] {
        begin.set_fingerprint(Pipeline::parse(begin.pipeline(), all_ops()).fingerprint());
      }))
    check_stream(begin);
  pb::ReadRequest read;
  read.set_name("data");
  read.set_identity(identity);
  read.set_version(wire::kVersion);
  const auto plain = data_sets().plain(read);
  for (const pb::Wanted& wanted : request.wanted()) {
    const bool there = accepted([&] { serve::DataSets::check_id(*plain, wanted.id()); });
    require(there == (wanted.id() >= 0 && wanted.id() < 3), "there are three samples");
  }
}

void check_list(Input input) {
  pb::ListRequest request;
  if (!request.ParseFromArray(input.data(), static_cast<int>(input.size()))) return;
  request.set_name("data");
  pb::Listing listing;
  if (accepted([&] { listing = data_sets().list(request); }))
    require(listing.paths_size() <= 3, "a listing is of what there is");
}

void check_messages(Input input) {
  pb::FetchRequest request;
  pb::DescribeRequest describe;
  require(!wire::parse(buffer_of(input), request) || input.size() >= 9, "a message has its check");
  (void)accepted([&] {
    if (wire::parse(buffer_of(input), describe)) (void)data_sets().describe(describe);
  });
  const auto pool = BufferPool::create(1 << 20);
  const auto allocate = [&](std::size_t size) {
    require(size <= input.size(), "no more is asked for than has come");
    return pool->allocate(size);
  };
  std::size_t taken = 0;
  const bool all =
      wire::parse_replies(buffer_of(input), allocate,
                          [&](const wire::ReceivedReply&, std::size_t bytes) { taken += bytes; });
  require(taken <= input.size() && (!all || taken == input.size()), "bytes are taken once");
  auto reply = wire::parse_reply(buffer_of(input), allocate);
  if (!reply) return;
  (void)wire::from_message(reply->reply.failure(), 1);
  const auto form = std::make_shared<Buffer>(std::move(reply->form));
  FormSource from{form->view(), form, pool.get()};
  from.most_bytes = 1 << 20;
  from.checksum = Checksum::kXxh3;
  try {
    (void)read_form(from, 1, 0);
  } catch (const Error& error) {
    require(error.code() == Code::kBadSample, error.what());
  }
}

// The input as what a reply carries: it comes back, and with one bit changed it does not.
void check_reply(Input input) {
  pb::Reply reply;
  if (!reply.ParseFromArray(input.data(), static_cast<int>(input.size()))) reply.Clear();
  reply.clear_form();
  reply.clear_check();
  const auto form = std::make_shared<Buffer>(input.size() + 1);
  std::copy(input.begin(), input.end(), form->data());
  const SharedBytes shared{{form->view()}, form};
  const grpc::ByteBuffer sent = wire::reply_bytes(reply, shared);
  const auto allocate = [](std::size_t size) { return Buffer(size); };
  const auto back = wire::parse_reply(sent, allocate);
  wire::ReplyGroup group;
  group.add(reply, shared);
  group.add(reply, shared);
  if (sent.Length() - form->size() > wire::kMostRequestBytes) return;
  require(back && back->reply.SerializeAsString() == reply.SerializeAsString() &&
              std::ranges::equal(back->form.view(), form->view()),
          "a reply comes as it was sent");
  int in_group = 0;
  const auto count = [&](const wire::ReceivedReply& one, std::size_t) {
    in_group += std::ranges::equal(one.form.view(), form->view()) ? 1 : 0;
  };
  require(wire::parse_replies(group.message(), allocate, count) && in_group == 2,
          "a group comes as it was sent");
  grpc::Slice slice;
  require(sent.DumpToSingleSlice(&slice).ok(), "bytes are bytes");
  std::vector<std::uint8_t> bytes(slice.begin(), slice.end());
  const std::size_t head = bytes.size() - form->size();
  const std::uint32_t hash = hash_of(input);
  bytes[hash % head] ^= static_cast<std::uint8_t>(1U << (hash >> 29));
  require(!wire::parse_reply(buffer_of(bytes), allocate), "a changed head is no reply");
}

}  // namespace

FUZZ_TARGET(fetch_request) {
  check_messages(input);
  check_request(input);
  check_list(input);
  check_reply(input);
}

}  // namespace cutwater::fuzz
