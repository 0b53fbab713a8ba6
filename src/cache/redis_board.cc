// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_board.h"

#include <algorithm>
#include <utility>

#include "cache/redis_value.h"

namespace cutwater::redis {
namespace {

using namespace std::chrono_literals;

constexpr auto kPause = 50ms, kBetweenNotes = 1000ms;
constexpr auto kDeadAfter = 5s;  // without a new pulse
constexpr auto kForgetAfter = 30s;
constexpr const char* kStreamLength = "1048576";
constexpr const char* kJobsLife = "60000";  // ms after the last note of any job
constexpr std::size_t kMostUntold = std::size_t{1} << 16;
constexpr std::size_t kTellAtOnce = 512;
constexpr std::size_t kReadAtOnce = 4096;
constexpr int kReadsAtOnce = 8;  // then others have their turn

struct Batch {
  bool goes_on = false;  // in the stream that was read before
  std::string after;
  std::vector<Arrival> arrivals;
  std::size_t entries = 0;
};

// An answer to XRANGE from the last entry on that was read before: [[id, [field, value]], …]. Where
// it has not got that, the stream is another one, or none, or has moved on by a million entries.
Batch batch_in(const Reply& reply, const std::string& after) {
  Batch batch{after.empty(), after, {}, 0};
  for (const Reply& entry : reply.parts) {
    if (!entry.is_list(2)) continue;
    ++batch.entries;
    batch.after = entry.parts[0].text;
    if (batch.after == after) {
      batch.goes_on = true;
      continue;
    }
    if (!entry.parts[1].is_list(2)) continue;
    if (const auto arrival = decode_arrival(entry.parts[1].parts[1].text))
      batch.arrivals.push_back(*arrival);
  }
  return batch;
}

}  // namespace

std::string Board::name(std::uint64_t data, const char* what) const {
  return client_.url().prefix + ":{" + hex(data) + "}:" + what;
}

Client::Outcome Board::run(std::uint64_t data, const Client::Work& work) const {
  return client_.run(slot_of(hex(data)), work, Client::For::kNobody);
}

bool Board::announce(const CacheKey& key) {
  MutexLock lock(mutex_);
  if (untold_count_ >= kMostUntold) return false;
  untold_[key.data].push_back(encode(Arrival{key.form, key.draw, key.sample}));
  return ++untold_count_ == 1;
}

void Board::add(std::shared_ptr<Seat> seat) {
  MutexLock lock(mutex_);
  seats_.push_back(std::move(seat));
}

void Board::remove(const std::shared_ptr<Seat>& seat) {
  MutexLock lock(mutex_);
  std::erase(seats_, seat);
  leaving_.push_back(seat);
}

std::vector<Board::List> Board::lists() const {
  MutexLock lock(mutex_);
  std::vector<List> lists;
  for (const std::uint64_t data : data_)
    for (const char* const what : {"arrivals", "jobs"})
      lists.push_back({slot_of(hex(data)), name(data, what)});
  return lists;
}

std::optional<Clock::time_point> Board::exchange(bool at_once) {
  if (!at_once && Clock::now() < next_) return next_;
  std::map<std::uint64_t, std::vector<std::string>> untold;
  std::vector<std::shared_ptr<Seat>> seats, leaving;
  {
    MutexLock lock(mutex_);
    untold.swap(untold_);
    untold_count_ = 0;
    leaving.swap(leaving_);
    seats = seats_;
    for (const auto& told : untold) data_.insert(told.first);
    for (const auto& seat : seats) data_.insert(seat->data());
  }
  for (const auto& told : untold) tell_arrivals(told.first, told.second);
  const bool is_time = Clock::now() >= next_notes_;
  if (is_time) next_notes_ = Clock::now() + kBetweenNotes;
  for (const std::shared_ptr<Seat>& seat : seats) {
    read_arrivals(*seat);
    if (is_time || seat->has_news()) exchange_notes(*seat);
  }
  for (const std::shared_ptr<Seat>& seat : leaving)
    (void)run(seat->data(), [&](Connection& link, Deadline deadline) {
      return link.ask({"HDEL", name(seat->data(), "jobs"), seat->id()}, deadline).text;
    });
  next_ = Clock::now() + kPause;
  if (seats.empty() && untold.empty()) return std::nullopt;
  return next_;
}

// What cannot be told is lost, as the values themselves are where the server is.
void Board::tell_arrivals(std::uint64_t data, const std::vector<std::string>& arrivals) const {
  const std::string stream = name(data, "arrivals");
  const std::string life = std::to_string(client_.url().ttl.count());
  for (std::size_t first = 0; first < arrivals.size(); first += kTellAtOnce)
    (void)run(data, [&](Connection& link, Deadline deadline) {
      Commands commands = link.commands();
      const std::size_t end = std::min(first + kTellAtOnce, arrivals.size());
      for (std::size_t i = first; i < end; ++i)
        commands.add({"XADD", stream, "MAXLEN", "~", kStreamLength, "*", "v", arrivals[i]});
      commands.add({"PEXPIRE", stream, life});
      const std::vector<Reply> replies = link.exchange(commands, deadline);
      return replies[0].is_error() ? replies[0].text : std::string();
    });
}

void Board::read_arrivals(Seat& seat) const {
  const std::string stream = name(seat.data(), "arrivals");
  for (int i = 0; i < kReadsAtOnce; ++i) {
    const std::string after = seat.after();
    Batch batch;
    Reply size;
    const Client::Outcome outcome = run(seat.data(), [&](Connection& link, Deadline deadline) {
      Commands commands = link.commands();
      commands.add({"XRANGE", stream, after.empty() ? "-" : after, "+", "COUNT",
                    std::to_string(kReadAtOnce)});
      commands.add({"DBSIZE"});
      std::vector<Reply> replies = link.exchange(commands, deadline);
      batch = batch_in(replies[0], after);
      size = std::move(replies[1]);
      return replies[0].text;
    });
    if (!outcome.is_done()) return;
    if (!batch.goes_on) {
      seat.forget();
      continue;
    }
    seat.add(batch.after, batch.arrivals, most_values(*outcome.node, size));
    if (batch.entries < kReadAtOnce) return;
  }
}

// The keys of all nodes, whosever they are: one has just said how many it has, and those of the
// others were counted a moment ago.
std::size_t Board::most_values(const Node& asked, const Reply& size) const {
  if (size.type != Reply::Type::kNumber) return SIZE_MAX;  // who may not ask knows no limit
  const auto count = [](std::int64_t number) {
    return static_cast<std::size_t>(std::max<std::int64_t>(number, 0));
  };
  std::size_t keys = count(size.number);
  for (const std::shared_ptr<Node>& node : client_.nodes())
    if (node.get() != &asked) keys += count(node->census().keys);
  return keys;
}

void Board::exchange_notes(Seat& seat) {
  const std::string jobs = name(seat.data(), "jobs");
  const std::string note = encode(seat.note());
  std::vector<Reply> replies;
  const Client::Outcome outcome = run(seat.data(), [&](Connection& link, Deadline deadline) {
    Commands commands = link.commands();
    commands.add({"HSET", jobs, seat.id(), note});
    commands.add({"PEXPIRE", jobs, kJobsLife});
    commands.add({"HGETALL", jobs});
    replies = link.exchange(commands, deadline);
    // Where there is no room for the note, others can be read all the same.
    return replies[0].text.starts_with("OOM") ? std::string() : replies[0].text;
  });
  if (!outcome.is_done()) return seat.set_others({});
  const std::vector<std::string> gone = read_notes(seat, replies[2]);
  if (!gone.empty())
    (void)run(seat.data(), [&](Connection& link, Deadline deadline) {
      Commands commands = link.commands();
      for (const std::string& id : gone) commands.add({"HDEL", jobs, id});
      return link.exchange(commands, deadline).front().text;
    });
}

std::vector<std::string> Board::read_notes(Seat& seat, const Reply& reply) {
  const auto now = Clock::now();
  std::vector<std::string> gone;
  std::vector<Seat::Other> others;
  for (std::size_t i = 0; i + 1 < reply.parts.size(); i += 2) {
    const std::string& id = reply.parts[i].text;
    if (id == seat.id()) continue;
    const std::optional<JobNote> note = decode_note(reply.parts[i + 1].text);
    if (!note) continue;
    Life& life = lives_[id];
    if (life.changed == Clock::time_point{} || life.pulse != note->pulse) life = {note->pulse, now};
    if (now - life.changed > kForgetAfter) {
      gone.push_back(id);
      continue;
    }
    if (now - life.changed > kDeadAfter) continue;
    others.push_back({*note, life.changed - std::chrono::milliseconds(note->age_ms)});
  }
  // Lives of jobs that are no longer in the hash, of this data set or another.
  std::erase_if(lives_,
                [&](const auto& life) { return now - life.second.changed > 2 * kForgetAfter; });
  seat.set_others(std::move(others));
  return gone;
}

}  // namespace cutwater::redis
