// SPDX-License-Identifier: Apache-2.0
// One connection of a client with the daemon, and the memory that came with it. Nothing here throws
// but std::bad_alloc: what does not work is a refusal, and the connection is gone or late from then
// on.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/connection.h"
#include "cache/reader.h"
#include "core/mutex.h"

namespace cutwater::cache {

// Any thread. The connection stays open while a value that came over it is held, even when it has
// been given up: the daemon keeps the bytes in place as long.
class Attachment : public std::enable_shared_from_this<Attachment> {
 public:
  // `changed` is called when it has become gone or late, from any thread. Throws Error as
  // Connection, and kUnavailable where the memory is none that this version can read.
  static std::shared_ptr<Attachment> make(const std::string& path, std::function<void()> changed);
  ~Attachment();

  // kLate: the daemon owes an answer. What is there can be read; nothing can be put.
  enum class State : std::uint8_t { kFine, kLate, kGone };
  State state() const { return state_.load(std::memory_order_acquire); }
  std::string trouble() const;  // why it is not fine

  // Holds this.
  std::shared_ptr<Reader> reader();

  struct Place {
    std::uint64_t token = 0;
    std::span<std::uint8_t> bytes;
  };
  std::optional<Place> reserve(const CacheKey& key, std::size_t size, double seconds);
  bool commit(std::uint64_t token);
  void abort(std::uint64_t token);
  void drop(const CacheKey& key);
  std::optional<int> join(const JobOffer& offer);
  void leave(int seat);

  // For the thread that looks after it: waits until `wake` is readable, the connection has ended,
  // an answer that was owed has come, or the time is over (-1: never). Such an answer is taken, and
  // what it gave is given back.
  void look_after(const Descriptor& wake, int most_ms);

 private:
  Attachment(const std::string& path, std::function<void()> changed);
  // `owe` is called where the question cannot be asked, because another answer is owed.
  template <class Reply, class Question>
  std::optional<Reply> ask(
      const Question& question, const std::function<void()>& owe = [] {});
  void owe_abort(std::uint64_t token);
  void owe_leave(std::uint32_t seat);
  void take_late_answer();
  void become(State state, const std::string& why);

  const std::uint64_t forks_;
  const std::function<void()> changed_;
  Mutex asking_;           // one question at a time
  Connection connection_;  // questions are guarded by asking_
  // What the daemon has to be told when it answers again; guarded by asking_.
  std::vector<wire::Abort> aborts_;
  std::vector<wire::Leave> leaves_;
  const std::shared_ptr<Segment> segment_;
  std::atomic<State> state_{State::kFine};
  mutable Mutex words_;
  std::string trouble_ CUTWATER_GUARDED_BY(words_);
};

}  // namespace cutwater::cache
