// SPDX-License-Identifier: Apache-2.0
#include "cache/seats.h"

#include <algorithm>
#include <utility>

#include "cache/index.h"
#include "cache/residents.h"
#include "core/mutex.h"

namespace cutwater::cache {
namespace {

constexpr std::uint64_t kOwner = 0xff;  // the byte of a making mark that says whose it is

std::uint64_t bit_of(SampleId sample) { return std::uint64_t{1} << (sample % 64); }

Word& making_slot(const Segment& segment, std::uint64_t hash) {
  const std::span<MakingMark> table = segment.making();
  return table[(hash >> 8) % table.size()];
}

class JobSeat final : public CacheSeat {
 public:
  JobSeat(std::shared_ptr<Reader> reader, int seat, std::function<void()> begun,
          std::function<void()> leave)
      : reader_(std::move(reader)),
        segment_(*reader_->segment()),
        seat_(seat),
        record_(segment_.seat(seat)),
        data_(record_.data.load()),
        samples_(static_cast<SampleId>(record_.samples.load())),
        begun_(std::move(begun)),
        leave_(std::move(leave)) {
    const std::uint64_t forms = std::min<std::uint64_t>(record_.forms_count, kMostForms);
    for (std::uint64_t i = 0; i < forms; ++i) forms_.push_back(record_.forms[i]);
    const std::uint64_t words = seen_words(samples_), offset = record_.seen;
    if (segment_.inside(offset, words * sizeof(Word)))
      seen_ = {reinterpret_cast<Word*>(segment_.bytes(offset, words * sizeof(Word)).data()), words};
  }

  ~JobSeat() override {
    if (leave_) leave_();
  }

  std::uint64_t begin_epoch(std::uint64_t draw) override {
    {
      const MutexLock lock(mutex_);
      record_.begun.store(0, std::memory_order_seq_cst);
      for (Word& word : seen_) word.store(0, std::memory_order_relaxed);
      record_.had.store(0, std::memory_order_relaxed);
      record_.draw.store(draw, std::memory_order_relaxed);
      record_.begun.store(1, std::memory_order_release);
      cursor_.reset();
    }
    segment_.header().no_place.store(0, std::memory_order_relaxed);
    const std::uint64_t number = tide();
    if (begun_) begun_();
    return number;
  }

  void had(std::uint64_t draw, SampleId sample) override {
    if (record_.begun.load(std::memory_order_acquire) == 0 ||
        record_.draw.load(std::memory_order_relaxed) != draw)
      return;
    const auto word = static_cast<std::size_t>(sample / 64);
    if (sample < 0 || sample >= samples_ || word >= seen_.size()) return;
    const std::uint64_t bit = bit_of(sample);
    if ((seen_[word].fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
    record_.had.fetch_add(1, std::memory_order_relaxed);
    record_.hads.fetch_add(1, std::memory_order_relaxed);
    // Something may have become worth less.
    Word& patience = segment_.header().no_place;
    if (std::uint64_t left = patience.load(std::memory_order_relaxed); left > 0)
      patience.compare_exchange_weak(left, left - 1, std::memory_order_relaxed);
  }

  void leave_epoch() override {
    const MutexLock lock(mutex_);
    record_.begun.store(0, std::memory_order_release);
  }

  void arrivals(std::vector<SampleId>& samples) override {
    const MutexLock lock(mutex_);
    const std::uint64_t arrived = segment_.header().arrived.load(std::memory_order_acquire);
    if (!cursor_ || !follow(*cursor_, arrived, samples)) scan(samples);
    cursor_ = arrived;
  }

  int others() const override { return count_others(false); }
  int others_alike() const override { return count_others(true); }

  bool start_making(SampleId sample) override {
    const std::uint64_t mine = mark(sample);
    Word& slot = slot_of(sample);
    std::uint64_t there = 0;
    if (slot.compare_exchange_strong(there, mine, std::memory_order_relaxed)) return true;
    // Another sample's mark: this one then goes without.
    return there == mine || (there & ~kOwner) != (mine & ~kOwner);
  }

  void made(SampleId sample) override {
    std::uint64_t mine = mark(sample);
    slot_of(sample).compare_exchange_strong(mine, 0, std::memory_order_relaxed);
  }

 private:
  std::uint64_t mark(SampleId sample) const {
    return (hash_of(data_, sample) & ~kOwner) | static_cast<std::uint64_t>(seat_ + 1);
  }
  Word& slot_of(SampleId sample) const { return making_slot(segment_, hash_of(data_, sample)); }

  int count_others(bool alike) const {
    const std::uint64_t draw = record_.draw.load(std::memory_order_relaxed);
    if (alike && draw == 0) return 0;
    int count = 0;
    for (int number = 0; number < static_cast<int>(segment_.shape().seats); ++number) {
      const SeatRecord& other = segment_.seat(number);
      if (number != seat_ && in_epoch(other) && other.data.load() == data_ &&
          (!alike || other.draw.load(std::memory_order_relaxed) == draw))
        ++count;
    }
    return count;
  }

  // A number that goes on when an epoch begins and about half a data set has been had since it last
  // did: the count itself.
  std::uint64_t tide() const {
    std::uint64_t hads = 0;
    for (int number = 0; number < static_cast<int>(segment_.shape().seats); ++number)
      hads += segment_.seat(number).hads.load(std::memory_order_relaxed);
    const auto half = static_cast<std::uint64_t>(std::max<SampleId>((samples_ + 1) / 2, 1));
    Word& tide = segment_.header().tide;
    std::uint64_t last = tide.load(std::memory_order_relaxed);
    while (hads >= last + half)
      if (tide.compare_exchange_weak(last, hads, std::memory_order_relaxed)) return hads;
    return last;
  }

  bool of_use(std::uint64_t data, std::uint64_t form, std::uint64_t draw) const {
    return data == data_ && draws_alike(draw, record_.draw.load(std::memory_order_relaxed)) &&
           std::ranges::find(forms_, form) != forms_.end();
  }

  // False: some have been overwritten.
  bool follow(std::uint64_t from, std::uint64_t to, std::vector<SampleId>& samples) const {
    const std::span<Arrival> ring = segment_.ring();
    if (to - from > ring.size()) return false;
    for (std::uint64_t number = from; number < to; ++number) {
      const Arrival& arrival = ring[number % ring.size()];
      if (arrival.number.load(std::memory_order_acquire) != number + 1) return false;
      const std::uint64_t data = arrival.data.load(std::memory_order_acquire);
      const std::uint64_t form = arrival.form.load(std::memory_order_acquire);
      const std::uint64_t draw = arrival.draw.load(std::memory_order_acquire);
      const auto sample = static_cast<SampleId>(arrival.sample.load(std::memory_order_acquire));
      if (arrival.number.load(std::memory_order_relaxed) != number + 1) return false;
      if (of_use(data, form, draw)) samples.push_back(sample);
    }
    return true;
  }

  void scan(std::vector<SampleId>& samples) const {
    for (const IndexSet& set : segment_.index())
      for (std::size_t way = 0; way < kWays; ++way) {
        if (set.tags[way].load(std::memory_order_relaxed) == 0) continue;
        const std::optional<EntryView> view = read_entry(set.ways[way]);
        if (view && of_use(view->key.data, view->key.form, view->key.draw))
          samples.push_back(view->key.sample);
      }
  }

  const std::shared_ptr<Reader> reader_;
  const Segment& segment_;
  const int seat_;
  SeatRecord& record_;
  const std::uint64_t data_;
  const SampleId samples_;
  std::vector<std::uint64_t> forms_;
  std::span<Word> seen_;
  const std::function<void()> begun_, leave_;
  Mutex mutex_;  // of the job's own threads
  // Arrivals that it has been told; nothing: all that is there is news.
  std::optional<std::uint64_t> cursor_ CUTWATER_GUARDED_BY(mutex_);
};

}  // namespace

int maker_of(const Segment& segment, std::uint64_t data, SampleId sample) {
  const std::uint64_t hash = hash_of(data, sample);
  const std::uint64_t mark = making_slot(segment, hash).load(std::memory_order_relaxed);
  return ((mark ^ hash) & ~kOwner) == 0 ? static_cast<int>(mark & kOwner) - 1 : -1;
}

Audience::Audience(const Segment& segment) : segment_(segment) {
  for (int number = 0; number < static_cast<int>(segment.shape().seats); ++number) {
    const SeatRecord& record = segment.seat(number);
    if (record.taken.load(std::memory_order_acquire) == 0) continue;
    Listener listener{number, &record, record.data.load(), cache::in_epoch(record), {}};
    const std::uint64_t words = record.samples.load() / 64 + 1, offset = record.seen.load();
    if (segment.inside(offset, words * sizeof(Word)))
      listener.seen = {
          reinterpret_cast<const Word*>(segment.bytes(offset, words * sizeof(Word)).data()), words};
    listeners_.push_back(listener);
  }
}

bool Audience::sits_at(std::uint64_t data) const {
  return std::ranges::any_of(listeners_, [data](const Listener& one) { return one.data == data; });
}

double Audience::uses(const CacheKey& key) const {
  const auto jobs = std::ranges::count_if(
      listeners_, [&](const Listener& listener) { return wants(listener, key); });
  return static_cast<double>(jobs) + (key.draw == 0 ? Residents::kLaterEpochs : 0);
}

bool Audience::wants(const Listener& listener, const CacheKey& key) const {
  const SeatRecord& record = *listener.record;
  const auto word = static_cast<std::uint64_t>(key.sample) / 64;
  if (!listener.in_epoch || listener.data != key.data || word >= listener.seen.size() ||
      !draws_alike(key.draw, record.draw.load(std::memory_order_relaxed)) ||
      (listener.seen[word].load(std::memory_order_relaxed) & bit_of(key.sample)) != 0)
    return false;
  const auto forms =
      std::span(record.forms).first(std::min<std::uint64_t>(record.forms_count.load(), kMostForms));
  return std::ranges::any_of(forms, [&](const Word& form) { return form.load() == key.form; }) &&
         maker_of(segment_, key.data, key.sample) != listener.seat;
}

std::uint64_t seen_words(std::int64_t samples) {
  return static_cast<std::uint64_t>(samples) / 64 + 1;
}

bool in_epoch(const SeatRecord& seat) {
  return seat.taken.load(std::memory_order_acquire) != 0 &&
         seat.begun.load(std::memory_order_acquire) != 0 &&
         seat.had.load(std::memory_order_relaxed) < seat.samples.load(std::memory_order_relaxed);
}

std::unique_ptr<CacheSeat> make_seat(std::shared_ptr<Reader> reader, int seat,
                                     std::function<void()> begun, std::function<void()> leave) {
  return std::make_unique<JobSeat>(std::move(reader), seat, std::move(begun), std::move(leave));
}

}  // namespace cutwater::cache
