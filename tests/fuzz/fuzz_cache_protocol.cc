// SPDX-License-Identifier: Apache-2.0
// Packets of several clients to the daemon of the shared cache: whatever they say, each gets an
// answer or has to go, and when all have gone, nothing is left but what was committed.
#include <memory>

#include "cache/session.h"
#include "cutwater/error.h"
#include "fuzz.h"

namespace cutwater::fuzz {
namespace {

constexpr std::uint64_t kLimit = 1 << 18;
constexpr std::size_t kClients = 3;

// The input is packets: the client, the number of bytes (low, high), and the bytes.
void talk(cache::Desk& desk, Input input) {
  std::vector<std::unique_ptr<cache::Session>> sessions(kClients);
  while (input.size() >= 3) {
    auto& session = sessions[input[0] % kClients];
    const std::size_t size = std::min<std::size_t>(input[1] + 256U * input[2], input.size() - 3);
    if (!session) session = std::make_unique<cache::Session>(desk, cache::Peer{1, input[0]});
    try {
      const cache::Session::Reply reply = session->answer(input.subspan(3, size));
      require(!reply.bytes.empty(), "every question has a reply");
      if (reply.last) session.reset();
    } catch (const Error& error) {
      require(error.code() == Code::kInvalidArgument, "what is refused is the client's fault");
      session.reset();
    }
    input = input.subspan(3 + size);
  }
}

}  // namespace

FUZZ_TARGET(cache_protocol) {
  cache::Desk desk(cache::Segment::shared(kLimit));
  const std::size_t before = desk.keeper.stats().bytes;
  talk(desk, input);
  require(desk.clients.empty() && desk.keeper.jobs().empty(), "nobody is left");
  require(desk.keeper.stats().bytes <= kLimit, "the limit is kept");
  std::int64_t entries = 0;
  for (const auto& use : desk.keeper.by_owner()) entries += use.entries;
  require(entries == desk.keeper.stats().entries, "what is left is what was committed");
  desk.keeper.clear();
  require(desk.keeper.stats().bytes == before, "then there is nothing");
}

}  // namespace cutwater::fuzz
