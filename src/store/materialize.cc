// SPDX-License-Identifier: Apache-2.0
// materialize: a plan, shards made by threads that know nothing of each other, and one file that
// makes a store of them.
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "core/caught.h"
#include "core/machine.h"
#include "core/mutex.h"
#include "core/units.h"
#include "store/disk.h"
#include "store/layout.h"
#include "store/request.h"
#include "store/shard_writer.h"
#include "store/store_files.h"

namespace cutwater {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookUp{50};  // how often the calling thread does
constexpr std::int64_t kTrials = 32;
constexpr std::uint64_t kShardBytes = std::uint64_t{256} << 20;
constexpr std::int64_t kLeastShards = 16;  // so that threads have work with small data sets, too
constexpr std::uint64_t kProbeBytes = std::uint64_t{8} << 20;
constexpr std::size_t kIdlePerThread = std::size_t{64} << 20;

[[noreturn]] void refuse(const std::string& why) { throw Error(Code::kInvalidArgument, why); }

std::uint64_t free_bytes(const std::string& folder) {
  struct statvfs status;
  if (::statvfs(folder.c_str(), &status) != 0) throw_system_error(errno, folder, "look at");
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

// Of the exception being handled.
Failure failure_of_this() {
  try {
    throw;
  } catch (const Error& error) {
    return error.failure();
  } catch (...) {
    return caught(-1, "materialize");
  }
}

class Materialization {
 public:
  Materialization(const Source& source, const Pipeline& pipeline, StorePlan plan,
                  std::string folder, const MaterializeOptions& options, int threads)
      : folder_(std::move(folder)),
        options_(options),
        threads_(threads),
        plan_(std::move(plan)),
        maker_(source, pipeline, plan_.cut, static_cast<std::size_t>(threads) * kIdlePerThread) {}

  StoreInfo run() {
    if (exists(kMetaName)) {
      const StoreMeta meta = read_meta(folder_);
      check_same_store(meta.plan, plan_, folder_);
      remove_leftovers(meta.plan.shards());
      resumed_ = shards_done_.samples = plan_.samples;
      show_progress();
      return info_with_payload(meta);
    }
    const bool begun = exists(kBuildingName);
    std::vector<std::int64_t> missing;
    if (begun) {
      adopt_plan();
      missing = shards_to_make();
    } else {
      check_empty();
    }
    forecast(begun);
    if (!begun) {
      write_whole(inside(folder_, kBuildingName), to_text(plan_));
      sync_folder(folder_);
      missing = all_shards();
    }
    try {
      make_shards(missing);
      return finish();
    } catch (const Error& error) {
      if (error.code() != Code::kIo) throw;
      Failure failure = error.failure();
      failure.reason += "; the shards that are finished stay: run the same again to go on";
      throw Error(std::move(failure));
    }
  }

 private:
  bool exists(std::string_view name) const {
    struct stat status;
    return ::lstat(inside(folder_, name).c_str(), &status) == 0;
  }

  void check_empty() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename();
      if (name == kLockName || name == std::string(kBuildingName) + std::string(kTemporarySuffix))
        continue;
      throw path_error(Code::kInvalidArgument, folder_,
                       "has something else in it ('" + name + "'); give a new or an empty folder");
    }
  }

  // That of the work that was begun: it has the fields and the number of samples in a shard.
  void adopt_plan() {
    const std::string path = inside(folder_, kBuildingName);
    StorePlan there = parse_plan(open_plain(path).text(kMaxMetaBytes), path);
    check_same_store(there, plan_, folder_);
    if (there.samples != plan_.samples) refuse(path + ": it is of another number of samples");
    plan_ = std::move(there);
  }

  std::vector<std::int64_t> all_shards() const {
    std::vector<std::int64_t> all(static_cast<std::size_t>(plan_.shards()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    return all;
  }

  ShardPart read_part(std::int64_t shard) const {
    const std::string path = inside(folder_, part_name(shard));
    ShardPart part = parse_part(open_plain(path).text(kMaxMetaBytes), path);
    const auto samples = static_cast<std::size_t>(plan_.end_of(shard) - plan_.first_of(shard));
    if (part.shard != shard || part.rows.size() != samples * row_bytes(plan_.tensors().size()))
      refuse(path + ": it is of another shard");
    return part;
  }

  // Shards that are there stay; what is left of others goes.
  std::vector<std::int64_t> shards_to_make() {
    std::vector<std::int64_t> missing;
    for (const std::int64_t shard : all_shards()) {
      const std::string path = inside(folder_, shard_name(shard));
      try {
        const ShardPart part = read_part(shard);
        if (open_plain(path).size() != part.meta.bytes) refuse(path + ": it is of another size");
        resumed_ += plan_.end_of(shard) - plan_.first_of(shard);
        shards_done_.bytes += part.meta.bytes;
      } catch (const Error& error) {
        if (error.code() != Code::kNotFound && error.code() != Code::kInvalidArgument) throw;
        missing.push_back(shard);
        const std::string part_path = inside(folder_, part_name(shard));
        for (const std::string& left : {path, part_path})
          for (const std::string& name : {left, left + std::string(kTemporarySuffix)})
            remove_file(name);
      }
    }
    shards_done_.samples = resumed_;
    return missing;
  }

  // Makes some samples on trial: how large they are, how long they take, which fields they have.
  void forecast(bool begun) {
    StoreForecast forecast;
    forecast.samples = plan_.samples;
    const std::int64_t trials = std::min(kTrials, plan_.samples);
    std::uint64_t bytes = 0;
    std::int64_t good = 0, tried = 0;
    std::optional<Failure> first_failure;
    const auto start = Clock::now();
    // Where all of them are bad, one after another until one is good.
    for (; tried < trials || (good == 0 && tried - trials < plan_.samples); ++tried) {
      show_progress();
      Result<Sample> made =
          maker_.make(tried < trials ? tried * plan_.samples / trials : tried - trials);
      if (!made && made.failure().code != Code::kBadSample) throw Error(std::move(made.failure()));
      if (!made) {
        if (!first_failure) first_failure = std::move(made.failure());
        continue;
      }
      if (++good == 1 && !begun) set_fields(made.value());
      SampleMembers members(plan_);
      for (const Member& member : members.of(made.value(), maker_.source().path(made.value().id)))
        bytes += member.bytes_in_tar();
    }
    if (good == 0) throw Error(std::move(*first_failure));
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const double each = static_cast<double>(bytes) / static_cast<double>(good);
    if (!begun)
      plan_.samples_per_shard = std::clamp<std::int64_t>(
          static_cast<std::int64_t>(static_cast<double>(kShardBytes) / std::max(each, 1.0)), 1,
          (plan_.samples + kLeastShards - 1) / kLeastShards);
    check_can_list(plan_);
    // Of the samples that are left; bad ones take a row, and nothing else.
    const std::int64_t left = plan_.samples - resumed_;
    const double times = static_cast<double>(left) / static_cast<double>(tried);
    const std::int64_t shards_left = (left + plan_.samples_per_shard - 1) / plan_.samples_per_shard;
    const std::size_t row = row_bytes(plan_.tensors().size());
    const std::uint64_t to_write = static_cast<std::uint64_t>(static_cast<double>(bytes) * times) +
                                   static_cast<std::uint64_t>(shards_left) * 2 * kTarBlock +
                                   static_cast<std::uint64_t>(plan_.samples) * row;
    forecast.bytes = shards_done_.bytes + to_write;
    forecast.free_bytes = free_bytes(folder_);
    const std::uint64_t needed = to_write + static_cast<std::uint64_t>(left) * row;  // in parts
    if (needed > forecast.free_bytes)
      throw path_error(
          Code::kIo, folder_,
          "there is no room for this store: it needs about " + std::to_string(needed) + " bytes (" +
              bytes_text(needed) + "), and " + std::to_string(forecast.free_bytes) + " (" +
              bytes_text(forecast.free_bytes) + ") are free; choose another cut, codec or disk");
    forecast.seconds = seconds * times / static_cast<double>(threads_) + write_seconds(needed);
    if (options_.on_forecast) options_.on_forecast(forecast);
  }

  // For so many bytes, from the time of a few.
  double write_seconds(std::uint64_t bytes) const {
    const std::uint64_t some = std::min(bytes / 16, kProbeBytes);
    std::string noise(kTarBlock, '\0');
    for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * i * i >> 5);
    NewFile file(inside(folder_, kBuildingName));  // that will be there: nothing else is left
    const auto start = Clock::now();
    try {
      while (file.size() < some) file.write(noise);
      file.sync();
    } catch (const Error& error) {
      throw path_error(
          error.code(), folder_,
          "a first try to write " + bytes_text(some) + " there failed: " + error.failure().reason);
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return some > 0 ? seconds * static_cast<double>(bytes) / static_cast<double>(some) : 0;
  }

  void set_fields(const Sample& sample) {
    for (const Field& field : sample.fields) {
      if (!is_field_name(field.name))
        refuse("materialize: a field called '" + field.name +
               "' cannot be stored; letters, digits and '_' can, 48 at most");
      plan_.fields.push_back(field.name);
    }
    plan_.label_field = plan_.label_field && sample.find(kLabelField) != nullptr;
    if (plan_.tensors().empty()) refuse("materialize: the samples have no field but a label");
  }

  void make_shards(const std::vector<std::int64_t>& shards) {
    std::atomic<std::size_t> next{0};
    Mutex mutex;
    Condition done;
    std::optional<Failure> failure;
    const auto count = std::min(static_cast<std::size_t>(threads_), shards.size());
    std::size_t working = count;
    const auto work = [&] {
      std::optional<Failure> mine;
      try {
        for (std::size_t i; !shards_done_.stop && (i = next++) < shards.size();)
          write_shard(folder_, plan_, maker_, shards[i], shards_done_);
      } catch (...) {
        mine = failure_of_this();
        shards_done_.stop = true;
      }
      MutexLock lock(mutex);
      if (mine && mine->code != Code::kCancelled && !failure) failure = std::move(mine);
      if (--working == 0) done.notify_all();
    };
    std::vector<std::thread> threads;
    try {
      for (std::size_t i = 0; i < count; ++i) threads.emplace_back(work);
      for (bool all = false; !all;) {
        {
          MutexLock lock(mutex);
          if (working > 0) done.wait_for(mutex, kLookUp);
          all = working == 0;
        }
        show_progress();
      }
    } catch (...) {
      shards_done_.stop = true;
      for (std::thread& thread : threads) thread.join();
      throw;
    }
    for (std::thread& thread : threads) thread.join();
    if (failure) throw Error(std::move(*failure));
  }

  StoreInfo finish() {
    StoreMeta meta;
    NewFile index(inside(folder_, kIndexName));
    index.write(index_header(plan_));
    for (const std::int64_t shard : all_shards()) {
      ShardPart part = read_part(shard);
      index.write(part.rows);
      meta.shards.push_back(std::move(part.meta));
      meta.raw_bytes += part.raw_bytes;
      std::move(part.bad.begin(), part.bad.end(), std::back_inserter(meta.bad));
    }
    meta.index.bytes = index.size();
    meta.index.checksum = index.finish();
    meta.plan = plan_;
    if (maker_.source().stamp() != plan_.stamp)
      throw Error(Failure{Code::kStale,
                          "the data set was changed while its samples were prepared; remove the "
                          "folder and begin again",
                          -1,
                          folder_,
                          {}});
    StoreInfo info = info_with_payload(meta);  // what cannot be read is no store
    sync_folder(folder_);
    const std::string text = to_text(meta);
    if (text.size() > kMaxMetaBytes) refuse("materialize: there are too many bad samples to list");
    write_whole(inside(folder_, kMetaName), text);
    sync_folder(folder_);
    remove_leftovers(plan_.shards());
    show_progress();
    return info;
  }

  StoreInfo info_with_payload(const StoreMeta& meta) const {
    StoreInfo info = info_of(meta);
    const StoreIndex index = read_index(folder_, meta);
    std::uint64_t& bytes = info.payload_bytes.emplace(0);
    for (SampleId id = 0; id < info.samples; ++id)
      for (std::size_t k = 0; k < index.tensors(); ++k) bytes += index.tensor(id, k).size;
    return info;
  }

  void remove_leftovers(std::int64_t shards) const {
    const std::string building = inside(folder_, kBuildingName);
    remove_file(building);
    remove_file(building + std::string(kTemporarySuffix));
    for (std::int64_t shard = 0; shard < shards; ++shard)
      remove_file(inside(folder_, part_name(shard)));
  }

  void show_progress() const {
    if (options_.on_progress)
      options_.on_progress({shards_done_.samples, plan_.samples, resumed_, shards_done_.bytes});
  }

  const std::string folder_;
  const MaterializeOptions& options_;
  const int threads_;
  StorePlan plan_;
  const SampleMaker maker_;
  ShardProgress shards_done_;
  std::int64_t resumed_ = 0;
};

}  // namespace

StoreInfo materialize(const std::shared_ptr<const Source>& source, const Pipeline& pipeline,
                      Cut cut, const std::string& path, const MaterializeOptions& options) {
  check_can_store(source.get(), pipeline, cut);
  const int threads = options.threads ? *options.threads : default_threads();
  if (threads < 1 || threads > kMostThreads)
    refuse("threads must be in 1.." + std::to_string(kMostThreads) + ", got " +
           std::to_string(threads));
  if (path.empty()) refuse("materialize: a folder to write to is needed");
  StorePlan plan = plan_of_store(*source, pipeline, cut, options.codec);
  const bool made_here = make_folder(path);
  try {
    const NoFileSizeSignal no_signal;
    const FolderLock lock(path);
    return Materialization(*source, pipeline, std::move(plan), path, options, threads).run();
  } catch (...) {
    if (made_here) ::rmdir(path.c_str());  // where nothing is in it
    throw;
  }
}

}  // namespace cutwater
