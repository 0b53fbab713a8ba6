// SPDX-License-Identifier: Apache-2.0
#include "serve/data_sets.h"

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <thread>
#include <utility>

#include "core/machine.h"

namespace cutwater::serve {
namespace {

using namespace wire;  // NOLINT: the messages of this file

constexpr std::size_t kMostPipelineText = 64 << 10;
constexpr std::size_t kMostBooks = 256;
// Of a data set, for what ops learn of its samples: some 2 KB each of ImageNet.
constexpr std::size_t kHintBytes = std::size_t{1} << 30;

[[noreturn]] void refuse(Code code, const std::string& why) { throw Error(code, why); }

std::vector<Way> ways_of(const pb::Begin& begin, const Pipeline& pipeline, Cut from) {
  if (begin.ways_size() < 1 || begin.ways_size() > kMostWays)
    refuse(Code::kInvalidArgument, "between 1 and " + std::to_string(kMostWays) +
                                       " ways to send a sample can be named, got " +
                                       std::to_string(begin.ways_size()));
  std::vector<Way> ways;
  for (const pb::Way& asked : begin.ways()) {
    if (asked.cut() < from || asked.cut() > pipeline.last_cut())
      refuse(Code::kInvalidArgument, "there is no cut " + std::to_string(asked.cut()) +
                                         " to send samples at; this " + "pipeline has cuts " +
                                         std::to_string(from) + ".." +
                                         std::to_string(pipeline.last_cut()));
    ways.push_back({asked.cut(), asked.codec().empty() ? Codec{} : codec_named(asked.codec()),
                    asked.excerpt()});
    if (asked.excerpt() && asked.cut() != 0)
      refuse(Code::kInvalidArgument,
             "excerpts are of stored samples, at cut 0, not at cut " + std::to_string(asked.cut()));
  }
  if (ways[0] != Way{from, {}, false})
    refuse(Code::kInvalidArgument, "the first way to send a sample must be as it is stored");
  return ways;
}

}  // namespace

// Of a data set, as it was seen last. A thread looks, so that nobody has to wait for slow storage
// to the end. Any thread.
class DataSets::Stamp {
 public:
  Stamp(std::shared_ptr<const Source> source, const StampLooks& looks)
      : source_(std::move(source)), looks_(looks) {
    look();
  }
  ~Stamp() {
    if (thread_.joinable()) thread_.join();
  }
  Stamp(const Stamp&) = delete;
  Stamp& operator=(const Stamp&) = delete;

  std::string now() {
    using Clock = std::chrono::steady_clock;
    const std::chrono::duration<double> most_wait(looks_.most_wait_s);
    const Clock::time_point until =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(most_wait);
    MutexLock lock(mutex_);
    if (!looking_ && looks_.now() >= due_s_) begin_to_look();
    while (looking_ && !takes_long_ && Clock::now() < until)
      looked_.wait_for(mutex_, until - Clock::now());
    takes_long_ = looking_;
    return stamp_;
  }

 private:
  void begin_to_look() CUTWATER_REQUIRES(mutex_) {
    if (thread_.joinable()) thread_.join();  // it has nothing left to do
    takes_long_ = false;
    try {
      thread_ = std::thread([this] { look_again(); });
      looking_ = true;
    } catch (const std::system_error&) {  // no more threads: the last one stands
    }
  }

  void look() {
    const double begun = looks_.now();
    std::string stamp = source_->stamp();
    const double ended = looks_.now();
    MutexLock lock(mutex_);
    stamp_ = std::move(stamp);
    due_s_ = ended + std::max(looks_.least_s, looks_.rest * (ended - begun));
  }

  void look_again() {
    try {
      look();
    } catch (...) {  // out of memory: the last one stands until somebody asks again
    }
    MutexLock lock(mutex_);
    looking_ = false;
    looked_.notify_all();
  }

  const std::shared_ptr<const Source> source_;
  const StampLooks looks_;
  Mutex mutex_;
  Condition looked_;
  std::string stamp_ CUTWATER_GUARDED_BY(mutex_);
  double due_s_ CUTWATER_GUARDED_BY(mutex_) = 0;
  bool looking_ CUTWATER_GUARDED_BY(mutex_) = false;
  bool takes_long_ CUTWATER_GUARDED_BY(mutex_) = false;  // somebody has waited for it in vain
  std::thread thread_ CUTWATER_GUARDED_BY(mutex_);       // of the last look
};

DataSets::DataSets(std::vector<ServedData> data, const OpTable& ops, int makers,
                   const StampLooks& looks)
    : ops_(ops), threads_(std::min(makers, usable_cores())) {
  for (ServedData& one : data) {
    Set set{std::move(one), nullptr, nullptr, nullptr};
    set.stamp = std::make_shared<Stamp>(set.data.source, looks);
    const Pipeline nothing(ops);
    auto plain = std::make_shared<Stream>(Stream{set.data.source, nothing});
    plain->book = std::make_shared<WayBook>(nothing, std::vector<Way>(1));
    set.plain = std::move(plain);
    set.hints = std::make_shared<HintBook>(set.data.source->size(), kHintBytes);
    sets_.push_back(std::move(set));
  }
}

const DataSets::Set& DataSets::named(const std::string& name) const {
  if (name.empty() && sets_.size() == 1) return sets_[0];
  const auto found = std::ranges::find(sets_, name, [](const Set& set) { return set.data.name; });
  if (found != sets_.end()) return *found;
  std::string there;
  for (const Set& set : sets_) there += (there.empty() ? "'" : ", '") + set.data.name + "'";
  refuse(Code::kNotFound, "this server has no data set '" + name + "'; it has " + there);
}

pb::DataSet DataSets::describe(const pb::DescribeRequest& request) const {
  const Set& set = named(request.name());
  const Source& source = *set.data.source;
  pb::DataSet about;
  about.set_name(set.data.name);
  about.set_size(source.size());
  about.set_has_labels(source.has_labels());
  for (const std::string& name : source.classes()) about.add_classes(name);
  about.set_identity(source.identity());
  about.set_stamp(set.stamp->now());
  about.set_cut(source.cut());
  about.set_fingerprint(source.fingerprint());
  about.set_pipeline(source.pipeline());
  about.set_version(wire::kVersion);
  return about;
}

pb::Listing DataSets::list(const pb::ListRequest& request) const {
  const Source& source = *named(request.name()).data.source;
  if (request.first() < 0 || request.count() < 0)
    refuse(Code::kInvalidArgument,
           "a listing begins at sample 0 or later, got " + std::to_string(request.first()));
  pb::Listing listing;
  const std::int64_t count = std::min<std::int64_t>(request.count(), kMostListed);
  const std::int64_t end =
      request.first() < source.size() - count ? request.first() + count : source.size();
  for (std::int64_t id = request.first(); id < end; ++id) {
    listing.add_paths(source.path(id));
    if (source.has_labels()) listing.add_labels(source.label(id));
  }
  return listing;
}

template <class Request>
const DataSets::Set& DataSets::meant(const Request& request) const {
  if (request.version() != wire::kVersion)
    refuse(Code::kInvalidArgument, std::string("this server speaks version '") + wire::kVersion +
                                       "' of the protocol, the trainer '" + request.version() +
                                       "'; install the same version of cutwater on both machines");
  const Set& set = named(request.name());
  if (request.identity() != set.data.source->identity())
    refuse(Code::kStale,
           "the data set '" + set.data.name +
               "' is not the one that the trainer was told of: files were added or taken away; "
               "open it again");
  return set;
}

std::shared_ptr<const Stream> DataSets::plain(const pb::ReadRequest& request) const {
  return meant(request).plain;
}

std::shared_ptr<const Stream> DataSets::stream(const pb::Begin& begin) {
  const Set& set = meant(begin);
  const std::shared_ptr<const Source>& source = set.data.source;
  if (begin.pipeline().size() > kMostPipelineText)
    refuse(Code::kInvalidArgument, "a pipeline of " + std::to_string(begin.pipeline().size()) +
                                       " bytes of text is more than a server reads");
  Pipeline pipeline(ops_);
  try {
    pipeline = Pipeline::parse(begin.pipeline(), ops_);
  } catch (const Error& error) {
    refuse(Code::kInvalidArgument,
           "this server cannot run the trainer's pipeline: " + error.failure().reason +
               "; install the same version of cutwater on both machines");
  }
  if (pipeline.fingerprint() != begin.fingerprint())
    refuse(Code::kInvalidArgument,
           "the same pipeline gives other bytes on this server: its fingerprint is " +
               pipeline.fingerprint() + ", the trainer's " + begin.fingerprint() +
               "; install the same version of cutwater on both machines");
  auto stream =
      std::make_shared<Stream>(Stream{source, pipeline, begin.seed(), nullptr, begin.always()});
  stream->hints = set.hints;
  if (begin.first() < 0 || begin.first() > INT64_MAX - source->size())
    refuse(Code::kInvalidArgument,
           "a part of a data set cannot begin at sample " + std::to_string(begin.first()));
  stream->first = begin.first();
  std::vector<Way> ways = ways_of(begin, pipeline, source->cut());
  if (begin.always() && ways.size() < 2)
    refuse(Code::kInvalidArgument,
           "there is no way besides 'as stored' that could be taken always");
  // What was kept of files that have been replaced since is not found any more.
  stream->data = data_number(source->identity() + set.stamp->now());

  std::string key = set.data.name + '\0' + begin.fingerprint();
  for (const Way& way : ways)
    key += '\0' + std::to_string(way.cut) + to_string(way.codec) + (way.excerpt ? "excerpt" : "");
  MutexLock lock(mutex_);
  if (books_.size() >= kMostBooks && !books_.contains(key)) books_.erase(books_.begin());
  std::shared_ptr<WayBook>& book = books_[key];
  if (!book) book = std::make_shared<WayBook>(pipeline, std::move(ways));
  stream->book = book;
  return stream;
}

void DataSets::check_id(const Stream& stream, std::int64_t id) {
  if (id < 0 || id >= stream.source->size())
    refuse(Code::kInvalidArgument, "there is no sample " + std::to_string(id) +
                                       "; the data set has " +
                                       std::to_string(stream.source->size()));
}

}  // namespace cutwater::serve
