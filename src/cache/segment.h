// SPDX-License-Identifier: Apache-2.0
// Segment: one piece of memory with everything that a cache is: values, index, who holds what, the
// seats of the jobs. One writer (keeper.h) changes it; readers in any process follow along without
// a lock and without a system call (reader.h, seats.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cache/layout.h"
#include "cutwater/cache.h"

namespace cutwater::cache {

class Segment {
 public:
  // Of this process alone. Pages come as they are written to. Throws Error(kIo) where the system
  // refuses the address space.
  static std::shared_ptr<Segment> anonymous(std::uint64_t limit);

  // In a file without a name (memfd) that other processes map, too: fd(). Everything but the arena
  // has its pages at once; the arena gets them by secure(). The file can be neither shrunk nor
  // grown, so nobody's memory goes away under him. Throws Error(kIo).
  static std::shared_ptr<Segment> shared(std::uint64_t limit, int most_clients = kMostClients);

  // What another process has made with shared(). Takes the descriptor, and closes it. Throws
  // Error(kIo) if it is not one, is of another layout, or may change its size.
  static std::shared_ptr<Segment> attach(int fd);

  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  const Shape& shape() const { return shape_; }
  int fd() const { return fd_; }  // -1: anonymous, or attached

  Header& header() const;
  ClientRecord& client(int number) const;
  std::span<Word> pins(int client) const;
  SeatRecord& seat(int number) const;
  std::span<MakingMark> making() const;
  std::span<Arrival> ring() const;
  std::span<Word> roll() const;
  std::span<IndexSet> index() const;
  Entry& entry(std::uint32_t number) const;  // of set number / 8, way number % 8
  Word& tag(std::uint32_t number) const;

  // REQUIRES: inside(offset, size).
  std::span<std::uint8_t> bytes(std::uint64_t offset, std::uint64_t size) const;
  // Whether this is a place in the arena that has pages. A reader asks before it follows an offset.
  bool inside(std::uint64_t offset, std::uint64_t size) const;

  // The writer's: pages up to `end`, in steps of kSecureStep. False: the system has none left
  // (header().secured says how far it came), and trouble() says so from now on.
  static constexpr std::uint64_t kSecureStep = std::uint64_t{64} << 20;
  bool secure(std::uint64_t end);
  const std::string& trouble() const { return trouble_; }
  // Pages for these bytes, cleared and mapped here, whether or not they are secured yet. They hold
  // what they held. Any thread, also while others write there. False: the system gives none, or
  // cannot do it. REQUIRES: from shared(); from <= to <= shape().end().
  bool make_ready(std::uint64_t from, std::uint64_t to) const;

  // Counted by everybody; may be asked in any process, at any time.
  CacheStats stats() const;

 private:
  Segment(std::uint8_t* memory, const Shape& shape, int fd);
  static std::shared_ptr<Segment> begin(std::uint8_t* memory, const Shape& shape, int fd,
                                        std::uint64_t secured);
  template <class T>
  std::span<T> part(std::uint64_t at, std::uint64_t count) const;

  std::uint8_t* const memory_;
  const Shape shape_;
  const int fd_;
  std::string trouble_;
};

}  // namespace cutwater::cache
