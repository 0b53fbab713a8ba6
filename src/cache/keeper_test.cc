// SPDX-License-Identifier: Apache-2.0
// The writer and its readers: what the back ends do not show.
#include "cache/keeper.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <utility>

#include "cache/index.h"
#include "cache/reader.h"
#include "cache/seats.h"
#include "cutwater/error.h"

namespace cutwater::cache {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

CacheKey key(SampleId sample, std::uint64_t draw = 0) { return {1, 1, sample, draw}; }

// A keeper, and a client that puts and reads as a back end would.
struct Bench {
  explicit Bench(std::shared_ptr<Segment> segment) : keeper(std::move(segment)) {
    client = keeper.open_client();
    reader = Reader::make(keeper.segment(), client);
  }

  bool put(const CacheKey& name, std::uint64_t size, double seconds = 1) {
    const auto place = keeper.reserve(client, name, size, seconds);
    if (!place) return false;
    const auto bytes = keeper.segment()->bytes(place->offset, size);
    std::memset(bytes.data(), static_cast<int>(name.sample % 251), bytes.size());
    return keeper.commit(client, place->token);
  }
  static bool sound(const CacheValue& value, SampleId sample) {
    return value && std::ranges::all_of(value.bytes(), [sample](std::uint8_t byte) {
             return byte == sample % 251;
           });
  }

  Keeper keeper;
  int client;
  std::shared_ptr<Reader> reader;
};

TEST(Shape, TakesLittleOfTheLimit) {
  for (const int clients : {1, kMostClients})
    for (std::uint64_t limit = kMiB; limit <= std::uint64_t{1} << 40; limit = limit * 5 / 3) {
      const Shape shape = Shape::of(limit, clients);
      const std::uint64_t values = shape.end() - shape.arena_at();
      EXPECT_GE(static_cast<double>(values), 0.93 * static_cast<double>(limit)) << limit;
      if (limit >= 64 * kMiB) {  // what plans go by
        EXPECT_NEAR(static_cast<double>(values) / static_cast<double>(limit), 1 - kCacheBooks, 5e-3)
            << limit;
      }
      EXPECT_LE(shape.end() + shape.entries() * Shape::kWriterBytes, limit);
      EXPECT_EQ(shape, Shape::of(limit, static_cast<int>(shape.clients)));
    }
  const Shape large = Shape::of(std::uint64_t{8} << 30, kMostClients);
  EXPECT_EQ(large.clients, 64u);
  EXPECT_EQ(large.pins, 1024u);
  EXPECT_EQ(large.seats, 64u);
  EXPECT_EQ(large.making, 4096u);
}

TEST(Index, SpotsAreTwoAndSpreadEvenly) {
  constexpr std::uint64_t kSets = 64;
  std::vector<int> counts(kSets);
  for (SampleId sample = 0; sample < 64'000; ++sample) {
    const Spots spots = spots_of(key(sample), kSets);
    EXPECT_NE(spots.sets[0], spots.sets[1]);
    EXPECT_NE(spots.tag, 0u);
    for (const std::uint64_t set : spots.sets) ++counts.at(set);
  }
  EXPECT_GT(*std::ranges::min_element(counts), 1800);  // of 2000: more than 4 sigma
  EXPECT_LT(*std::ranges::max_element(counts), 2200);
  EXPECT_EQ(spots_of(key(1), 1).sets, (std::array<std::uint64_t, 2>{0, 0}));
}

TEST(Keeper, ReservationsAreSeenWhenCommittedAndByTheirOwnerAlone) {
  Bench bench(Segment::anonymous(kMiB));
  Keeper& keeper = bench.keeper;
  const auto place = keeper.reserve(bench.client, key(1), 1000, 1);
  ASSERT_TRUE(place);
  EXPECT_FALSE(bench.reader->get(key(1)));
  EXPECT_FALSE(keeper.reserve(bench.client, key(1), 1000, 1)) << "it is being filled";
  EXPECT_FALSE(keeper.commit(bench.client + 1, place->token));
  EXPECT_FALSE(keeper.abort(bench.client, place->token + 1));
  EXPECT_FALSE(keeper.drop(key(1)));
  EXPECT_TRUE(keeper.abort(bench.client, place->token));
  EXPECT_FALSE(keeper.commit(bench.client, place->token));
  EXPECT_TRUE(bench.put(key(1), 1000));
  EXPECT_TRUE(Bench::sound(bench.reader->get(key(1)), 1));
  EXPECT_FALSE(keeper.reserve(5, key(2), 1000, 1)) << "no such client";
  EXPECT_FALSE(keeper.reserve(-1, key(2), 1000, 1));
}

// A large value is worth more than a small one, but not by the byte: what it leaves is filled by
// others.
TEST(Keeper, LargeValuesMakeWayForSmallOnesOfMoreWorthByTheByte) {
  Bench bench(Segment::anonymous(4 * kMiB));
  constexpr std::uint64_t kLarge = kMiB / 2, kSmall = kLarge / 8;
  SampleId large = 0;
  while (bench.put(key(large), kLarge, 1)) ++large;
  ASSERT_GE(large, 6);
  SampleId small = 0;
  while (bench.put(key(500 + small), kSmall, 0.125)) ++small;
  EXPECT_LT(small, 8) << "by the byte they are worth no more, and get what is left";
  small = 0;
  while (bench.put(key(1000 + small), kSmall, 0.25)) ++small;
  for (SampleId sample = 0; sample < large; ++sample)
    EXPECT_FALSE(bench.reader->has(key(sample))) << sample;
  EXPECT_GE(small, 8 * large);
  // The other way round, those that have to make way must be worth less.
  EXPECT_FALSE(bench.put(key(0), kLarge, 1.9));
  EXPECT_TRUE(bench.put(key(0), kLarge, 2.6));
}

// Of what lies side by side, one may be worth more by the byte: what all of them are worth counts.
TEST(Keeper, NeighborsMakeWayThatTogetherAreWorthLess) {
  Bench bench(Segment::anonymous(4 * kMiB));
  constexpr std::uint64_t kSmall = kMiB / 16;
  SampleId small = 0;
  while (bench.put(key(small), kSmall, small % 2 == 0 ? 0.05 : 0.3)) ++small;
  ASSERT_GE(small, 32);
  EXPECT_FALSE(bench.put(key(1000), 2 * kSmall, 0.4)) << "not clearly more than both";
  EXPECT_TRUE(bench.put(key(1000), 2 * kSmall, 0.5));
}

// Behind one that is worth more by the byte, others do not follow because they are worth less.
TEST(Keeper, NeighborsStayThatTogetherAreWorthMore) {
  Bench bench(Segment::anonymous(4 * kMiB));
  constexpr std::uint64_t kUnit = kMiB / 64;
  SampleId sample = 0;
  const auto fill = [&](std::initializer_list<std::pair<std::uint64_t, double>> values) {
    std::uint64_t units = 0;
    for (const auto& [its, seconds] : values) units += its;
    while (bench.reader->has_room(key(2000), units * kUnit, 0))
      for (const auto& [its, seconds] : values)
        ASSERT_TRUE(bench.put(key(sample++), its * kUnit, seconds));
  };
  fill({{2, 0.1}, {1, 0.6}, {7, 0.693}, {4, 9}});
  ASSERT_GE(sample, 12);
  fill({{1, 9}});
  EXPECT_FALSE(bench.put(key(1000), 10 * kUnit, 1)) << "1.39 would go for it";
}

// Values so small that the index is full long before the arena.
TEST(Keeper, AFullIndexRefusesOrMakesWay) {
  Bench bench(Segment::anonymous(kMiB));
  const auto ways = static_cast<SampleId>(bench.keeper.segment()->shape().entries());
  SampleId kept = 0;
  for (SampleId sample = 0; sample < 2 * ways; ++sample) kept += bench.put(key(sample), 64) ? 1 : 0;
  EXPECT_EQ(kept, bench.keeper.stats().entries);
  EXPECT_GE(kept, ways * 9 / 10);
  EXPECT_FALSE(bench.reader->has_room(key(2 * ways), 64, 1));
  for (SampleId sample = 2 * ways; sample < 6 * ways; ++sample)
    (void)bench.put(key(sample), 64, 10);
  EXPECT_GE(bench.keeper.stats().evicted, ways * 9 / 10);
  SampleId found = 0;
  for (SampleId sample = 0; sample < 6 * ways; ++sample)
    if (const CacheValue value = bench.reader->get(key(sample))) {
      EXPECT_TRUE(Bench::sound(value, sample));
      ++found;
    }
  EXPECT_EQ(found, bench.keeper.stats().entries);
}

TEST(Keeper, HeldBytesStayAndAreFreedAfterwards) {
  Bench bench(Segment::anonymous(kMiB));
  ASSERT_TRUE(bench.put(key(1), 900'000));
  CacheValue held = bench.reader->get(key(1));
  EXPECT_FALSE(bench.put(key(2), 900'000, 100)) << "it made way, but its bytes are held";
  EXPECT_FALSE(bench.reader->get(key(1)));
  EXPECT_TRUE(Bench::sound(held, 1));
  EXPECT_FALSE(bench.put(key(2), 900'000, 100));
  held = {};
  EXPECT_TRUE(bench.put(key(2), 900'000, 100));
  EXPECT_TRUE(Bench::sound(bench.reader->get(key(2)), 2));
}

TEST(Keeper, WithoutAFreePinAHitIsAMiss) {
  Bench bench(Segment::anonymous(kMiB));
  ASSERT_TRUE(bench.put(key(1), 100));
  std::vector<CacheValue> held;
  for (std::uint64_t i = 0; i < bench.keeper.segment()->shape().pins; ++i) {
    held.push_back(bench.reader->get(key(1)));
    ASSERT_TRUE(held.back());
  }
  EXPECT_FALSE(bench.reader->get(key(1)));
  EXPECT_EQ(bench.keeper.segment()->client(bench.client).unpinned, 1u);
  EXPECT_EQ(bench.keeper.stats().misses, 1);
  held.pop_back();
  EXPECT_TRUE(bench.reader->get(key(1)));
}

// A process that dies holds values, fills others, and sits at the table.
TEST(Keeper, AClientThatIsGoneGivesEverythingBack) {
  Bench bench(Segment::shared(4 * kMiB));
  Keeper& keeper = bench.keeper;
  ASSERT_TRUE(bench.put(key(1), 1000));
  const std::uint64_t bytes = keeper.stats().bytes;
  const int dying = keeper.open_client();
  ASSERT_NE(dying, bench.client);
  const auto reader = Reader::make(keeper.segment(), dying);
  CacheValue held = reader->get(key(1));
  ASSERT_TRUE(held);
  EXPECT_FALSE(reader->get(key(7)));
  ASSERT_TRUE(keeper.reserve(dying, key(2), 5000, 1));
  const int seat = keeper.join(dying, {"dying", 1, 100'000, {1}});
  ASSERT_GE(seat, 0);
  // Never destroyed before the client is closed: nobody says goodbye.
  auto job = make_seat(reader, seat, nullptr, nullptr);
  job->begin_epoch(5);
  EXPECT_TRUE(job->start_making(3));
  EXPECT_TRUE(bench.put(key(4, 5), 1000));
  EXPECT_TRUE(keeper.drop(key(1)));
  EXPECT_GT(keeper.stats().bytes, bytes);

  keeper.close_client(dying);
  EXPECT_EQ(keeper.stats().entries, 0) << "also the fresh value that was for it alone";
  EXPECT_EQ(keeper.stats().hits, 1);
  EXPECT_EQ(keeper.stats().misses, 1);
  EXPECT_TRUE(keeper.jobs().empty());
  for (const Word& pin : keeper.segment()->pins(dying)) EXPECT_EQ(pin, 0u);
  for (const MakingMark& mark : keeper.segment()->making()) EXPECT_EQ(mark, 0u);
  ASSERT_TRUE(bench.put(key(1), 1000));
  EXPECT_EQ(keeper.stats().bytes, bytes);
  EXPECT_EQ(keeper.open_client(), dying);
}

TEST(Keeper, ClientsAndSeatsAreAsManyAsTheShapeHas) {
  Keeper keeper(Segment::shared(64 * kMiB));
  int clients = 0;
  while (keeper.open_client() >= 0) ++clients;
  EXPECT_EQ(clients, kMostClients);
  std::vector<int> seats;
  for (int seat = 0; (seat = keeper.join(3, {"job", 1, 10, {1}})) >= 0;) seats.push_back(seat);
  EXPECT_EQ(seats.size(), static_cast<std::size_t>(kMostSeats));
  EXPECT_EQ(keeper.jobs().size(), seats.size());
  EXPECT_FALSE(keeper.leave(2, seats[5])) << "not his";
  EXPECT_TRUE(keeper.leave(3, seats[5]));
  EXPECT_FALSE(keeper.leave(3, seats[5]));
  EXPECT_EQ(keeper.join(3, {"job", 1, -1, {1}}), -1);
  EXPECT_EQ(keeper.join(3, {"job", 1, 10, std::vector<std::uint64_t>(33, 1)}), -1);
  EXPECT_EQ(keeper.join(3, {"job", 1, std::int64_t{1} << 40, {1}}), -1) << "seen bits of 128 GiB";
  EXPECT_EQ(keeper.join(3, {std::string(200, 'x'), 1, 10, {1}}), seats[5]);
  EXPECT_EQ(keeper.jobs()[5].name.size(), 200u);
}

// Many small values for one large piece: those that lie side by side.
TEST(Keeper, SeenBitsDriveOutValues) {
  Bench bench(Segment::anonymous(16 * kMiB));
  for (SampleId sample = 0; bench.put(key(sample), 10'000);) ++sample;
  const int seat = bench.keeper.join(bench.client, {"job", 1, 10'000'000, {1}});
  ASSERT_GE(seat, 0);
  EXPECT_GE(bench.keeper.stats().evicted, 123);
  EXPECT_LE(bench.keeper.stats().evicted, 130);
  EXPECT_LE(bench.keeper.stats().bytes, 16 * kMiB);
  EXPECT_EQ(bench.keeper.join(bench.client, {"job", 1, 40'000'000, {1}}), -1)
      << "more than a quarter for seen bits alone";
  EXPECT_TRUE(bench.keeper.leave(bench.client, seat));
}

TEST(Keeper, ClearsByDataAndForm) {
  Bench bench(Segment::anonymous(kMiB));
  for (std::uint64_t data = 1; data <= 3; ++data)
    for (std::uint64_t form = 1; form <= 2; ++form)
      for (SampleId sample = 0; sample < 5; ++sample)
        EXPECT_TRUE(bench.put({data, form, sample, sample == 4 ? data : 0}, 100 * form));
  const auto forms = bench.keeper.by_form();
  ASSERT_EQ(forms.size(), 6u);
  EXPECT_EQ(forms[3].data, 2u);
  EXPECT_EQ(forms[3].form, 2u);
  EXPECT_EQ(forms[3].entries, 5);
  EXPECT_EQ(forms[3].fresh, 1);
  EXPECT_EQ(forms[3].bytes, 1000u);
  EXPECT_EQ(bench.keeper.clear({2, 1}).entries, 5);
  EXPECT_EQ(bench.keeper.clear({2, std::nullopt}).bytes, 1000u);
  EXPECT_EQ(bench.keeper.clear({std::nullopt, 2}).entries, 10);
  EXPECT_EQ(bench.keeper.clear().entries, 10);
  EXPECT_EQ(bench.keeper.stats().entries, 0);
  EXPECT_EQ(bench.keeper.stats().evicted, 0) << "that is for what made way";
}

TEST(Keeper, AnotherMappingSeesTheSame) {
  Bench bench(Segment::shared(4 * kMiB));
  const auto mapped = Segment::attach(dup(bench.keeper.segment()->fd()));
  const auto reader = Reader::make(mapped, bench.keeper.open_client());
  ASSERT_TRUE(bench.put(key(1), 50'000));
  CacheValue held = reader->get(key(1));
  ASSERT_TRUE(Bench::sound(held, 1));
  EXPECT_NE(held.bytes().data(), bench.reader->get(key(1)).bytes().data());
  EXPECT_TRUE(bench.keeper.drop(key(1)));
  for (SampleId sample = 2; bench.put(key(sample), 50'000);) ++sample;
  EXPECT_TRUE(Bench::sound(held, 1)) << "held by the other mapping";
  EXPECT_EQ(mapped->stats().hits, 2);
  EXPECT_EQ(mapped->stats().entries, bench.keeper.stats().entries);
}

// The descriptor is exchanged for one that the system gives no memory for.
TEST(Keeper, WhereTheSystemHasNoMoreMemoryTheCacheIsFull) {
  Bench bench(Segment::shared(300 * kMiB));
  ASSERT_TRUE(bench.put(key(0), 10'000'000));
  const int refusing = open("/dev/null", O_RDWR | O_CLOEXEC);
  ASSERT_EQ(dup2(refusing, bench.keeper.segment()->fd()), bench.keeper.segment()->fd());
  close(refusing);
  EXPECT_EQ(bench.keeper.trouble(), "");
  SampleId kept = 1;
  while (bench.put(key(kept), 10'000'000)) ++kept;
  EXPECT_GE(kept, 6);
  EXPECT_LE(kept, 7);
  EXPECT_THAT(bench.keeper.trouble(), HasSubstr("of 300.0 MiB: the system has no more memory"));
  for (SampleId sample = 0; sample < kept; ++sample)
    EXPECT_TRUE(Bench::sound(bench.reader->get(key(sample)), sample));
  EXPECT_TRUE(bench.put(key(kept), 10'000'000, 100)) << "others still make way";
}

// Values of one size: a place that is freed is one for the next. What a reader says beforehand is
// then what the writer does, whoever has seen what, and however much is saved.
TEST(Keeper, AReaderKnowsBeforehandWhatIsTaken) {
  constexpr SampleId kSamples = 120;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Bench bench(Segment::anonymous(kMiB));
    std::vector<std::unique_ptr<CacheSeat>> jobs;
    for (int job = 0; job < 1 + static_cast<int>(seed % 3); ++job) {
      const int seat = bench.keeper.join(bench.client, {"job", 1, kSamples, {1}});
      jobs.push_back(make_seat(bench.reader, seat, nullptr, nullptr));
      jobs.back()->begin_epoch(1);
    }
    int taken = 0, refused = 0;
    for (int step = 0; step < 2000; ++step) {
      const auto sample = static_cast<SampleId>(random() % kSamples);
      CacheSeat& job = *jobs[random() % jobs.size()];
      if (random() % 100 == 0) job.begin_epoch(1);
      if (!bench.reader->get(key(sample))) {
        const double seconds = 1 + static_cast<double>(random() % 4);
        job.start_making(sample);
        const bool room = bench.reader->has_room(key(sample), 20'000, seconds);
        ASSERT_EQ(bench.put(key(sample), 20'000, seconds), room) << seed << ", step " << step;
        job.made(sample);
        ++(room ? taken : refused);
      }
      job.had(1, sample);
    }
    EXPECT_GT(taken, 52) << seed;  // that fit at first
    EXPECT_GT(refused, 0) << seed;
  }
}

TEST(Keeper, NoRoomForAFreshValueThatNobodyCanUse) {
  Bench bench(Segment::anonymous(kMiB));
  EXPECT_TRUE(bench.reader->has_room(key(1, 5), 1000, 1)) << "no job says what it can use";
  const int seat = bench.keeper.join(bench.client, {"job", 1, 10, {1}});
  const auto job = make_seat(bench.reader, seat, nullptr, nullptr);
  job->begin_epoch(5);
  EXPECT_TRUE(bench.reader->has_room(key(1, 5), 1000, 1));
  EXPECT_FALSE(bench.reader->has_room(key(1, 6), 1000, 1)) << "another draw";
  job->had(5, 1);
  EXPECT_FALSE(bench.reader->has_room(key(1, 5), 1000, 1));
  EXPECT_TRUE(bench.reader->has_room(key(1), 1000, 1)) << "later epochs can use a stable one";
}

TEST(Segment, RefusesWhatIsNoSegment) {
  const auto file = [](std::uint64_t size, int seals) {
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(size)), 0);
    EXPECT_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
  };
  constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW;
  EXPECT_THAT([] { Segment::attach(-1); }, ThrowsMessage<Error>(HasSubstr("cannot be used")));
  EXPECT_THAT([&] { Segment::attach(file(kMiB, 0)); },
              ThrowsMessage<Error>(HasSubstr("its size could change")));
  EXPECT_THAT([&] { Segment::attach(file(100, kSealed)); },
              ThrowsMessage<Error>(HasSubstr("too small")));
  EXPECT_THAT([&] { Segment::attach(file(kMiB, kSealed)); },
              ThrowsMessage<Error>(HasSubstr("layout is another version's")));
  const auto segment = Segment::shared(kMiB);
  segment->header().shape.sets += 1;
  EXPECT_THAT([&] { Segment::attach(dup(segment->fd())); },
              ThrowsMessage<Error>(HasSubstr("sizes do not fit together")));
}

// What a client could write by mistake: readers and writer stay within their memory.
TEST(Segment, NonsenseInTheIndexIsAMiss) {
  Bench bench(Segment::anonymous(kMiB));
  const Shape& shape = bench.keeper.segment()->shape();
  ASSERT_TRUE(bench.put(key(1), 1000));
  const Spots spots = spots_of(key(1), shape.sets);
  for (const std::uint64_t set_number : spots.sets) {
    IndexSet& set = bench.keeper.segment()->index()[set_number];
    const auto tag =
        std::ranges::find(set.tags, spots.tag, [](const Word& word) { return word.load(); });
    if (tag == set.tags.end()) continue;
    Entry& entry = set.ways.at(static_cast<std::size_t>(tag - set.tags.begin()));
    for (const std::uint64_t offset : {std::uint64_t{0}, shape.arena_at() + 1, shape.end(),
                                       ~std::uint64_t{0}, shape.end() - 64}) {
      entry.offset = offset;
      EXPECT_FALSE(bench.reader->get(key(1))) << offset;
    }
  }
  EXPECT_EQ(bench.keeper.stats().misses, 5);
  EXPECT_TRUE(bench.keeper.drop(key(1)));
  EXPECT_TRUE(bench.put(key(1), 1000));
  EXPECT_TRUE(Bench::sound(bench.reader->get(key(1)), 1));
}

}  // namespace
}  // namespace cutwater::cache
