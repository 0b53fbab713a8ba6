// SPDX-License-Identifier: Apache-2.0
// Keeper: the one writer of a segment. It gives out places for values, says which value makes way,
// and takes back what clients leave behind, however they went.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/arena.h"
#include "cache/residents.h"
#include "cache/segment.h"

namespace cutwater::cache {

// Not for several threads at once: whoever owns it has a lock, or one thread. Nothing here throws
// (but std::bad_alloc); what clients say is checked, and what lies in the segment is not trusted.
class Keeper {
 public:
  // REQUIRES: nobody has written to the segment yet.
  explicit Keeper(std::shared_ptr<Segment> segment);

  // Of whom values may go: anybody, or one owner.
  using Whose = std::optional<std::uint32_t>;

  // A number for a process that reads and puts, and whose values count for its owner; -1: all are
  // taken.
  int open_client(std::uint32_t owner = 0);
  // Ends its seats and reservations and lets go what it held. REQUIRES: it reads no longer.
  void close_client(int client);

  struct Place {
    std::uint64_t token = 0;   // for commit() or abort()
    std::uint64_t offset = 0;  // Segment::bytes(offset, size): to be filled by the client
  };
  // A place for a value under a key that has none yet and that nobody else is filling. Values that
  // are worth less make way. Nothing: refused, and counted so.
  std::optional<Place> reserve(int client, const CacheKey& key, std::uint64_t size, double seconds);
  // From now on readers see it. False: this client has no such reservation.
  bool commit(int client, std::uint64_t token);
  // As if it had never been reserved.
  bool abort(int client, std::uint64_t token);
  // A value that has proved damaged goes. False: there is none that may.
  bool drop(const CacheKey& key, Whose whose = {});

  // A seat for a job; -1: all are taken, there is no room for its seen bits, or the offer has more
  // than kMostForms forms or a negative number of samples.
  int join(int client, const JobOffer& offer);
  // False: the client does not sit there.
  bool leave(int client, int seat);

  // Looks at some values for such that nobody can use any more, and takes them away; frees what is
  // no longer held. Once a second is plenty; a full look at `most` = all.
  void sweep(std::size_t most = 4096);

  // Of one form of one data set.
  struct FormUse {
    std::uint64_t data = 0, form = 0;
    std::int64_t entries = 0, fresh = 0;  // fresh: of the entries
    std::uint64_t bytes = 0;
  };
  std::vector<FormUse> by_form() const;  // by data, then form

  // What an owner's values may take; beyond it, only values of his own make way for his. Without a
  // quota: as much as there is.
  void set_quota(std::uint32_t owner, std::uint64_t bytes);
  struct OwnerUse {
    std::uint32_t owner = 0;
    std::int64_t entries = 0;  // also those that are being filled
    std::uint64_t bytes = 0;
    std::optional<std::uint64_t> quota;
  };
  std::vector<OwnerUse> by_owner() const;  // who has something, or a quota

  struct Job {
    std::string name;
    std::uint64_t data = 0;
    std::int64_t samples = 0, had = 0;  // had: in its epoch
    int client = 0, seat = 0;
    bool in_epoch = false;
  };
  std::vector<Job> jobs() const;

  // Takes away what matches (nothing given: all), and says how much that was. Values that are held
  // lose their name at once and their bytes when they are let go.
  struct Filter {
    std::optional<std::uint64_t> data, form;
  };
  struct Cleared {
    std::int64_t entries = 0;
    std::uint64_t bytes = 0;
  };
  Cleared clear(const Filter& filter = {}, Whose whose = {});

  CacheStats stats() const { return segment_->stats(); }
  const std::string& trouble() const { return segment_->trouble(); }
  const std::shared_ptr<Segment>& segment() const { return segment_; }

 private:
  using Number = Residents::Number;
  // The writer's own copy of what the index says: clients could write there.
  struct Value {
    std::uint64_t offset = 0, size = 0;  // offset 0: the way is free
    std::uint32_t owner = 0;
    Number place = 0;  // among the owner's residents
    bool fresh = false;
  };
  static constexpr std::size_t kPlaceBytes = 64;  // a node of by_place_
  static_assert(sizeof(Value) + sizeof(Number) + Residents::kBytesEach + kPlaceBytes <=
                Shape::kWriterBytes);
  struct Reservation {
    int client = 0;
    Number number = 0;
    double seconds = 0;
  };
  struct Piece {
    std::uint64_t offset = 0, size = 0;
  };
  struct Seat {
    int client = -1;  // -1: free
    JobOffer offer;
    Piece seen;
  };

  bool open(int client) const;
  bool somebody_sits_at(std::uint64_t data) const;
  bool seen(const Seat& seat, SampleId sample) const;
  double uses(const CacheKey& key) const;
  std::optional<Number> find(const CacheKey& key) const;
  std::optional<Number> way_for(const CacheKey& key, double density, Whose whose) const;
  bool may_go(Number number, Whose whose) const {
    return !whose || values_[number].owner == *whose;
  }
  std::optional<std::uint64_t> room(std::uint64_t size, double worth, Whose whose);
  std::vector<Number> run_around(Number victim, std::uint64_t size, double worth,
                                 Whose whose) const;
  std::vector<Number> victims(double density, Whose whose);
  std::optional<std::uint64_t> room_for_seen_bits(std::uint64_t size);
  std::optional<std::uint64_t> allocate(std::uint64_t size);
  std::optional<Place> refuse();
  bool within_quota(std::uint32_t owner, std::uint64_t bytes) const;
  std::optional<std::vector<Number>> beyond_quota(std::uint32_t owner, std::uint64_t bytes,
                                                  double worth);
  void publish_quota(std::uint32_t owner);
  void count(const Value& value, int entries);
  void add_resident(Number number, double seconds);
  void remove_resident(Number number);
  void free_entry(Number number);  // the way in the index; the bytes are the caller's
  void unlink(Number number);      // a value goes; its bytes when nobody holds them
  void evict(Number number);       // the same, to make way
  void reclaim();
  void announce(const CacheKey& key);
  void write_books();

  const std::shared_ptr<Segment> segment_;
  Arena arena_;
  Residents residents_;
  std::vector<Value> values_;                 // by number: the place in the index
  std::map<std::uint64_t, Number> by_place_;  // resident ones, in the order in which they lie
  std::unordered_map<std::uint64_t, Reservation> reservations_;
  std::uint64_t next_token_ = 1;
  std::vector<std::optional<std::uint32_t>> owners_;           // by client; nothing: it is not open
  std::map<std::uint32_t, OwnerUse> owner_uses_;               // by owner
  std::map<std::uint32_t, std::vector<Number>> residents_of_;  // by owner; in no order
  std::vector<Seat> seats_;
  std::vector<Piece> parked_;  // of values that are gone, but were held when last looked at
  std::int64_t fresh_ = 0;     // fresh values
  // Samples that jobs have after a refusal before one of them tries again.
  static constexpr std::uint64_t kLeastPatience = 4, kMostPatience = 256;
  std::uint64_t patience_ = kLeastPatience;
};

}  // namespace cutwater::cache
