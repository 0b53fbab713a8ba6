// SPDX-License-Identifier: Apache-2.0
// JoinedSource: a data set that lies in parts on several servers, as one. Ids go on from part to
// part, and classes are those of all parts, by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "remote/part.h"
#include "remote/remote_source.h"

namespace cutwater::remote {

class JoinedSource final : public Source {
 public:
  // Throws Error where the parts are not of one data set. REQUIRES: there are parts; the options
  // are those that they were opened with, and have no fallback.
  JoinedSource(std::vector<std::unique_ptr<const RemoteSource>> sources, RemoteOptions options);

  std::int64_t size() const override { return size_; }
  Cut cut() const override { return sources_.front()->cut(); }
  std::string fingerprint() const override { return sources_.front()->fingerprint(); }
  std::string pipeline() const override { return sources_.front()->pipeline(); }
  Result<Sample> read(SampleId id, const ReadContext& into) const override;
  bool far_away() const override { return true; }
  std::unique_ptr<Fetcher> fetcher(const FetchJob& job) const override;
  std::string path(SampleId id) const override;
  void load_listing() const override;
  bool has_labels() const override { return sources_.front()->has_labels(); }
  std::int64_t label(SampleId id) const override;
  const std::vector<std::string>& classes() const override { return classes_; }
  std::string identity() const override { return identity_; }
  std::string stamp() const override { return stamp_; }

 private:
  void join_classes();
  std::size_t part_of(SampleId id) const;

  const std::vector<std::unique_ptr<const RemoteSource>> sources_;
  const RemoteOptions options_;
  std::vector<Part> parts_;  // one for each source
  std::int64_t size_ = 0;
  std::vector<std::string> classes_;
  std::string identity_, stamp_;
};

}  // namespace cutwater::remote
