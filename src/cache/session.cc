// SPDX-License-Identifier: Apache-2.0
#include "cache/session.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "cutwater/error.h"

namespace cutwater::cache {
namespace {

// Looked at with every reservation for values that nobody can use any more.
constexpr std::size_t kSweep = 16;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Code::kInvalidArgument, "it said nonsense: " + why);
}

void require_flag(std::uint32_t flag) {
  if (flag > 1) refuse("a flag of " + std::to_string(flag));
}

// Root and the daemon's own user take anybody's values away, others their own.
Keeper::Whose may_take(const Peer& peer) {
  if (peer.uid == 0 || peer.uid == geteuid()) return std::nullopt;
  return peer.uid;
}

std::pair<std::uint64_t, std::uint64_t> place_of(const wire::Row& row) { return {row.a, row.b}; }

std::vector<wire::Row> form_rows(const Keeper& keeper) {
  const Segment& segment = *keeper.segment();
  const std::vector<Keeper::Job> jobs = keeper.jobs();
  const auto can_use = [&](const Keeper::Job& job, std::uint64_t data, std::uint64_t form) {
    const SeatRecord& seat = segment.seat(job.seat);
    const std::uint64_t count = std::min<std::uint64_t>(seat.forms_count, kMostForms);
    return job.data == data && std::find(seat.forms.begin(), seat.forms.begin() + count, form) !=
                                   seat.forms.begin() + count;
  };
  std::vector<wire::Row> rows;
  for (const Keeper::FormUse& use : keeper.by_form()) {
    wire::Row row;
    row.a = use.data;
    row.b = use.form;
    row.entries = use.entries;
    row.bytes = use.bytes;
    for (const Keeper::Job& job : jobs) row.seats += can_use(job, use.data, use.form) ? 1U : 0U;
    rows.push_back(row);
  }
  return rows;
}

std::vector<wire::Row> user_rows(const Keeper& keeper) {
  std::vector<wire::Row> rows;
  for (const Keeper::OwnerUse& use : keeper.by_owner()) {
    wire::Row row;
    row.a = use.owner;
    row.entries = use.entries;
    row.bytes = use.bytes;
    row.limit = use.quota.value_or(0);
    rows.push_back(row);
  }
  return rows;
}

std::vector<wire::Row> job_rows(const Desk& desk) {
  std::vector<wire::Row> rows;
  for (const Keeper::Job& job : desk.keeper.jobs()) {
    wire::Row row;
    row.a = static_cast<std::uint64_t>(job.seat);
    row.b = job.data;
    row.entries = job.had;
    row.bytes = static_cast<std::uint64_t>(job.samples);
    const auto client = desk.clients.find(job.client);
    if (client != desk.clients.end()) row.limit = static_cast<std::uint64_t>(client->second.pid);
    row.seats =
        std::min<std::uint64_t>(desk.keeper.segment()->seat(job.seat).forms_count, kMostForms);
    row.name = wire::name_field(job.name);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

Session::~Session() {
  if (client_ < 0) return;
  desk_->keeper.close_client(client_);
  desk_->clients.erase(client_);
}

template <class Message>
Message Session::parsed(std::span<const std::uint8_t> packet) {
  const auto message = wire::read<Message>(packet);
  if (!message)
    refuse("kind " + std::to_string(static_cast<std::uint32_t>(Message{}.head.kind)) + " in " +
           std::to_string(packet.size()) + " bytes");
  return *message;
}

template <class Message>
Session::Reply Session::said(const Message& message) {
  const auto bytes = wire::bytes_of(message);
  reply_.assign(bytes.begin(), bytes.end());
  return {reply_, -1, false};
}

int Session::client() const {
  if (client_ < 0) refuse("it wants what only those can have who have the memory");
  return client_;
}

Session::Reply Session::answer(std::span<const std::uint8_t> packet) {
  using wire::Kind;
  const auto head = wire::head_of(packet);
  if (!head) refuse("a packet of " + std::to_string(packet.size()) + " bytes");
  if (head->kind == Kind::kHello && head->version != wire::kVersion) {
    wire::HelloReply reply;
    reply.status = wire::Status::kOtherVersion;
    Reply answer = said(reply);
    answer.last = true;
    return answer;
  }
  if (head->kind == Kind::kHello) return greet(parsed<wire::Hello>(packet));
  if (!greeted_) refuse("no hello");
  Keeper& keeper = desk_->keeper;
  switch (head->kind) {
    case Kind::kReserve: return reserve(parsed<wire::Reserve>(packet));
    case Kind::kCommit:
      if (!keeper.commit(client(), parsed<wire::Commit>(packet).token))
        refuse("it has not reserved what it commits");
      return said(wire::CommitReply{});
    case Kind::kAbort:
      if (!keeper.abort(client(), parsed<wire::Abort>(packet).token))
        refuse("it has not reserved what it gives up");
      return said(wire::AbortReply{});
    case Kind::kDrop:
      (void)client();
      keeper.drop(parsed<wire::Drop>(packet).key, may_take(peer_));
      return said(wire::DropReply{});
    case Kind::kJoin: return join(parsed<wire::Join>(packet));
    case Kind::kLeave: {
      const std::uint32_t seat = parsed<wire::Leave>(packet).seat;
      if (seat >= kMostSeats || !keeper.leave(client(), static_cast<int>(seat)))
        refuse("it does not have the seat that it leaves");
      return said(wire::LeaveReply{});
    }
    case Kind::kStat: (void)parsed<wire::Stat>(packet); return stat();
    case Kind::kList: return list(parsed<wire::List>(packet));
    case Kind::kClear: return clear(parsed<wire::Clear>(packet));
    case Kind::kHello: break;
  }
  refuse("kind " + std::to_string(static_cast<std::uint32_t>(head->kind)));
}

Session::Reply Session::greet(const wire::Hello& hello) {
  require_flag(hello.wants_memory);
  if (greeted_) refuse("a second hello");
  greeted_ = true;
  const Segment& segment = *desk_->keeper.segment();
  wire::HelloReply reply;
  reply.segment_bytes = segment.shape().end();
  reply.limit = segment.shape().limit;
  if (hello.wants_memory == 0) return said(reply);
  client_ = desk_->keeper.open_client(peer_.uid);
  if (client_ < 0) {
    reply.status = wire::Status::kRefused;
    Reply answer = said(reply);
    answer.last = true;
    return answer;
  }
  desk_->clients.emplace(client_, peer_);
  reply.client = static_cast<std::uint32_t>(client_);
  Reply answer = said(reply);
  answer.pass = segment.fd();
  return answer;
}

Session::Reply Session::reserve(const wire::Reserve& question) {
  if (!std::isfinite(question.seconds) || question.seconds < 0)
    refuse("a value that saves " + std::to_string(question.seconds) + " s");
  desk_->keeper.sweep(kSweep);
  const auto place = desk_->keeper.reserve(client(), question.key, question.size, question.seconds);
  wire::ReserveReply reply;
  reply.status = place ? wire::Status::kDone : wire::Status::kRefused;
  if (place) {
    reply.token = place->token;
    reply.offset = place->offset;
  }
  return said(reply);
}

Session::Reply Session::join(const wire::Join& question) {
  if (question.forms_count > kMostForms || question.samples < 0)
    refuse("a job of " + std::to_string(question.samples) + " samples with " +
           std::to_string(question.forms_count) + " forms");
  JobOffer offer;
  offer.name = wire::name_of(question.name);
  offer.data = question.data;
  offer.samples = question.samples;
  offer.forms.assign(question.forms.begin(), question.forms.begin() + question.forms_count);
  const int seat = desk_->keeper.join(client(), offer);
  wire::JoinReply reply;
  reply.status = seat >= 0 ? wire::Status::kDone : wire::Status::kRefused;
  reply.seat = seat >= 0 ? static_cast<std::uint32_t>(seat) : 0;
  return said(reply);
}

Session::Reply Session::stat() {
  const CacheStats stats = desk_->keeper.stats();
  wire::StatReply reply;
  reply.bytes = stats.bytes;
  reply.limit = stats.limit;
  reply.entries = stats.entries;
  reply.hits = stats.hits;
  reply.misses = stats.misses;
  reply.refused = stats.refused;
  reply.evicted = stats.evicted;
  reply.clients = static_cast<std::uint32_t>(desk_->clients.size());
  reply.pid = static_cast<std::uint32_t>(getpid());
  return said(reply);
}

std::vector<wire::Row> Session::rows(wire::Listed what) const {
  switch (what) {
    case wire::Listed::kForms: return form_rows(desk_->keeper);
    case wire::Listed::kUsers: return user_rows(desk_->keeper);
    case wire::Listed::kJobs: return job_rows(*desk_);
  }
  refuse("a list of kind " + std::to_string(static_cast<std::uint32_t>(what)));
}

Session::Reply Session::list(const wire::List& question) {
  require_flag(question.from_start);
  std::vector<wire::Row> all = rows(question.what);
  std::ranges::sort(all, {}, place_of);
  auto row = all.begin();
  if (question.from_start == 0)
    row = std::ranges::upper_bound(all, std::pair{question.a, question.b}, {}, place_of);
  wire::ListReply reply;
  for (; row != all.end() && reply.count < wire::kMostRows; ++row) reply.rows[reply.count++] = *row;
  reply.more = row != all.end() ? 1 : 0;
  return said(reply);
}

Session::Reply Session::clear(const wire::Clear& question) {
  require_flag(question.by_data);
  require_flag(question.by_form);
  Keeper::Filter filter;
  if (question.by_data != 0) filter.data = question.data;
  if (question.by_form != 0) filter.form = question.form;
  const Keeper::Cleared cleared = desk_->keeper.clear(filter, may_take(peer_));
  wire::ClearReply reply;
  reply.entries = cleared.entries;
  reply.bytes = cleared.bytes;
  return said(reply);
}

}  // namespace cutwater::cache
