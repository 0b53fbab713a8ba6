// SPDX-License-Identifier: Apache-2.0
#include "cache/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "cache/descriptor.h"
#include "core/machine.h"
#include "core/units.h"
#include "cutwater/error.h"

namespace cutwater::cache {
namespace {

constexpr std::uint64_t kPage = 4096;
#ifdef MADV_POPULATE_WRITE
constexpr int kPopulate = MADV_POPULATE_WRITE;
#else
constexpr int kPopulate = 23;  // what headers before glibc 2.35 do not have
#endif
constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

std::uint64_t paged(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
std::uint64_t mapped_bytes(const Shape& shape) { return paged(shape.end()); }

std::string reason() { return std::generic_category().message(errno); }

std::uint8_t* map(std::uint64_t bytes, int fd) {
  const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (memory == MAP_FAILED)
    throw Error(Code::kIo, "the cache's " + bytes_text(bytes) + " of address space were refused: " +
                               reason() + "; make it smaller, or raise the limit (ulimit -v)");
  return static_cast<std::uint8_t*>(memory);
}

// Of the range, bytes that have no pages yet.
std::uint64_t hole_bytes(int fd, std::uint64_t from, std::uint64_t to) {
  const auto end = static_cast<off_t>(to);
  off_t bytes = 0;
  for (auto at = static_cast<off_t>(from); at < end;) {
    const off_t hole = lseek(fd, at, SEEK_HOLE);
    if (hole < 0 || hole >= end) break;
    const off_t data = lseek(fd, hole, SEEK_DATA);
    at = data <= hole || data > end ? end : data;  // what the system cannot tell is one hole
    bytes += at - hole;
  }
  return static_cast<std::uint64_t>(bytes);
}

// Where a cgroup has no memory left, the kernel does not refuse: it kills somebody.
int secure_range(int fd, std::uint64_t from, std::uint64_t to) {
  if (free_memory_bytes() < hole_bytes(fd, from, to)) {
    errno = ENOMEM;
    return -1;
  }
  int result = 0;
  do {
    result = fallocate(fd, 0, static_cast<off_t>(from), static_cast<off_t>(to - from));
  } while (result != 0 && errno == EINTR);
  return result;
}

}  // namespace

Segment::Segment(std::uint8_t* memory, const Shape& shape, int fd)
    : memory_(memory), shape_(shape), fd_(fd) {}

Segment::~Segment() {
  munmap(memory_, mapped_bytes(shape_));
  if (fd_ >= 0) close(fd_);
}

std::shared_ptr<Segment> Segment::begin(std::uint8_t* memory, const Shape& shape, int fd,
                                        std::uint64_t secured) {
  std::shared_ptr<Segment> segment(new Segment(memory, shape, fd));
  Header& header = *new (memory) Header{};
  header.magic = kMagic;
  header.version = kLayoutVersion;
  header.shape = shape;
  header.secured = secured;
  return segment;
}

std::shared_ptr<Segment> Segment::anonymous(std::uint64_t limit) {
  const Shape shape = Shape::of(limit, 1);
  std::uint8_t* const memory = map(mapped_bytes(shape), -1);
  (void)madvise(memory, mapped_bytes(shape), MADV_HUGEPAGE);  // where it cannot be, small ones do
  return begin(memory, shape, -1, shape.end());
}

std::shared_ptr<Segment> Segment::shared(std::uint64_t limit, int most_clients) {
  const Shape shape = Shape::of(limit, most_clients);
  const std::uint64_t bytes = mapped_bytes(shape);
  Descriptor fd(memfd_create("cutwater-cache", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const std::string what = "a cache of " + bytes_text(limit) + " that processes share";
  if (fd.get() < 0 || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0)
    throw Error(Code::kIo, what + " cannot be made: " + reason());
  const std::uint64_t books = paged(shape.arena_at());
  if (secure_range(fd.get(), 0, books) != 0)
    throw Error(Code::kIo, what + " cannot be made: the system has no " + bytes_text(books) +
                               " for its index (" + reason() + "); make it smaller");
  std::uint8_t* const memory = map(bytes, fd.get());
  return begin(memory, shape, fd.release(), std::min(books, shape.end()));
}

std::shared_ptr<Segment> Segment::attach(int fd) {
  const Descriptor file(fd);
  const std::string what = "the shared cache's memory cannot be used: ";
  struct stat status {};
  if (fstat(fd, &status) != 0) throw Error(Code::kIo, what + reason());
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals)
    throw Error(Code::kIo, what + "its size could change while it is read");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size < kPage) throw Error(Code::kIo, what + "it is too small to be one");

  Shape shape;
  {
    const auto* const head = reinterpret_cast<const Header*>(map(kPage, fd));
    const bool known = head->magic == kMagic && head->version == kLayoutVersion;
    shape = head->shape;
    munmap(const_cast<Header*>(head), kPage);
    if (!known)
      throw Error(Code::kIo,
                  what + "its layout is another version's; let the daemon be of this version, too");
  }
  const bool sound = shape.clients >= 1 && shape.clients <= kMostClients &&
                     shape == Shape::of(shape.limit, static_cast<int>(shape.clients)) &&
                     size == mapped_bytes(shape);
  if (!sound) throw Error(Code::kIo, what + "its sizes do not fit together");
  return std::shared_ptr<Segment>(new Segment(map(size, fd), shape, -1));
}

template <class T>
std::span<T> Segment::part(std::uint64_t at, std::uint64_t count) const {
  return {reinterpret_cast<T*>(memory_ + at), count};
}

Header& Segment::header() const { return part<Header>(0, 1)[0]; }

ClientRecord& Segment::client(int number) const {
  const std::uint64_t each = sizeof(ClientRecord) + shape_.pins * sizeof(Word);
  const std::uint64_t at = shape_.clients_at() + static_cast<std::uint64_t>(number) * each;
  return part<ClientRecord>(at, 1)[0];
}

std::span<Word> Segment::pins(int client_number) const {
  return {reinterpret_cast<Word*>(&client(client_number) + 1), shape_.pins};
}

SeatRecord& Segment::seat(int number) const {
  return part<SeatRecord>(shape_.seats_at(), shape_.seats)[static_cast<std::size_t>(number)];
}

std::span<MakingMark> Segment::making() const {
  return part<MakingMark>(shape_.making_at(), shape_.making);
}

std::span<Arrival> Segment::ring() const { return part<Arrival>(shape_.ring_at(), shape_.ring); }

std::span<Word> Segment::roll() const { return part<Word>(shape_.roll_at(), shape_.entries()); }

std::span<IndexSet> Segment::index() const {
  return part<IndexSet>(shape_.index_at(), shape_.sets);
}

Entry& Segment::entry(std::uint32_t number) const {
  return index()[number / kWays].ways[number % kWays];
}

Word& Segment::tag(std::uint32_t number) const {
  return index()[number / kWays].tags[number % kWays];
}

std::span<std::uint8_t> Segment::bytes(std::uint64_t offset, std::uint64_t size) const {
  return {memory_ + offset, size};
}

bool Segment::inside(std::uint64_t offset, std::uint64_t size) const {
  const std::uint64_t secured =
      std::min(header().secured.load(std::memory_order_acquire), shape_.end());
  return offset % kGranule == 0 && offset >= shape_.arena_at() && size <= secured &&
         offset <= secured - size;
}

bool Segment::secure(std::uint64_t end) {
  Word& secured = header().secured;
  const std::uint64_t have = secured.load(std::memory_order_relaxed);
  if (fd_ < 0 || end <= have) return true;
  const std::uint64_t needed = paged(end);
  for (const std::uint64_t to :
       {std::min(have + std::max(kSecureStep, needed - have), mapped_bytes(shape_)), needed}) {
    if (secure_range(fd_, have, to) != 0) continue;
    secured.store(to, std::memory_order_release);
    return true;
  }
  trouble_ = "the shared cache stays at " + bytes_text(have) + " of " + bytes_text(shape_.limit) +
             ": the system has no more memory for it (" + reason() + ")";
  return false;
}

// Not by fallocate: where that fails, it takes pages back that were secured and never touched.
bool Segment::make_ready(std::uint64_t from, std::uint64_t to) const {
  const std::uint64_t begin = from / kPage * kPage, end = std::min(paged(to), mapped_bytes(shape_));
  return begin >= end || madvise(memory_ + begin, end - begin, kPopulate) == 0;
}

CacheStats Segment::stats() const {
  const Header& head = header();
  const auto count = [](const Word& word) {
    return static_cast<std::int64_t>(word.load(std::memory_order_relaxed));
  };
  CacheStats stats;
  stats.limit = shape_.limit;
  stats.bytes = std::min<std::uint64_t>(head.bytes.load(std::memory_order_relaxed), shape_.limit);
  stats.entries = count(head.entries);
  stats.refused = count(head.refused);
  stats.evicted = count(head.evicted);
  stats.hits = count(head.past_hits);
  stats.misses = count(head.past_misses);
  for (int number = 0; number < static_cast<int>(shape_.clients); ++number) {
    stats.hits += count(client(number).hits);
    stats.misses += count(client(number).misses);
  }
  return stats;
}

}  // namespace cutwater::cache
