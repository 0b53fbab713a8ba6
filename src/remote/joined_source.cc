// SPDX-License-Identifier: Apache-2.0
#include "remote/joined_source.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/caught.h"
#include "core/sha256.h"
#include "remote/fetch_client.h"

namespace cutwater::remote {
namespace {

void check_alike(const Part& first, const Part& other) {
  const auto refuse = [&](const std::string& what, const std::string& way_out) {
    throw Error(Code::kStale, "the parts " + first.url.text() + " and " + other.url.text() +
                                  " are not of one data set: " + what + "; " + way_out);
  };
  if (other.data.cut() != first.data.cut() || other.data.fingerprint() != first.data.fingerprint())
    refuse("their samples do not stand at the same cut of the same pipeline",
           "prepare them alike, or serve them as stored");
  if (other.data.has_labels() != first.data.has_labels() ||
      other.data.classes().empty() != first.data.classes().empty())
    refuse("one has labels of another kind than the other", "lay them out alike");
}

}  // namespace

JoinedSource::JoinedSource(std::vector<std::unique_ptr<const RemoteSource>> sources,
                           RemoteOptions options)
    : sources_(std::move(sources)), options_(std::move(options)) {
  std::string identities = "parts 1", stamps = identities;
  for (const auto& source : sources_) {
    parts_.push_back(source->part());
    Part& part = parts_.back();
    part.first = size_;
    size_ += source->size();
    check_alike(parts_.front(), part);
    for (const Part& before : parts_)
      if (&before != &part && before.data.identity() == part.data.identity())
        throw Error(Code::kInvalidArgument,
                    before.url.text() + " and " + part.url.text() +
                        " have the same samples; servers that have the same are named with a "
                        "comma, grpc://ONE,TWO/NAME, and parts with a plus");
    identities += "\n" + source->identity();
    stamps += "\n" + source->stamp();
  }
  join_classes();
  identity_ = sha256_hex(identities);
  stamp_ = sha256_hex(stamps);
}

// As in a folder that has the classes of all parts; who has all of them numbers them alike.
void JoinedSource::join_classes() {
  std::set<std::string> all;
  for (const Part& part : parts_)
    all.insert(part.data.classes().begin(), part.data.classes().end());
  const auto& first = parts_.front().data.classes();
  classes_.assign(first.begin(), first.end());
  if (std::ranges::all_of(
          parts_, [&](const Part& part) { return std::ranges::equal(part.data.classes(), first); }))
    return;
  classes_.assign(all.begin(), all.end());
  for (Part& part : parts_)
    for (const std::string& name : part.data.classes())
      part.labels.push_back(std::ranges::lower_bound(classes_, name) - classes_.begin());
}

std::size_t JoinedSource::part_of(SampleId id) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(parts_, id, {}, &Part::first) -
                                  parts_.begin()) -
         1;
}

Result<Sample> JoinedSource::read(SampleId id, const ReadContext& into) const try {
  const std::size_t place = part_of(id);
  Result<Sample> sample = sources_[place]->read(id - parts_[place].first, into);
  if (!sample) {
    sample.failure().sample = id;
    return sample;
  }
  parts_[place].renumber(sample.value());
  return sample;
} catch (...) {
  return caught(id, "read");
}

std::unique_ptr<Fetcher> JoinedSource::fetcher(const FetchJob& job) const {
  return std::make_unique<FetchClient>(parts_, options_, job, std::make_shared<Absence>());
}

std::string JoinedSource::path(SampleId id) const {
  const std::size_t place = part_of(id);
  return sources_[place]->path(id - parts_[place].first);
}

std::int64_t JoinedSource::label(SampleId id) const {
  const std::size_t place = part_of(id);
  return parts_[place].label(sources_[place]->label(id - parts_[place].first));
}

void JoinedSource::load_listing() const {
  for (const auto& source : sources_) source->load_listing();
}

}  // namespace cutwater::remote
