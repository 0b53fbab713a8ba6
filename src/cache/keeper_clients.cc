// SPDX-License-Identifier: Apache-2.0
// Keeper, clients and jobs: who is there, and what each leaves behind.
#include <algorithm>
#include <utility>

#include "cache/keeper.h"
#include "cache/seats.h"

namespace cutwater::cache {

int Keeper::open_client(std::uint32_t owner) {
  for (int client = 0; client < static_cast<int>(segment_->shape().clients); ++client) {
    if (open(client)) continue;
    segment_->client(client).open.store(1);
    owners_[static_cast<std::size_t>(client)] = owner;
    publish_quota(owner);
    return client;
  }
  return -1;
}

void Keeper::close_client(int client) {
  if (!open(client)) return;
  std::vector<std::uint64_t> tokens;
  for (const auto& [token, reservation] : reservations_)
    if (reservation.client == client) tokens.push_back(token);
  for (const std::uint64_t token : tokens) abort(client, token);
  for (int seat = 0; seat < static_cast<int>(seats_.size()); ++seat) leave(client, seat);

  for (Word& pin : segment_->pins(client)) pin.store(0);
  ClientRecord& record = segment_->client(client);
  Header& header = segment_->header();
  header.past_hits.fetch_add(record.hits.exchange(0));
  header.past_misses.fetch_add(record.misses.exchange(0));
  record.unpinned.store(0);
  record.pins_high.store(0);
  record.quota.store(0);
  record.open.store(0);
  owners_[static_cast<std::size_t>(client)].reset();
  reclaim();
}

void Keeper::set_quota(std::uint32_t owner, std::uint64_t bytes) {
  OwnerUse& use = owner_uses_[owner];
  use.owner = owner;
  use.quota = bytes;
  publish_quota(owner);
}

// For readers: so that nobody makes a sample, or asks, in vain.
void Keeper::publish_quota(std::uint32_t owner) {
  const auto found = owner_uses_.find(owner);
  if (found == owner_uses_.end() || !found->second.quota) return;
  const std::uint64_t quota = *found->second.quota, used = found->second.bytes;
  for (std::size_t client = 0; client < owners_.size(); ++client)
    if (owners_[client] == owner)
      segment_->client(static_cast<int>(client))
          .quota.store(1 + quota - std::min(quota, used), std::memory_order_relaxed);
}

std::vector<Keeper::OwnerUse> Keeper::by_owner() const {
  std::vector<OwnerUse> list;
  for (const auto& [owner, use] : owner_uses_) list.push_back(use);
  return list;
}

bool Keeper::within_quota(std::uint32_t owner, std::uint64_t bytes) const {
  const auto found = owner_uses_.find(owner);
  if (found == owner_uses_.end() || !found->second.quota) return true;
  const std::uint64_t quota = *found->second.quota, used = found->second.bytes;
  return used <= quota && bytes <= quota - used;
}

void Keeper::count(const Value& value, int entries) {
  const std::uint64_t bytes = arena_.rounded(value.size);
  OwnerUse& use = owner_uses_[value.owner];
  use.owner = value.owner;
  use.entries += entries;
  use.bytes += entries > 0 ? bytes : -bytes;
  if (use.entries == 0 && !use.quota)
    owner_uses_.erase(value.owner);
  else
    publish_quota(value.owner);
}

int Keeper::join(int client, const JobOffer& offer) {
  if (!open(client) || offer.samples < 0 || offer.forms.size() > kMostForms) return -1;
  const auto free = std::ranges::find(seats_, -1, &Seat::client);
  if (free == seats_.end()) return -1;
  const std::uint64_t size = seen_words(offer.samples) * sizeof(Word);
  const std::optional<std::uint64_t> offset = room_for_seen_bits(size);
  write_books();
  if (!offset) return -1;
  *free = {client, offer, {*offset, size}};

  const auto number = static_cast<int>(free - seats_.begin());
  SeatRecord& record = segment_->seat(number);
  record.data.store(offer.data);
  record.samples.store(static_cast<std::uint64_t>(offer.samples));
  record.seen.store(*offset);
  record.forms_count.store(offer.forms.size());
  for (std::size_t i = 0; i < offer.forms.size(); ++i) record.forms[i].store(offer.forms[i]);
  record.draw.store(0);
  record.had.store(0);
  record.begun.store(0);
  record.name.fill('\0');
  const std::size_t length = std::min(offer.name.size(), kNameBytes - 1);
  std::copy_n(offer.name.begin(), length, record.name.begin());
  record.taken.store(static_cast<std::uint64_t>(client) + 1);
  return number;
}

bool Keeper::leave(int client, int seat) {
  if (seat < 0 || seat >= static_cast<int>(seats_.size()) || client < 0) return false;
  Seat& left = seats_[static_cast<std::size_t>(seat)];
  if (left.client != client) return false;
  SeatRecord& record = segment_->seat(seat);
  record.begun.store(0);
  sweep(residents_.size());  // fresh values that were of use to this job alone
  record.taken.store(0);
  for (MakingMark& mark : segment_->making()) {
    std::uint64_t there = mark.load();
    if ((there & 0xff) == static_cast<std::uint64_t>(seat) + 1)
      mark.compare_exchange_strong(there, 0);
  }
  arena_.give(left.seen.offset, left.seen.size);
  left = {};
  segment_->header().no_place.store(0, std::memory_order_relaxed);
  write_books();
  return true;
}

std::vector<Keeper::Job> Keeper::jobs() const {
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    const Seat& seat = seats_[i];
    if (seat.client < 0) continue;
    const SeatRecord& record = segment_->seat(static_cast<int>(i));
    jobs.push_back({seat.offer.name, seat.offer.data, seat.offer.samples,
                    static_cast<std::int64_t>(record.had.load()), seat.client, static_cast<int>(i),
                    in_epoch(record)});
  }
  return jobs;
}

bool Keeper::open(int client) const {
  return client >= 0 && client < static_cast<int>(segment_->shape().clients) &&
         owners_[static_cast<std::size_t>(client)].has_value();
}

bool Keeper::somebody_sits_at(std::uint64_t data) const {
  return std::ranges::any_of(
      seats_, [data](const Seat& seat) { return seat.client >= 0 && seat.offer.data == data; });
}

// A sample that the job's data set does not have is as good as seen.
bool Keeper::seen(const Seat& seat, SampleId sample) const {
  if (sample < 0 || sample >= seat.offer.samples) return true;
  const auto at = static_cast<std::uint64_t>(sample);
  const auto* const words =
      reinterpret_cast<const Word*>(segment_->bytes(seat.seen.offset, seat.seen.size).data());
  return (words[at / 64].load(std::memory_order_relaxed) >> (at % 64) & 1) != 0;
}

}  // namespace cutwater::cache
