// SPDX-License-Identifier: Apache-2.0
// SampleMaker: one order, from the stored bytes to the form that is sent. Never throws what a
// sample does: a sample that cannot be sent in the way that was chosen goes as it is stored, and
// whoever gets it finds out why.
#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "serve/order.h"
#include "variant/form.h"

namespace cutwater::serve {

struct MakerOptions {
  std::size_t pool_bytes = std::size_t{256} << 20;    // kept for reuse
  std::size_t sample_bytes = std::size_t{512} << 20;  // that work on one sample may take
  std::shared_ptr<Cache> cache;                       // of stable forms; null: none
};

// An order that was begun: its bytes are read, and the best way is estimated.
struct Draft {
  Order order;
  std::shared_ptr<Sample> stored;
  Draws draws;
  Facts facts;
  std::vector<Offer> offers;
  std::size_t way = 0;                  // 0: as stored
  std::optional<std::size_t> on_trial;  // another way, to be tried besides
  double seconds = 0;                   // spent, besides reading
  bool ran_less = false;

  bool has_work() const { return way > 0 || on_trial.has_value(); }
  void leave_as_stored() {
    ran_less = way > 0;  // a trial is the server's own wish
    way = 0;
    on_trial.reset();
  }

  bool estimated() const { return !offers.empty() && std::isfinite(offers[way].bytes); }
  // In bytes as stored; whatever a trainer says they are worth, no more than twice all of them.
  double saving() const {
    if (!estimated()) return 0;
    return std::min(cost_of(order.worth, facts, 0, offers[0].bytes) -
                        cost_of(order.worth, facts, way, offers[way].bytes),
                    2 * offers[0].bytes);
  }
  double cost() const { return estimated() ? offers[way].seconds : 0; }
};

// Any thread.
class SampleMaker {
 public:
  explicit SampleMaker(MakerOptions options);

  // The failure is the answer where the sample cannot be read. `may_work`: whether ops may run at
  // all.
  Result<Draft> begin(Order order, bool may_work) const;
  // In the draft's way, or as stored.
  Answer finish(const Draft& draft) const;
  // Makes it in the way that is on trial as well, to learn what that takes; afterwards, so that
  // nobody waits for it. Where others wait, only if its cost is a guess: such a way may never be
  // chosen, and a busy server would never know. Returns the seconds that it took.
  double try_another(const Draft& draft, bool others_wait) const;

 private:
  using Form = SharedBytes;

  Facts facts_now(const Draft& draft) const;
  void offer_kept(Draft& draft) const;
  Form write(std::shared_ptr<const Sample> sample, const Codec& codec) const;
  std::optional<Form> make(const Draft& draft, const Way& way, std::optional<Sample> kept,
                           double& at_cut) const;
  std::optional<Sample> kept_before(const Draft& draft, const Way& way) const;
  std::optional<Sample> read_kept(const Draft& draft, const CacheKey& key, const CacheValue& value,
                                  Cut cut) const;
  std::optional<Form> cached(const Draft& draft) const;
  void cache(const Draft& draft, const Form& form, double seconds) const;
  bool can_look() const { return options_.cache && options_.cache->can_be_searched(); }

  const MakerOptions options_;
  const std::shared_ptr<BufferPool> pool_;
};

}  // namespace cutwater::serve
