// SPDX-License-Identifier: Apache-2.0
#include "serve/workshop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/thread_clock.h"
#include "run/test_source.h"

namespace cutwater::serve {
namespace {

using test::FaultySource;
using test::MemorySource;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What the op below does while it runs.
std::function<void(std::int64_t kind)> op_runs;

// Leaves a quarter of the bytes.
struct Quarter {
  std::int64_t kind = 0;  // for who watches

  static constexpr std::tuple kParams{Param{"kind", &Quarter::kind, "Any number."}};
  void check() const {}
  TensorSpec out_spec(const TensorView& in) const { return {DType::kU8, {in.dim(0) / 4}}; }
  void apply(const TensorView& in, const TensorSpan& out) const {
    if (op_runs) op_runs(kind);
    std::copy_n(in.bytes(), out.spec().bytes(), out.bytes());
  }
};

constexpr OpDef kQuarter = define_op<Quarter>({"quarter", "For tests.", "test", "image"});
constexpr std::array<const OpDef*, 1> kOps = {&kQuarter};
constexpr OpTable kTable{kOps, {}};

// A door that a test opens.
class Door {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++came_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void wait_for_somebody() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return came_ > 0; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int came_ = 0;
  bool open_ = false;
};

// Where a client's answers come.
class Mailbox {
 public:
  Workshop::Client::Deliver deliver() {
    return [this](std::vector<Answer> answers) {
      const std::lock_guard lock(mutex_);
      std::ranges::move(answers, std::back_inserter(answers_));
      changed_.notify_all();
    };
  }
  // The first so many.
  std::vector<Answer> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answers_.size() >= count; });
    return answers_;
  }
  void wait_for_token(std::uint64_t token) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return std::ranges::count(answers_, token, &Answer::token) > 0; });
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return answers_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Answer> answers_;
};

constexpr std::int64_t kSampleBytes = 4000;

class WorkshopTest : public testing::Test {
 protected:
  ~WorkshopTest() override { op_runs = nullptr; }

  static WorkshopOptions options(int makers = 1) {
    WorkshopOptions options;
    options.readers = 1;
    options.makers = makers;
    options.wait_seconds = options.most_wait_seconds = 1e9;  // nothing is late, however slow it is
    return options;
  }

  // Whose second way is known to save three quarters at this cost.
  std::shared_ptr<Stream> stream(double seconds, std::int64_t kind = 0) const {
    const Pipeline pipeline = Pipeline::parse("quarter(" + std::to_string(kind) + ")", kTable);
    auto stream = std::make_shared<Stream>(Stream{source_, pipeline});
    stream->book =
        std::make_shared<WayBook>(pipeline, std::vector<Way>{{0, {}, false}, {1, {}, false}});
    const double stored = kSampleBytes + sizeof(std::int64_t);
    for (int i = 0; i < 2; ++i) stream->book->learn(1, {stored, 1}, {stored / 4, seconds});
    return stream;
  }
  std::shared_ptr<Stream> plain() const {
    const Pipeline nothing(kTable);
    auto stream = std::make_shared<Stream>(Stream{source_, nothing});
    stream->book = std::make_shared<WayBook>(nothing, std::vector<Way>(1));
    return stream;
  }
  static std::vector<Order> orders(const std::shared_ptr<const Stream>& stream, std::uint64_t first,
                                   std::uint64_t count) {
    std::vector<Order> all;
    for (std::uint64_t token = first; token < first + count; ++token)
      all.push_back({token, static_cast<SampleId>(token), 0, 0, stream});
    return all;
  }
  static std::vector<std::uint64_t> tokens(const std::vector<Answer>& answers) {
    std::vector<std::uint64_t> all;
    for (const Answer& answer : answers) all.push_back(answer.token);
    return all;
  }
  // All that this client ordered before is with the makers once this returns: there is one reader.
  void wait_for_reader(Workshop::Client& client, Mailbox& box) const {
    client.order(orders(plain(), kLast, 1));
    box.wait_for_token(kLast);
  }
  // One that comes, is served and goes.
  void serve_another(Workshop& shop) const {
    Mailbox box;
    Workshop::Client client(shop, box.deliver());
    client.order(orders(plain(), kLast, 1));
    box.wait_for(1);
  }

  static constexpr std::uint64_t kLast = 99;
  std::shared_ptr<FaultySource> source_ = std::make_shared<FaultySource>(
      std::make_shared<MemorySource>(100, kSampleBytes), std::set<SampleId>{13});
};

TEST_F(WorkshopTest, AnswersEachOrderOnce) {
  Mailbox box;
  Workshop shop(options());
  Workshop::Client client(shop, box.deliver());
  client.order(orders(stream(1e-6), 0, 40));
  const std::vector<Answer> answers = box.wait_for(40);
  std::vector<std::uint64_t> seen = tokens(answers), all(40);
  std::ranges::sort(seen);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  EXPECT_EQ(seen, all);
  for (const Answer& answer : answers) {
    EXPECT_EQ(answer.form.ok(), answer.token != 13);
    if (!answer.form) continue;
    EXPECT_EQ(answer.way, 1u);
    EXPECT_EQ(answer.stored_bytes, kSampleBytes + 8);
    EXPECT_LT(const_cast<Answer&>(answer).form.value().size(), kSampleBytes / 2);
  }
  const WorkshopStats stats = shop.stats();
  EXPECT_EQ(stats.answers, 40);
  EXPECT_EQ(stats.failures, 1);
  EXPECT_EQ(stats.ran_less, 0);
  EXPECT_EQ(stats.waiting, 0);
}

TEST_F(WorkshopTest, SaysWhatIsWrongWithASample) {
  Mailbox box;
  Workshop shop(options());
  Workshop::Client client(shop, box.deliver());
  client.order(orders(plain(), 13, 1));
  const Answer answer = box.wait_for(1)[0];
  EXPECT_EQ(answer.form.failure().code, Code::kBadSample);
  EXPECT_EQ(answer.form.failure().path, "memory/13");
}

TEST_F(WorkshopTest, WhatIsTooLargeToBeSentIsToldInWords) {
  WorkshopOptions tight = options();
  tight.answer_bytes = kSampleBytes;  // and there is more in an answer
  Mailbox box;
  Workshop shop(tight);
  Workshop::Client client(shop, box.deliver());
  client.order(orders(plain(), 0, 1));
  const Failure failure = box.wait_for(1)[0].form.failure();
  EXPECT_EQ(failure.code, Code::kBadSample);
  EXPECT_TRUE(failure.storage_failed) << "it can be had by another path";
  EXPECT_EQ(failure.path, "memory/0");
  EXPECT_NE(failure.reason.find("more than the 4000"), std::string::npos) << failure.reason;
}

TEST_F(WorkshopTest, WithoutMakersEverythingGoesAsStored) {
  op_runs = [](std::int64_t) { ADD_FAILURE() << "an op runs"; };
  for (const bool always : {false, true}) {
    auto wanted = stream(1e-9);
    wanted->always = always;
    Mailbox box;
    Workshop shop(options(0));
    Workshop::Client client(shop, box.deliver());
    client.order(orders(wanted, 0, 5));
    for (const Answer& answer : box.wait_for(5)) EXPECT_EQ(answer.way, 0u);
  }
}

TEST_F(WorkshopTest, WhatSavesMostForASecondIsMadeFirst) {
  Door door;
  std::vector<std::int64_t> ran;
  op_runs = [&](std::int64_t kind) {
    ran.push_back(kind);  // of the one maker
    if (kind == 0) door.pass();
  };
  Mailbox box;
  WorkshopOptions how = options();
  Workshop shop(how);
  Workshop::Client client(shop, box.deliver());
  auto first = stream(1e-3, 0);
  client.order(orders(first, 0, 1));
  door.wait_for_somebody();
  const double costs[] = {3e-3, 1e-3, 4e-3, 2e-3};
  for (std::uint64_t kind = 1; kind <= 4; ++kind)
    client.order(orders(stream(costs[kind - 1], static_cast<std::int64_t>(kind)), kind, 1));
  wait_for_reader(client, box);
  door.open();
  EXPECT_THAT(tokens(box.wait_for(6)), ElementsAre(kLast, 0, 2, 4, 1, 3));
  EXPECT_THAT(ran, ElementsAre(0, 2, 4, 1, 3));
}

TEST_F(WorkshopTest, WhatHasWaitedTooLongGoesAsStored) {
  Door door;
  op_runs = [&](std::int64_t kind) {
    if (kind == 0) door.pass();
  };
  Mailbox box;
  WorkshopOptions how = options();
  Workshop shop(how);
  Workshop::Client client(shop, box.deliver());
  client.order(orders(stream(1e-3, 0), 0, 1));
  door.wait_for_somebody();
  // All wait for the one maker. The last saves most for a second, and is made in any case.
  std::vector<Order> hurried = orders(stream(2e-3, 1), 1, 2), last = orders(stream(1e-3, 1), 4, 1);
  for (Order& order : hurried) order.within_s = 1e-9;
  for (Order& order : last) order.within_s = 1e-9;
  client.order(hurried);
  client.order(orders(stream(3e-3, 1), 3, 1));
  client.order(last);
  wait_for_reader(client, box);
  door.open();
  for (const Answer& answer : box.wait_for(6)) {
    const bool left_out = answer.token == 1 || answer.token == 2;
    EXPECT_EQ(answer.way, left_out || answer.token == kLast ? 0u : 1u) << answer.token;
    EXPECT_EQ(answer.ran_less, left_out) << answer.token;
  }
  EXPECT_EQ(shop.stats().ran_less, 2);
}

// Nobody waits for a maker that does not come to an end, nor for what is only tried.
TEST_F(WorkshopTest, WhatHasWaitedTooLongGoesAsStoredWhileMakersAreStuck) {
  Door door;
  op_runs = [&](std::int64_t) { door.pass(); };
  Mailbox box;
  WorkshopOptions how = options();
  how.wait_seconds = 1e9;
  how.most_wait_seconds = 1e-9;
  Workshop shop(how);
  Workshop::Client client(shop, box.deliver());
  client.order(orders(stream(1e-3), 0, 1));
  door.wait_for_somebody();
  client.order(orders(stream(1e-3), 1, 1));
  const auto unknown = stream(1e-3);
  unknown->book = std::make_shared<WayBook>(unknown->pipeline, unknown->book->ways());
  client.order(orders(unknown, 2, 1));
  wait_for_reader(client, box);
  EXPECT_EQ(box.size(), 1u);
  shop.look_after();
  EXPECT_EQ(box.size(), 3u);
  door.open();
  for (const Answer& answer : box.wait_for(4)) {
    EXPECT_EQ(answer.way, answer.token == 0 ? 1u : 0u) << answer.token;
    EXPECT_EQ(answer.ran_less, answer.token == 1) << answer.token;
  }
}

// A way that must be, whatever it saves, is a wish like others where somebody else waits.
class AlwaysTest : public WorkshopTest {
 protected:
  static constexpr std::int64_t kBlocks = 0, kMust = 1, kSaves = 2;

  AlwaysTest() {
    how_.floor = 0;
    op_runs = [this](std::int64_t kind) {
      ran_.push_back(kind);  // of the one maker
      if (kind == kBlocks) door_.pass();
    };
  }
  // Which makes four times as much of a sample.
  std::shared_ptr<Stream> must(double seconds = 1e-3, std::int64_t kind = kMust) const {
    auto stream = this->stream(seconds, kind);
    const double stored = kSampleBytes + sizeof(std::int64_t);
    for (int i = 0; i < 500; ++i) stream->book->learn(1, {stored, 1}, {4 * stored, seconds});
    stream->always = true;
    return stream;
  }
  // Waits no longer than until a maker has looked at it.
  static std::vector<Order> hurried(std::vector<Order> orders) {
    for (Order& order : orders) order.within_s = 1e-9;
    return orders;
  }
  void block(Workshop::Client& client) {
    client.order(orders(stream(1e-3, kBlocks), 0, 1));
    door_.wait_for_somebody();
  }

  WorkshopOptions how_ = options();
  Door door_;
  std::vector<std::int64_t> ran_;
};

TEST_F(AlwaysTest, ComesAfterWhatSavesBytesForOthers) {
  Mailbox box, other_box;
  Workshop shop(how_);
  Workshop::Client client(shop, box.deliver()), other(shop, other_box.deliver());
  block(client);
  client.order(orders(must(), 1, 3));
  wait_for_reader(client, box);
  other.order(orders(stream(1, kSaves), 1, 2));
  wait_for_reader(other, other_box);
  door_.open();
  for (const Answer& answer : box.wait_for(5))
    EXPECT_EQ(answer.way, answer.token == kLast ? 0u : 1u);
  EXPECT_THAT(ran_, ElementsAre(kBlocks, kSaves, kSaves, kMust, kMust, kMust));
  EXPECT_EQ(shop.stats().ran_less, 0);
}

TEST_F(AlwaysTest, OfWhatSavesNothingTheCheaperComesFirst) {
  constexpr std::int64_t kDear = 3, kCheap = 4;
  Mailbox box, other_box;
  Workshop shop(how_);
  Workshop::Client client(shop, box.deliver()), other(shop, other_box.deliver());
  block(client);
  client.order(orders(must(1, kDear), 1, 1));
  wait_for_reader(client, box);
  other.order(orders(must(1e-3, kCheap), 1, 1));
  wait_for_reader(other, other_box);
  door_.open();
  box.wait_for(3);
  other_box.wait_for(2);
  EXPECT_THAT(ran_, ElementsAre(kBlocks, kCheap, kDear));
}

TEST_F(AlwaysTest, GoesAsStoredWhenItsTimeIsOverAndOthersWait) {
  Mailbox box, other_box;
  Workshop shop(how_);
  Workshop::Client client(shop, box.deliver()), other(shop, other_box.deliver());
  block(client);
  client.order(hurried(orders(must(), 1, 3)));
  wait_for_reader(client, box);
  other.order(orders(stream(1, kSaves), 1, 2));
  wait_for_reader(other, other_box);
  door_.open();
  for (const Answer& answer : box.wait_for(5)) {
    EXPECT_EQ(answer.way, answer.token == 0 ? 1u : 0u) << answer.token;
    EXPECT_EQ(answer.ran_less, answer.token != 0 && answer.token != kLast) << answer.token;
  }
  other_box.wait_for(3);
  EXPECT_THAT(ran_, ElementsAre(kBlocks, kSaves, kSaves));
}

TEST_F(AlwaysTest, IsDoneHoweverLateWhereNobodyElseWaits) {
  Mailbox box;
  Workshop shop(how_);
  Workshop::Client client(shop, box.deliver());
  block(client);
  client.order(hurried(orders(must(), 1, 5)));
  wait_for_reader(client, box);
  shop.look_after();
  door_.open();
  for (const Answer& answer : box.wait_for(7))
    EXPECT_EQ(answer.way, answer.token == kLast ? 0u : 1u) << answer.token;
  EXPECT_EQ(shop.stats().ran_less, 0);
}

// Somebody whose samples save little gets its share all the same.
TEST_F(WorkshopTest, NobodyFallsBelowTheFloor) {
  Door door;
  op_runs = [&](std::int64_t kind) {
    if (kind != 0) return;
    for (const double start = thread_seconds(); thread_seconds() < start + 0.3;) {
    }
    door.pass();
  };
  Mailbox rich_box, poor_box;
  std::vector<char> order;
  std::mutex order_mutex;
  const auto note = [&](Mailbox& box, char who) {
    return [&, who, deliver = box.deliver()](std::vector<Answer> answers) {
      {
        const std::lock_guard lock(order_mutex);
        order.insert(order.end(), answers.size(), who);
      }
      deliver(std::move(answers));
    };
  };
  WorkshopOptions how = options();
  how.floor = 0.05;
  Workshop shop(how);
  Workshop::Client rich(shop, note(rich_box, 'r')), poor(shop, note(poor_box, 'p'));
  rich.order(orders(stream(1e-3, 0), 0, 1));
  door.wait_for_somebody();
  rich.order(orders(stream(1e-6, 1), 1, 3));
  poor.order(orders(stream(1, 2), 1, 1));
  wait_for_reader(rich, rich_box);
  wait_for_reader(poor, poor_box);
  door.open();
  rich_box.wait_for(5);
  poor_box.wait_for(2);
  EXPECT_EQ(std::string(order.begin(), order.end()), "rprprrr") << "the first two were not made";
  EXPECT_GT(rich.maker_seconds(), 0.25);
  EXPECT_LT(poor.maker_seconds(), 0.1);
}

// A machine's clients divide its floor: who opens many streams gets no more than who opens one.
TEST_F(WorkshopTest, AMachineHasOneFloorHoweverManyItsClientsAre) {
  constexpr std::int64_t kRich = 0, kBlocks = 1, kRichNext = 2, kGreedyNext = 3;
  for (const int idle : {0, 20}) {
    Door door;
    std::vector<std::int64_t> ran;
    op_runs = [&](std::int64_t kind) {
      ran.push_back(kind);  // of the one maker
      const double seconds = kind == kRich ? 0.3 : kind == kBlocks ? 0.02 : 0;
      for (const double start = thread_seconds(); thread_seconds() < start + seconds;) {
      }
      if (kind == kBlocks) door.pass();
    };
    Mailbox rich_box, greedy_box, idle_box;
    WorkshopOptions how = options();
    how.floor = 1;
    Workshop shop(how);
    Workshop::Client rich(shop, rich_box.deliver(), "a");
    Workshop::Client greedy(shop, greedy_box.deliver(), "b");
    std::list<Workshop::Client> more;
    for (int i = 0; i < idle; ++i) more.emplace_back(shop, idle_box.deliver(), "b");
    rich.order(orders(stream(1e-3, kRich), 0, 1));
    rich_box.wait_for(1);
    greedy.order(orders(stream(1e-3, kBlocks), 0, 1));
    door.wait_for_somebody();
    rich.order(orders(stream(1e-6, kRichNext), 1, 1));
    greedy.order(orders(stream(1, kGreedyNext), 1, 1));
    wait_for_reader(rich, rich_box);
    wait_for_reader(greedy, greedy_box);
    door.open();
    rich_box.wait_for(3);
    greedy_box.wait_for(3);
    if (idle == 0)
      EXPECT_THAT(ran, ElementsAre(kRich, kBlocks, kGreedyNext, kRichNext));
    else
      EXPECT_THAT(ran, ElementsAre(kRich, kBlocks, kRichNext, kGreedyNext));
  }
}

// With quick reads one reader is awake: what it has ready, and what waits behind a read that
// hangs, is not lost with it.
TEST_F(WorkshopTest, AReadThatHangsKeepsNothingBack) {
  WorkshopOptions how = options();
  how.readers = 2;
  Mailbox box;
  Workshop shop(how);
  Workshop::Client client(shop, box.deliver());
  constexpr std::size_t kQuick = 160;
  for (std::size_t had = 0; had < kQuick; had += 80) {  // reads are seen to be quick
    client.order(orders(plain(), 20, 80));
    box.wait_for(had + 80);
  }
  FaultySource::Hold hold(*source_, {35});
  client.order(orders(plain(), 30, 20));
  while (box.size() < kQuick + 19) {
    shop.look_after();
    std::this_thread::yield();
  }
  EXPECT_EQ(box.size(), kQuick + 19) << "all but the one that hangs";
  hold.release();
  box.wait_for(kQuick + 20);
}

TEST_F(WorkshopTest, AClientThatTakesNothingIsReadNoFurther) {
  WorkshopOptions how = options();
  how.client_memory = 1;
  Mailbox box;
  Workshop shop(how);
  Workshop::Client client(shop, box.deliver());
  client.order(orders(plain(), 0, 10));
  for (std::size_t had = 1; had <= 3; ++had) {
    const std::size_t bytes = box.wait_for(had)[had - 1].form.value().size();
    EXPECT_EQ(shop.stats().bytes_held, bytes);
    serve_another(shop);
    serve_another(shop);
    EXPECT_EQ(box.size(), had) << "one sample at a time, whatever the limit";
    client.sent(1, bytes);
  }
  client.leave();
  EXPECT_EQ(shop.stats().bytes_held, 0u);
}

// What waits for a maker is held as well, and when less is made of it the next one is read.
TEST_F(WorkshopTest, WhatWaitsForAMakerCountsAsHeld) {
  constexpr std::size_t kStored = kSampleBytes + sizeof(std::int64_t);
  Door door;
  op_runs = [&](std::int64_t) { door.pass(); };
  WorkshopOptions how = options();
  how.client_memory = 2 * kStored;
  Mailbox box;
  Workshop shop(how);
  Workshop::Client client(shop, box.deliver());
  client.order(orders(stream(1e-3), 0, 5));
  door.wait_for_somebody();
  source_->wait_for_reads(2);
  serve_another(shop);
  serve_another(shop);
  EXPECT_THAT(source_->reads(), ElementsAre(0, 1, kLast, kLast));
  EXPECT_EQ(shop.stats().bytes_held, 2 * kStored);
  door.open();
  std::size_t bytes = 0;
  const int all = 5;
  for (const Answer& answer : box.wait_for(all))
    bytes += const_cast<Answer&>(answer).form.value().size();
  EXPECT_EQ(shop.stats().bytes_held, bytes);
  client.sent(all, bytes);
  EXPECT_EQ(shop.stats().bytes_held, 0u);
}

// Whatever the limits, each client goes on by one sample at a time.
TEST_F(WorkshopTest, WhatWaitsForAMakerLocksNobodyOut) {
  WorkshopOptions how = options();
  how.memory = how.client_memory = 1;
  Mailbox box, other_box;
  Workshop shop(how);
  Workshop::Client client(shop, box.deliver()), other(shop, other_box.deliver());
  const auto always = stream(1e-3);
  always->always = true;
  client.order(orders(stream(1e-3), 0, 10));
  other.order(orders(always, 0, 10));
  for (std::size_t had = 1; had <= 10; ++had) {
    client.sent(1, box.wait_for(had)[had - 1].form.value().size());
    other.sent(1, other_box.wait_for(had)[had - 1].form.value().size());
  }
  EXPECT_EQ(shop.stats().bytes_held, 0u);
}

TEST_F(WorkshopTest, AllClientsTogetherStayWithinTheMemory) {
  WorkshopOptions how = options();
  how.memory = 1;
  Mailbox box, other_box;
  Workshop shop(how);
  Workshop::Client client(shop, box.deliver()), other(shop, other_box.deliver());
  client.order(orders(plain(), 0, 10));
  box.wait_for(1);
  other.order(orders(plain(), 0, 10));
  other_box.wait_for(1);
  serve_another(shop);
  EXPECT_EQ(box.size(), 1u) << "each may have one";
  EXPECT_EQ(other_box.size(), 1u);
}

TEST_F(WorkshopTest, WhoLeavesGetsNothingAnyMore) {
  Mailbox box;
  Workshop shop(options());
  auto client = std::make_unique<Workshop::Client>(shop, box.deliver());
  FaultySource::Hold hold(*source_, {0});
  client->order(orders(stream(1e-6), 0, 10));
  source_->wait_for_reads(1);
  client.reset();  // while the first is being read
  EXPECT_EQ(shop.stats().clients, 0);
  EXPECT_EQ(shop.stats().waiting, 0);
  hold.release();
  serve_another(shop);
  EXPECT_EQ(box.size(), 0u);
  EXPECT_EQ(shop.stats().bytes_held, 0u);
  EXPECT_THAT(source_->reads(), ElementsAre(0, 99)) << "the rest was not begun";
}

TEST_F(WorkshopTest, WhatWasReadForWhoLeavesIsNotMade) {
  Door door;
  std::vector<std::int64_t> ran;
  op_runs = [&](std::int64_t kind) {
    ran.push_back(kind);  // of the one maker
    if (kind == 0) door.pass();
  };
  Mailbox box, other_box;
  WorkshopOptions how = options();
  Workshop shop(how);
  Workshop::Client other(shop, other_box.deliver());
  auto client = std::make_unique<Workshop::Client>(shop, box.deliver());
  client->order(orders(stream(1e-3, 0), 0, 1));
  door.wait_for_somebody();
  client->order(orders(stream(1e-3, 1), 1, 5));
  wait_for_reader(*client, box);
  client.reset();
  other.order(orders(stream(1, 2), 1, 1));
  wait_for_reader(other, other_box);
  door.open();
  other_box.wait_for(2);
  EXPECT_THAT(ran, ElementsAre(0, 2));
  EXPECT_EQ(box.size(), 1u) << "only what went as stored, before";
}

TEST_F(WorkshopTest, WhatIsBeingMadeForWhoLeavesIsGivenUp) {
  Door door;
  std::vector<std::int64_t> ran;
  op_runs = [&](std::int64_t kind) {
    ran.push_back(kind);  // of the one maker
    if (kind == 0) door.pass();
  };
  const auto two_ops =
      std::make_shared<Stream>(Stream{source_, Pipeline::parse("quarter(0) | quarter(1)", kTable)});
  two_ops->book = std::make_shared<WayBook>(two_ops->pipeline,
                                            std::vector<Way>{{0, {}, false}, {2, {}, false}});
  two_ops->always = true;
  Mailbox box, other_box;
  Workshop shop(options());
  auto client = std::make_unique<Workshop::Client>(shop, box.deliver());
  client->order(orders(two_ops, 0, 1));
  door.wait_for_somebody();
  client.reset();
  door.open();
  Workshop::Client other(shop, other_box.deliver());
  other.order(orders(stream(1e-3, 2), 1, 1));
  other_box.wait_for(1);
  EXPECT_THAT(ran, ElementsAre(0, 2));
}

TEST_F(WorkshopTest, EndsWithOrdersWaiting) {
  Mailbox box;
  Door door;
  op_runs = [&](std::int64_t) { door.pass(); };
  {
    Workshop shop(options());
    Workshop::Client client(shop, box.deliver());
    client.order(orders(stream(1e-6), 0, 20));
    door.wait_for_somebody();
    door.open();
  }
  EXPECT_LE(box.size(), 20u);
}

// What takes more memory than one sample may is sent as it is stored.
TEST_F(WorkshopTest, ABombIsNotSetOff) {
  op_runs = [](std::int64_t) { ADD_FAILURE() << "it was set off"; };
  auto all_off = stream(1e-9);
  all_off->always = true;
  WorkshopOptions how = options();
  how.maker.sample_bytes = kSampleBytes / 8;
  Mailbox box;
  Workshop shop(how);
  Workshop::Client client(shop, box.deliver());
  client.order(orders(all_off, 0, 3));
  for (const Answer& answer : box.wait_for(3)) {
    EXPECT_EQ(answer.way, 0u);
    EXPECT_TRUE(answer.form.ok());
  }
}

}  // namespace
}  // namespace cutwater::serve
