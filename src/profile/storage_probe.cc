// SPDX-License-Identifier: Apache-2.0
#include "profile/storage_probe.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/thread_clock.h"
#include "profile/median.h"
#include "source/stored_bytes.h"

namespace cutwater {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kFileBytes = std::size_t{64} << 20, kWriteBytes = std::size_t{8} << 20;
constexpr std::size_t kSmall = 4096, kPart = std::size_t{256} << 10;
constexpr std::size_t kLarge = std::size_t{1} << 20;
constexpr double kColdSeconds = 0.4, kWriteSeconds = 0.6;
constexpr int kInFlight = 16;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// A file without a name that lasts as long as this does.
class TemporaryFile {
 public:
  TemporaryFile() {
    std::error_code none;
    std::string name = (std::filesystem::temp_directory_path(none) / "cutwater.XXXXXX").string();
    if (none) return;
    fd_ = Fd(::mkostemp(name.data(), O_CLOEXEC));
    if (fd_.get() >= 0) ::unlink(name.c_str());
  }
  int fd() const { return fd_.get(); }
  std::size_t size() const { return size_; }

  // Bytes per second onto the device; 0 where it cannot be written.
  double write() {
    if (fd() < 0) return 0;
    std::vector<std::uint8_t> bytes(kWriteBytes);
    std::uint64_t word = 1;
    for (std::size_t i = 0; i < bytes.size(); i += sizeof word) {  // nothing that could be squeezed
      word = word * 6364136223846793005U + 1442695040888963407U;
      std::memcpy(bytes.data() + i, &word, sizeof word);
    }
    const auto start = Clock::now();
    double seconds = 0;
    while (size_ < kFileBytes && seconds < kWriteSeconds) {
      const ssize_t wrote = ::pwrite(fd(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
      if (wrote != static_cast<ssize_t>(bytes.size()) || ::fdatasync(fd()) != 0) return 0;
      size_ += bytes.size();
      seconds = seconds_since(start);
    }
    return seconds > 0 ? static_cast<double>(size_) / seconds : 0;
  }

 private:
  Fd fd_;
  std::size_t size_ = 0;
};

bool read_at(int fd, std::uint64_t offset, std::span<std::uint8_t> into) {
  return ::pread(fd, into.data(), into.size(), static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(into.size());
}

// Per second, on the wall, of what `one` does with kInFlight at once; a failed one ends it.
struct Rate {
  double calls = 0, bytes = 0;
};
Rate in_flight(std::size_t count, const std::function<std::size_t(std::size_t i)>& one) {
  std::atomic<std::size_t> next{0}, done{0}, bytes{0};
  const auto start = Clock::now();
  const auto work = [&] {
    try {
      for (std::size_t i; (i = next++) < count && seconds_since(start) < kColdSeconds;) {
        bytes += one(i);
        ++done;
      }
    } catch (...) {  // nothing leaves a thread
      next = count;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kInFlight; ++i) threads.emplace_back(work);
  }
  const double seconds = seconds_since(start);
  return {static_cast<double>(done) / seconds, static_cast<double>(bytes) / seconds};
}

// Samples' own bytes, once they have been thrown out of the page cache.
class ColdSamples {
 public:
  ColdSamples(const StoredBytes& stored, std::span<const SampleId> ids) : stored_(stored) {
    // Every eighth is only asked, once, whether it is gone: asking may fetch it.
    for (std::size_t i = 0; i < ids.size(); ++i) (i % 8 == 0 ? asked_ : read_).push_back(ids[i]);
  }

  ReadCost measure() const try {
    ReadCost cost;
    if (asked_.size() < 2) return cost;
    const std::span<const SampleId> asked = asked_;
    if (drop(asked.first(asked.size() / 2))) cost.reads_per_s = rate(kSmall).calls;
    if (drop(asked.subspan(asked.size() / 2))) cost.bytes_per_s = rate(~std::size_t{0}).bytes;
    return cost;
  } catch (const Error&) {
    return {};  // a file is gone that was there before: not measured
  }

 private:
  struct Opened {
    std::shared_ptr<const File> file;
    std::uint64_t offset, size;
  };
  Opened open(SampleId id) const {
    StoredAt at = stored_.locate(id);
    if (at.file) return {at.file, at.offset, at.size};
    auto own = std::make_shared<const File>(File::open(at.path));
    const std::uint64_t size = own->size();
    return {std::move(own), 0, size};
  }

  // Whether they are gone, as far as some of them tell: pages that are mapped, or that lie in a
  // file system in memory, stay.
  bool drop(std::span<const SampleId> asked) const {
    for (const SampleId id : read_) drop_from_page_cache(open(id));
    return std::all_of(asked.begin(), asked.end(), [&](SampleId id) {
      const Opened at = open(id);
      drop_from_page_cache(at);
      std::uint8_t byte = 0;
      const std::uint64_t middle = at.offset + at.size / 2;
      return at.file->read_cached(middle, {&byte, 1}).cached == File::Cached::kNotAll;
    });
  }
  static void drop_from_page_cache(const Opened& at) {
    (void)::posix_fadvise(at.file->fd(), static_cast<off_t>(at.offset), static_cast<off_t>(at.size),
                          POSIX_FADV_DONTNEED);
  }

  Rate rate(std::size_t most) const {
    return in_flight(read_.size(), [&](std::size_t i) {
      const Opened at = open(read_[i]);
      const std::size_t size = std::min<std::size_t>(most, at.size);
      Buffer piece(std::min(size, kLarge));
      for (std::size_t done = 0; done < size; done += piece.size())
        at.file->read(at.offset + done, piece.span().first(std::min(piece.size(), size - done)));
      return size;
    });
  }

  const StoredBytes& stored_;
  std::vector<SampleId> asked_, read_;
};

ReadCost cold_sequential(const TemporaryFile& file) {
  ReadCost cost;
  const auto rate = [&](std::size_t bytes) {
    (void)::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
    std::uint8_t byte = 0;
    const iovec one{&byte, 1};
    if (::preadv2(file.fd(), &one, 1, static_cast<off_t>(file.size() - 1), RWF_NOWAIT) >= 0)
      return Rate{};  // it is still there, as on a file system in memory
    return in_flight(file.size() / bytes, [&](std::size_t i) {
      std::vector<std::uint8_t> into(bytes);
      if (!read_at(file.fd(), i * bytes, into)) throw Error(Code::kIo, "cannot read");
      return bytes;
    });
  };
  cost.bytes_per_s = rate(kLarge).bytes;
  cost.reads_per_s = rate(kSmall).calls;
  return cost;
}

// On the wall, until a small new file is on the device; 0 where it cannot be written.
double write_file() {
  std::error_code none;
  const std::string folder = std::filesystem::temp_directory_path(none).string();
  if (none) return 0;
  const std::vector<std::uint8_t> bytes(kSmall, 1);
  std::vector<double> laps;
  for (const auto start = Clock::now(); laps.size() < 9 && seconds_since(start) < kWriteSeconds;) {
    std::string name = folder + "/cutwater.XXXXXX";
    const auto lap = Clock::now();
    const Fd fd(::mkostemp(name.data(), O_CLOEXEC));
    if (fd.get() < 0) return 0;
    const bool wrote =
        ::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
        ::fsync(fd.get()) == 0;
    laps.push_back(seconds_since(lap));
    ::unlink(name.c_str());
    if (!wrote) return 0;
  }
  return median(laps);
}

// Of a checksum as stores have it, over bytes that were just read.
double check_per_byte(Team& team) {
  std::vector<double> laps(16 * team.size());
  team.each(laps.size(), [&](std::size_t, std::size_t i) {
    const std::vector<std::uint8_t> bytes(kPart, static_cast<std::uint8_t>(i));
    volatile std::uint64_t sum = 0;
    laps[i] = timed([&] { sum = XXH3_64bits(bytes.data(), bytes.size()); });
  });
  return median(laps) / static_cast<double>(kPart);
}

// Parts of an open file that are in the page cache and, as in an epoch, in no cache of the
// processor: each part is read once.
void probe_parts(const TemporaryFile& file, Team& team, Measure& measure, StorageProfile& profile) {
  constexpr std::size_t kStride = 37;  // out of order
  const std::size_t parts = file.size() / kPart;
  const auto seconds_of = [&](std::size_t bytes) {
    std::vector<double> laps(parts);
    team.every([&](std::size_t worker) { measure.rings()[worker].evict_caches(); });
    team.each(parts, [&](std::size_t, std::size_t i) {
      laps[i] = timed([&] {
        Buffer into = measure.pool()->allocate(bytes);
        (void)read_at(file.fd(), i * kStride % parts * kPart, into.span());
      });
    });
    return median(laps);
  };
  seconds_of(kPart);  // pages of the buffers
  const double small = seconds_of(kSmall), large = seconds_of(kPart);
  profile.warm_per_byte_s = std::max(large - small, 0.0) / static_cast<double>(kPart - kSmall);
  profile.warm_part_s =
      std::max(small - profile.warm_per_byte_s * static_cast<double>(kSmall), 0.0);
}

}  // namespace

bool reads_files(const Source& source, std::span<const SampleId> ids) {
  const StoredBytes* const stored = source.stored_bytes();
  return stored != nullptr && !stored->locate(ids.front()).file;
}

StorageProfile probe_storage(const Source& source, std::span<const SampleId> ids, Team& team,
                             Measure& measure) {
  StorageProfile profile;
  profile.check_per_byte_s = check_per_byte(team);
  profile.write_file_s = write_file();
  TemporaryFile file;
  profile.write_bytes_per_s = file.write();
  if (profile.write_bytes_per_s > 0) {
    profile.cold_sequential = cold_sequential(file);
    std::vector<std::uint8_t> all(kLarge);
    for (std::size_t at = 0; at < file.size(); at += kLarge) (void)read_at(file.fd(), at, all);
    probe_parts(file, team, measure, profile);
  }
  const StoredBytes* const stored = source.stored_bytes();
  if (stored == nullptr) return profile;
  profile.cold_random = ColdSamples(*stored, ids).measure();

  // Whole reads of the samples themselves, the second time, when they are in the page cache.
  std::vector<double> seconds(ids.size()), bytes(ids.size());
  for (int pass = 0; pass < 2; ++pass) {
    team.every([&](std::size_t worker) { measure.rings()[worker].evict_caches(); });
    team.each(ids.size(), [&](std::size_t, std::size_t i) {
      std::optional<Result<Sample>> read;
      seconds[i] = timed([&] { read = source.read(ids[i], *measure.pool()); });
      if (*read) bytes[i] = static_cast<double>(read->value().fields.front().tensor.spec().bytes());
    });
  }
  const double each = std::max(mean(seconds) - profile.warm_per_byte_s * mean(bytes), 0.0);
  if (reads_files(source, ids)) {
    profile.warm_file_s = each;
  } else {
    profile.warm_part_s = each;
    profile.warm_file_s =
        each + timed([&] { (void)File::open(stored->locate(ids[0]).file->path()); });
  }
  return profile;
}

}  // namespace cutwater
