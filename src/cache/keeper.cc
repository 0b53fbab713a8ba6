// SPDX-License-Identifier: Apache-2.0
// Keeper, values: places for them, and which of them go.
#include "cache/keeper.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cache/index.h"
#include "cache/seats.h"

namespace cutwater::cache {
namespace {

void add(Word& word, std::int64_t count) {
  word.fetch_add(static_cast<std::uint64_t>(count), std::memory_order_relaxed);
}

}  // namespace

Keeper::Keeper(std::shared_ptr<Segment> segment)
    : segment_(std::move(segment)),
      arena_(segment_->shape().arena_at(), segment_->shape().end(), kGranule),
      residents_([this](Number number) { return uses(key_of(segment_->entry(number))); },
                 [this](Number number, std::size_t place) {
                   segment_->roll()[place].store(number, std::memory_order_relaxed);
                 }),
      values_(segment_->shape().entries()),
      owners_(segment_->shape().clients),
      seats_(segment_->shape().seats) {
  write_books();
}

std::optional<Keeper::Place> Keeper::reserve(int client, const CacheKey& key, std::uint64_t size,
                                             double seconds) {
  if (!open(client) || find(key)) return refuse();
  const double worth = Residents::worth_of(seconds, uses(key));
  // A fresh value that none of the jobs there can use. (Where no job sits, nobody knows.)
  if (worth <= 0 && somebody_sits_at(key.data)) return refuse();
  const std::uint64_t taken = arena_.rounded(size);
  const std::uint32_t owner = *owners_[static_cast<std::size_t>(client)];
  // Nothing goes before it is certain that the value comes.
  const bool within = within_quota(owner, taken);
  const auto going = within ? std::vector<Number>() : beyond_quota(owner, taken, worth);
  if (!going) return refuse();
  const Whose whose = within ? Whose() : Whose(owner);
  const std::optional<Number> number = way_for(key, worth / static_cast<double>(taken), whose);
  if (!number) return refuse();
  const std::optional<std::uint64_t> offset = room(taken, worth, whose);
  if (!offset) return refuse();
  if (residents_.contains(*number)) evict(*number);
  for (const Number own : *going)
    if (!within_quota(owner, taken) && residents_.contains(own)) evict(own);
  values_[*number] = {*offset, size, owner, 0, key.draw != 0};
  count(values_[*number], 1);
  fill_entry(segment_->entry(*number), key, *offset, size, seconds);
  segment_->tag(*number).store(spots_of(key, segment_->shape().sets).tag,
                               std::memory_order_release);
  const std::uint64_t token = next_token_++;
  reservations_[token] = {client, *number, seconds};
  write_books();
  return Place{token, *offset};
}

bool Keeper::commit(int client, std::uint64_t token) {
  const auto found = reservations_.find(token);
  if (found == reservations_.end() || found->second.client != client) return false;
  const Reservation reservation = found->second;
  reservations_.erase(found);
  const Value& value = values_[reservation.number];
  Entry& entry = segment_->entry(reservation.number);
  flip_entry(entry);
  add_resident(reservation.number, reservation.seconds);
  fresh_ += value.fresh ? 1 : 0;
  announce(key_of(entry));
  add(segment_->header().entries, 1);
  return true;
}

bool Keeper::abort(int client, std::uint64_t token) {
  const auto found = reservations_.find(token);
  if (found == reservations_.end() || found->second.client != client) return false;
  const Number number = found->second.number;
  reservations_.erase(found);
  arena_.give(values_[number].offset, values_[number].size);  // no reader has ever seen it
  free_entry(number);
  write_books();
  return true;
}

bool Keeper::drop(const CacheKey& key, Whose whose) {
  const std::optional<Number> number = find(key);
  if (!number || !residents_.contains(*number) || !may_go(*number, whose)) return false;
  unlink(*number);
  reclaim();
  return true;
}

void Keeper::sweep(std::size_t most) {
  if (fresh_ > 0)
    while (const std::optional<Number> number = residents_.next_useless(most))
      if (somebody_sits_at(key_of(segment_->entry(*number)).data)) evict(*number);
  reclaim();
}

std::vector<Keeper::FormUse> Keeper::by_form() const {
  std::map<std::pair<std::uint64_t, std::uint64_t>, FormUse> forms;
  for (Number number = 0; number < values_.size(); ++number) {
    if (!residents_.contains(number)) continue;
    const CacheKey key = key_of(segment_->entry(number));
    FormUse& form = forms[{key.data, key.form}];
    form.data = key.data;
    form.form = key.form;
    ++form.entries;
    form.fresh += values_[number].fresh ? 1 : 0;
    form.bytes += values_[number].size;
  }
  std::vector<FormUse> list;
  for (const auto& [names, form] : forms) list.push_back(form);
  return list;
}

Keeper::Cleared Keeper::clear(const Filter& filter, Whose whose) {
  Cleared cleared;
  for (Number number = 0; number < values_.size(); ++number) {
    if (!residents_.contains(number) || !may_go(number, whose)) continue;
    const CacheKey key = key_of(segment_->entry(number));
    if (filter.data.value_or(key.data) != key.data || filter.form.value_or(key.form) != key.form)
      continue;
    ++cleared.entries;
    cleared.bytes += values_[number].size;
    unlink(number);
  }
  reclaim();
  return cleared;
}

// The jobs that have yet to see it in their epoch, and later epochs. Whoever makes it has it.
double Keeper::uses(const CacheKey& key) const {
  double count = key.draw == 0 ? Residents::kLaterEpochs : 0;
  for (int number = 0; number < static_cast<int>(seats_.size()); ++number) {
    const Seat& seat = seats_[static_cast<std::size_t>(number)];
    if (seat.client < 0 || seat.offer.data != key.data) continue;
    const SeatRecord& record = segment_->seat(number);
    if (in_epoch(record) && draws_alike(key.draw, record.draw.load(std::memory_order_relaxed)) &&
        std::ranges::find(seat.offer.forms, key.form) != seat.offer.forms.end() &&
        !seen(seat, key.sample) && maker_of(*segment_, key.data, key.sample) != number)
      count += 1;
  }
  return count;
}

std::optional<Keeper::Number> Keeper::find(const CacheKey& key) const {
  const Spots spots = spots_of(key, segment_->shape().sets);
  for (const std::uint64_t set : spots.sets)
    for (std::size_t way = 0; way < kWays; ++way) {
      const auto number = static_cast<Number>(set * kWays + way);
      if (values_[number].offset != 0 &&
          segment_->tag(number).load(std::memory_order_relaxed) == spots.tag &&
          key_of(segment_->entry(number)) == key)
        return number;
    }
  return std::nullopt;
}

// In the emptier of its two sets; where both are full, that of a value there that is to make way.
std::optional<Keeper::Number> Keeper::way_for(const CacheKey& key, double density,
                                              Whose whose) const {
  const Spots spots = spots_of(key, segment_->shape().sets);
  std::optional<Number> best;
  std::size_t most_free = 0;
  std::vector<Number> resident;
  for (const std::uint64_t set : spots.sets) {
    std::size_t free = 0;
    std::optional<Number> last;
    for (std::size_t way = 0; way < kWays; ++way) {
      const auto number = static_cast<Number>(set * kWays + way);
      if (values_[number].offset == 0) {
        ++free;
        last = number;
      } else if (residents_.contains(number) && may_go(number, whose)) {
        resident.push_back(number);
      }
    }
    if (free > most_free) {
      most_free = free;
      best = last;
    }
  }
  return best ? best : residents_.victim_among(resident, density);
}

std::optional<Keeper::Place> Keeper::refuse() {
  add(segment_->header().refused, 1);
  return std::nullopt;
}

void Keeper::add_resident(Number number, double seconds) {
  Value& value = values_[number];
  residents_.add(number, arena_.rounded(value.size), seconds);
  by_place_.emplace(value.offset, number);
  std::vector<Number>& its = residents_of_[value.owner];
  value.place = static_cast<Number>(its.size());
  its.push_back(number);
}

void Keeper::remove_resident(Number number) {
  const Value& value = values_[number];
  residents_.remove(number);
  by_place_.erase(value.offset);
  const auto found = residents_of_.find(value.owner);
  std::vector<Number>& its = found->second;
  its[value.place] = its.back();  // the last takes its place
  values_[its.back()].place = value.place;
  its.pop_back();
  if (its.empty()) residents_of_.erase(found);
}

void Keeper::free_entry(Number number) {
  count(values_[number], -1);
  segment_->tag(number).store(0, std::memory_order_release);
  values_[number] = {};
}

void Keeper::unlink(Number number) {
  flip_entry(segment_->entry(number));  // before anybody is asked whether he holds it
  parked_.push_back({values_[number].offset, values_[number].size});
  fresh_ -= values_[number].fresh ? 1 : 0;
  remove_resident(number);
  free_entry(number);
  add(segment_->header().entries, -1);
  segment_->header().no_place.store(0, std::memory_order_relaxed);
}

void Keeper::evict(Number number) {
  unlink(number);
  add(segment_->header().evicted, 1);
}

// Frees the bytes of values that are gone and that nobody holds.
void Keeper::reclaim() {
  if (!parked_.empty()) {
    std::vector<std::uint64_t> held;
    for (int client = 0; client < static_cast<int>(segment_->shape().clients); ++client) {
      const std::span<Word> pins = segment_->pins(client);
      const std::uint64_t high = segment_->client(client).pins_high.load();
      for (std::size_t i = 0; i < std::min<std::uint64_t>(high, pins.size()); ++i)
        if (const std::uint64_t offset = pins[i].load()) held.push_back(offset);
    }
    std::ranges::sort(held);
    std::erase_if(parked_, [&](const Piece& piece) {
      if (std::ranges::binary_search(held, piece.offset)) return false;
      arena_.give(piece.offset, piece.size);
      return true;
    });
  }
  write_books();
}

// For the seats: they look here for what has become resident.
void Keeper::announce(const CacheKey& key) {
  Word& arrived = segment_->header().arrived;
  const std::uint64_t number = arrived.load(std::memory_order_relaxed);
  const std::span<Arrival> ring = segment_->ring();
  Arrival& arrival = ring[number % ring.size()];
  arrival.number.store(0, std::memory_order_relaxed);
  arrival.data.store(key.data, std::memory_order_release);
  arrival.form.store(key.form, std::memory_order_release);
  arrival.sample.store(static_cast<std::uint64_t>(key.sample), std::memory_order_release);
  arrival.draw.store(key.draw, std::memory_order_release);
  arrival.number.store(number + 1, std::memory_order_release);
  arrived.store(number + 1, std::memory_order_release);
}

void Keeper::write_books() {
  const Shape& shape = segment_->shape();
  Header& header = segment_->header();
  header.bytes.store(shape.arena_at() + shape.entries() * Shape::kWriterBytes + arena_.used_bytes(),
                     std::memory_order_relaxed);
  header.largest_free.store(arena_.largest_free(), std::memory_order_relaxed);
}

}  // namespace cutwater::cache
