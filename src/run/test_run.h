// SPDX-License-Identifier: Apache-2.0
// For tests: drives an EpochRun in one thread through a random order of events, as an executor with
// many threads might.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/test_ops.h"
#include "run/epoch_run.h"

namespace cutwater::test {

inline What what_of(std::int64_t batch_size) {
  What what{nullptr, Pipeline(test_table())};
  what.batch_size = batch_size;
  return what;
}

inline Failure bad_sample(SampleId id) {
  return {Code::kBadSample, "is broken", id, "path", "read"};
}

struct Delivered {
  std::int64_t index = 0;
  std::vector<SampleId> ids;
  std::vector<std::int64_t> positions;
};

struct Outcome {
  std::vector<Delivered> batches;
  std::vector<Failure> failures;

  std::vector<std::int64_t> positions() const {
    std::vector<std::int64_t> all;
    for (const Delivered& batch : batches)
      all.insert(all.end(), batch.positions.begin(), batch.positions.end());
    return all;
  }
};

struct Drive {
  std::size_t threads = 4;
  std::int64_t prefetch = 3;
  std::set<std::int64_t> bad;  // positions
  unsigned patience = 0;       // of 8 choices, how many go to the newest: old ones wait long
};

class RunDriver {
 public:
  RunDriver(EpochRun& run, const Drive& drive, unsigned seed)
      : run_(run), drive_(drive), random_(seed) {}

  // Until the epoch is over or has failed. Checks what holds at every step.
  Outcome drive() {
    while (!run_.over()) {
      const bool issue = may_issue(), progress = !out_.empty(), consume = !run_.finished.empty();
      if (!issue && !progress && !consume) {
        ADD_FAILURE() << "stuck: nothing is out, nothing is finished, and yet not over";
        break;
      }
      const auto dice = random_() % 8;
      if (issue && (dice < 3 || (!progress && !consume))) {
        out_.push_back({run_.issue(), false});
      } else if (consume && (dice == 3 || !progress)) {
        take();
      } else if (progress) {
        step(random_() % 8 < drive_.patience ? out_.size() - 1 : random_() % out_.size());
      }
    }
    if (!run_.failed()) {
      EXPECT_EQ(run_.open_batches(), 0);
    }
    return std::move(outcome_);
  }

 private:
  struct Out {
    Ticket ticket;
    bool written;
  };
  static inline const TensorSpec kSpec{DType::kI64, {2}};

  bool may_issue() const {
    return !run_.all_issued() && out_.size() < drive_.threads &&
           (!run_.next_opens_batch() || run_.open_batches() < drive_.prefetch);
  }

  void write(Ticket& ticket) {
    const std::int64_t content[] = {ticket.id, ticket.position};
    std::memcpy(run_.slot(ticket, "image", kSpec).bytes(), content, sizeof content);
  }

  // One more step of one sample: written, then complete; or failed, before or after it was written.
  void step(std::size_t which) {
    Out& out = out_[which];
    const bool bad = drive_.bad.contains(out.ticket.position);
    if (!out.written && !(bad && random_() % 2 == 0)) {
      write(out.ticket);
      out.written = true;
      return;
    }
    const Out done = std::move(out);
    out_.erase(out_.begin() + static_cast<std::ptrdiff_t>(which));
    if (bad)
      run_.fail(done.ticket, bad_sample(done.ticket.id));
    else
      run_.complete(done.ticket);
  }

  void take() {
    Result<FinishedBatch> finished = std::move(run_.finished.front());
    run_.finished.pop_front();
    if (!finished) return outcome_.failures.push_back(finished.failure());
    run_.handed_out();
    FinishedBatch& batch = finished.value();
    Delivered delivered{batch.index, {}, {}};
    const std::uint8_t* const bytes = batch.slab->fields().at(0).bytes.data();
    for (std::size_t slot = 0; slot < static_cast<std::size_t>(batch.count); ++slot) {
      delivered.ids.push_back(batch.slab->ids[slot]);
      delivered.positions.push_back(batch.slab->positions[slot]);
      std::int64_t content[2];
      std::memcpy(content, bytes + slot * sizeof content, sizeof content);
      EXPECT_EQ(content[0], batch.slab->ids[slot]) << "the bytes are another sample's";
      EXPECT_EQ(content[1], batch.slab->positions[slot]);
    }
    outcome_.batches.push_back(std::move(delivered));
  }

  EpochRun& run_;
  const Drive& drive_;
  std::mt19937 random_;
  std::vector<Out> out_;
  Outcome outcome_;
};

// What a property test varies.
struct RandomCase {
  std::int64_t size, batch_size;
  bool drop_last;
  Drive drive;
  unsigned seed;

  explicit RandomCase(unsigned the_seed) : seed(the_seed) {
    std::mt19937 random(the_seed);
    size = static_cast<std::int64_t>(random() % 60);
    batch_size = static_cast<std::int64_t>(1 + random() % 9);
    drop_last = random() % 2 == 0;
    drive.threads = 1 + random() % 12;
    drive.prefetch = static_cast<std::int64_t>(1 + random() % 6);
    drive.patience = random() % 3 == 0 ? 7 : random() % 2 == 0 ? 4 : 0;
    const auto share = random() % 3;  // none, some, many
    for (std::int64_t position = 0; position < size; ++position)
      if (random() % 20 < (share == 0 ? 0 : share == 1 ? 2 : 12)) drive.bad.insert(position);
  }
  std::string text() const {
    return "seed " + std::to_string(seed) + ": " + std::to_string(size) + " samples, batches of " +
           std::to_string(batch_size) + ", " + std::to_string(drive.bad.size()) + " bad, " +
           std::to_string(drive.threads) + " threads" + (drop_last ? ", drop_last" : "");
  }
};

}  // namespace cutwater::test
