// SPDX-License-Identifier: Apache-2.0
// Offload: which part of each sample's work a server near the storage does, so that less goes over
// the link. Every sample has the same list of options, of which it takes one: as stored, an
// excerpt, or at some cut in some codec. Pure functions of bytes and seconds; docs/plan.md explains
// the model.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cutwater/sample.h"
#include "cutwater/variant.h"

namespace cutwater {

// What is sent of a sample.
struct OffloadVariant {
  Cut cut = 0;
  std::string cut_name = "source";
  Codec codec = {};
  bool excerpt = false;  // at cut 0: of the stored bytes, what the sample's draws need

  bool is_raw() const { return cut == 0 && codec.is_none() && !excerpt; }
  bool operator==(const OffloadVariant&) const = default;
};
// "raw", "excerpt", "decode", "decode:zstd:1"
std::string to_string(const OffloadVariant& variant);

// One sample sent in one variant.
struct OffloadOption {
  double bytes = 0;      // on the wire; infinity: this sample does not have this option
  double storage_s = 0;  // of a thread of the storage server, to make it
  double compute_s = 0;  // of a thread of the trainer, to finish from there
};
inline constexpr OffloadOption kNoOption = {std::numeric_limits<double>::infinity(), 0, 0};

// Samples by options, row by row. The table refers to what outlives it.
struct OffloadTable {
  std::span<const OffloadOption> values;
  std::span<const OffloadVariant> variants;  // of the columns, raw first; at most 256

  std::size_t samples() const { return variants.empty() ? 0 : values.size() / variants.size(); }
  std::span<const OffloadOption> row(std::size_t sample) const {
    return values.subspan(sample * variants.size(), variants.size());
  }
};

struct OffloadMachine {
  double link_bytes_per_s = 0;  // 0: no bound, or not known
  double storage_threads = 0;   // 0: the server sends raw samples only, whatever it is asked for
  double compute_threads = 1;
  std::optional<double> consumer_samples_per_s = {};
  double storage_speed = 1;  // of a storage thread, beside one that the table was measured with
  // By how much longer, as a share, an epoch may be than the shortest if fewer bytes are sent; and
  // where another policy would send fewer still.
  double for_bytes = 0;
  double for_fewest_bytes = 0;
};

// Seconds of an epoch for each resource, were it alone. An epoch takes as long as the longest.
struct OffloadTimes {
  double consumer_s = 0;  // T_G
  double compute_s = 0;   // T_CC
  double storage_s = 0;   // T_CS
  double network_s = 0;   // T_Net

  double epoch_s() const;
  // "consumer", "cpu", "storage_cpu", "network"; of equal ones the first.
  std::string_view bound_by() const;
  bool operator==(const OffloadTimes&) const = default;
};

// What bytes and seconds are worth to each other. A sample takes steps from option to option, each
// the one that saves most for a storage second, while that is at least storage_s.
struct OffloadPrices {
  double byte = 1;  // 0: the link is no bound, seconds of the trainer are all that counts
  double storage_s = std::numeric_limits<double>::infinity();  // nothing is worth it
  double compute_s = 0;                                        // more where the trainer bounds

  bool operator==(const OffloadPrices&) const = default;
};

enum class OffloadPolicy : std::uint8_t {
  kSophon,     // every option, by marginal efficiency
  kNoOff,      // all raw
  kAllOff,     // all at the last cut, without a codec
  kResizeOff,  // all at the first cut that has the same size for every sample, without a codec
  kPaper,      // SOPHON's rule: raw, or the cut with the fewest bytes, until T_Net is not longest
};
inline constexpr std::array<OffloadPolicy, 5> kOffloadPolicies = {
    OffloadPolicy::kSophon, OffloadPolicy::kNoOff, OffloadPolicy::kAllOff,
    OffloadPolicy::kResizeOff, OffloadPolicy::kPaper};
std::string_view name_of(OffloadPolicy policy);  // "sophon", "no-off", …

struct OffloadDecision {
  // Whose choice it is. Asked for kSophon: kNoOff where nothing is gained; another's where single
  // samples weigh so much that no price divides them as well, and the prices then come closest.
  OffloadPolicy made_by = OffloadPolicy::kNoOff;
  std::vector<std::uint8_t> choice;  // by sample: its option
  // Of kSophon: `choice` is best_option() by these, but for samples whose last step is worth
  // exactly the price: of those, only the first ones may have taken it. storage_s is 0 where
  // storage has time left for everything that saves anything.
  OffloadPrices prices;
  OffloadTimes before, after;  // all raw; with `choice`
  double bytes_before = 0, bytes_after = 0;
  // No choice at all, not even one that divides samples, has a shorter epoch: proven by duality.
  double least_epoch_s = 0;

  // How much longer the epoch is than what is proven, as a share of it.
  double above_least() const;
};

// The choice with the shortest epoch; of those, that with the fewest bytes: after the network has
// ceased to be the longest, it goes on as far as that costs no time (or for_bytes and
// for_fewest_bytes of the machine).
// Without that, never longer than any other policy, and with no more bytes than one as short.
// Without a bound on the link, samples are raw unless the trainer is the bottleneck and storage can
// relieve it. A row stands for `weight` samples of an epoch. Throws Error(kInvalidArgument) for a
// table or a machine that makes no sense.
OffloadDecision solve_offload(const OffloadTable& table, const OffloadMachine& machine,
                              double weight = 1, OffloadPolicy policy = OffloadPolicy::kSophon);

// The option of one sample by these prices: O(options^2), no memory.
std::size_t best_option(std::span<const OffloadOption> row, const OffloadPrices& prices);

// ---- several clients of one server

// What storage seconds are worth to a client: pieces of falling efficiency.
struct OffloadPiece {
  double storage_s = 0, bytes_saved = 0;  // in each second of the client's training

  double efficiency() const { return bytes_saved / storage_s; }
};
// Of a table whose rows come up `rows_per_s` times a second each, in at most `most` pieces.
// REQUIRES: most >= 1.
std::vector<OffloadPiece> worth_of_storage(const OffloadTable& table, double rows_per_s,
                                           std::size_t most = 64);

struct OffloadTenant {
  std::vector<OffloadPiece> pieces;  // as worth_of_storage() gives them
  double floor_threads = 0;          // that it gets in any case, if it can use them
};
struct StorageShare {
  double threads = 0, bytes_saved_per_s = 0;
  double price = std::numeric_limits<double>::infinity();  // as OffloadPrices::storage_s
};

// Divides the storage threads so that all tenants together save the most bytes per second, with
// each tenant's floor. A tenant that has all it can use has price 0. Throws Error(kInvalidArgument)
// where the floors are more than there is.
std::vector<StorageShare> share_storage(std::span<const OffloadTenant> tenants, double threads);

// The best of all divisions into multiples of threads / steps, found by trying: what
// share_storage() is compared with. Floors do not count.
std::vector<StorageShare> best_static_split(std::span<const OffloadTenant> tenants, double threads,
                                            int steps = 100);

}  // namespace cutwater
