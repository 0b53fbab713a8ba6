// SPDX-License-Identifier: Apache-2.0
// A data set on a near-storage server (`cutwater serve`). It sends each sample as far through the
// pipeline as pays; what comes out here is the same, byte for byte.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cutwater/source.h"

namespace cutwater {

class Link;

struct RemoteOptions {
  std::string token;  // that the server wants; empty: CUTWATER_TOKEN, or none
  std::string ca;  // PEM file of who vouches for the servers (grpcs://); empty: CUTWATER_CA, or the
                   // system's
  // How long servers may be gone, without a word, before what waits for them fails.
  double patience_s = 60;
  // The same samples by another path, slower perhaps: taken while no server answers. Null: none.
  std::shared_ptr<const Source> fallback = nullptr;
  // What comes is held back to the rate of this link, which is also what decisions go by. Null: as
  // it comes.
  std::shared_ptr<Link> link = nullptr;
};

// "grpc://HOST:PORT/NAME"; several servers that have the same data set as
// "grpc://HOST:PORT,HOST:PORT/NAME"; one that lies in parts on several servers as the parts' names
// with a plus between them, "grpc://ONE/NAME+grpc://TWO/NAME": ids go on from part to part. Throws
// Error(kInvalidArgument, kUnavailable, kStale where servers or the fallback have other data).
std::shared_ptr<const Source> open_remote(std::string_view url, const RemoteOptions& options = {});

// What may be done at the servers' end (HowFast::policy): "auto" and "sophon" choose for each
// sample what the network is spared most by, for the server's time; "none" or "no-off" send samples
// as they are stored, "all-off" all the way through the pipeline, "resize-off" up to the first cut
// where all are of one size, "paper" as stored or at a cut, never otherwise encoded. None changes a
// byte. Throws Error(kInvalidArgument) that lists them.
void check_offload_policy(std::string_view name);

// What fetching from servers has done and decided so far.
struct FetchReport {
  struct Way {
    std::string name;  // "raw", "excerpt", "random_resized_crop:delta-zstd:1"
    std::int64_t samples = 0;
    std::uint64_t bytes = 0;
    double storage_seconds = 0;
  };
  // Seconds that a sample takes of each resource, were it alone; the longest bounds the job.
  struct Times {
    double consumer_s = 0;  // T_G
    double compute_s = 0;   // T_CC: the trainer's threads
    double storage_s = 0;   // T_CS: the servers'
    double network_s = 0;   // T_Net; next to nothing where the link was never seen busy
  };
  struct Decided {
    Times before, after;  // all as stored; as asked for
  };
  std::string policy, decision;       // in words
  std::optional<Decided> times = {};  // as decided last; nothing: nothing was, or is, by price
  std::uint64_t wire_bytes = 0;       // all that came, also what was damaged, or came twice
  std::uint64_t stored_bytes = 0;     // of the samples, each once
  double storage_seconds = 0;         // CPU of the other end for all that came
  std::int64_t storage_threads = 0;   // that run ops there, of all servers that are up
  std::vector<Way> ways;
  std::int64_t retries = 0, hedged = 0, damaged = 0, ran_less = 0, fallbacks = 0;
  std::string trouble;  // what is wrong just now; empty: nothing
};

}  // namespace cutwater
