// SPDX-License-Identifier: Apache-2.0
// Profile: what samples weigh at every cut and how long every op takes, measured on some of them.
// Plain data: everything that a plan is made of. src/profile/FORMAT.md describes the files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cutwater/pipeline.h"
#include "cutwater/source.h"
#include "cutwater/variant.h"

namespace cutwater {

// All columns have one value per profiled sample, in the order of Profile::ids; seconds are those
// of one thread while all threads of the profile work. In a profile that a loader collected, times
// of several ops are the sums of op_s: an upper bound of what fused ones take; fresh cuts have
// neither finish_s nor variants there, and nothing is known of excerpts.
struct VariantProfile {
  Codec codec;
  std::vector<double> bytes, encode_s, decode_s;  // zero seconds for "none"
};

struct CutProfile {
  Cut cut = 0;
  std::string name;   // Pipeline::cut_name
  std::string after;  // the op before it; empty for cut 0
  bool stable = true;
  std::vector<double> bytes;     // of the sample's fields, raw
  std::vector<double> op_s;      // of the op before this cut, run alone; zero at cut 0
  std::vector<double> prefix_s;  // from the stored bytes to here, as the engine runs it (fused)
  // From here to the last cut, draws included, as the engine runs it: fused, of bytes that were
  // just read, into memory as large as open batches, with what ops have learned in earlier epochs.
  // first_s: while nothing is known yet. memory_s: as finish_s, of bytes that lie in memory and in
  // no cache of the processor, as an application cache lends them. Fresh cuts have finish_s only.
  std::vector<double> finish_s, first_s, memory_s;
  // "none" first. A codec encodes every field but the label. Bytes of a fresh cut are those of one
  // epoch's draws.
  std::vector<VariantProfile> variants;
};

// Of the sample as stored, the part that one epoch's draws need (Pipeline::excerpt): what a server
// near the storage may send instead of it. Zero bytes: there is none of this sample. make_s is with
// what ops have learned in earlier epochs.
struct ExcerptProfile {
  std::vector<double> bytes, make_s, finish_s;  // finish_s as CutProfile's, from the excerpt
};

// What one read costs. Zero rates: not measured.
struct ReadCost {
  double reads_per_s = 0;  // at most, however small
  double bytes_per_s = 0;  // at most, however large
};

struct StorageProfile {
  ReadCost cold_random, cold_sequential;  // of the device, many reads in flight
  // Of a thread, for bytes in the page cache: seconds = each + bytes * per_byte.
  double warm_file_s = 0, warm_part_s = 0;  // a file of its own; a part of an open file (a shard)
  double warm_per_byte_s = 0;
  double write_bytes_per_s = 0;
  double check_per_byte_s = 0;  // of a thread, to check the checksum of what was just read
  double write_file_s = 0;      // on the wall, until a small new file is on the device
};

struct Profile {
  std::string data;      // as it was given
  std::string pipeline;  // text
  std::string fingerprint, source_identity;
  std::int64_t data_samples = 0;  // of the whole data set
  std::vector<std::int64_t> ids;  // the profiled samples
  std::vector<CutProfile> cuts;   // 0 .. last
  ExcerptProfile excerpt;         // empty where the pipeline's samples have none
  std::vector<Failure> bad;       // samples that were drawn but could not be made; not in ids
  bool reads_files = true;        // the source's samples are files of their own, not parts
  double relative_error = 0;      // half the 95 % interval of the mean sample's seconds, as a share
  StorageProfile storage;
  double memory_bytes_per_s = 0;        // a copy, one thread, while all threads copy
  double fresh_memory_bytes_per_s = 0;  // the same into memory that nobody has used before
  // Of memory that processes share and that has its pages, but that this one has not touched yet:
  // a copy into it, and a checksum of what lies there. checked: of what lies in any memory. 0: not
  // measured.
  double shared_memory_bytes_per_s = 0, shared_checked_bytes_per_s = 0;
  double checked_memory_bytes_per_s = 0;
  double engine_s = 0;  // of a thread, per sample, besides reading and ops
  // Of a thread, from a sample's read to its slot in a batch, while all threads take one sample
  // after the other: more than its parts add up to, each of which was measured among its like. 0:
  // not measured.
  double whole_s = 0;
  std::optional<double> consumer_samples_per_s;
  int threads = 1;     // asked for; no more than there are samples have measured
  double seconds = 0;  // that the profile took
};

struct ProfileOptions {
  // At most so many, the bad ones included. Unset: until relative_error is within 5 %, at least 16
  // and at most 1 % of the data set or 256, whichever is more.
  std::optional<std::int64_t> samples = {};
  double max_seconds = 120;         // of some samples at least the profile is made, however short
  std::optional<int> threads = {};  // unset: the cores this process may use
  std::uint64_t seed = 0;           // which samples are drawn
  std::optional<double> consumer_samples_per_s = {};
  // Called by the calling thread some times a second; what it throws ends the work.
  std::function<void(std::int64_t done, std::int64_t most)> on_progress = {};
};

// Throws Error(kInvalidArgument) for a source that does not stand at cut 0; the first failure where
// no sample at all is good. Every thread runs the same kind of work at the same time, on different
// samples: what threads take from one another (caches, memory bandwidth) is in the figures.
Profile make_profile(std::shared_ptr<const Source> source, const Pipeline& pipeline,
                     const ProfileOptions& options = {});

// A folder of .npy columns and meta.json. Throw Error: kIo, kNotFound, kInvalidArgument for files
// that are damaged or not a profile's.
void save_profile(const Profile& profile, const std::string& path);
Profile load_profile(const std::string& path);

}  // namespace cutwater
