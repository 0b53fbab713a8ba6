// SPDX-License-Identifier: Apache-2.0
// The data sets that a server has, by name, and the streams that trainers make of them.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "proto/messages.h"
#include "serve/order.h"

namespace cutwater::serve {

struct ServedData {
  std::string name;
  std::shared_ptr<const Source> source;
};

// When the stamp of a data set is looked at again, for files may be replaced while it is served:
// where a trainer asks for it, but that can take a system call for each file.
struct StampLooks {
  double least_s = 1;        // from one look to the next…
  double rest = 20;          // …and so many times what the last one took
  double most_wait_s = 0.5;  // of who asks first; then it is the last stamp that was seen
  // In seconds.
  std::function<double()> now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
};

// All throw Error that says in words why it refuses. Any thread.
class DataSets {
 public:
  // REQUIRES: `ops` lives for ever.
  DataSets(std::vector<ServedData> data, const OpTable& ops, int makers,
           const StampLooks& looks = {});

  wire::pb::DataSet describe(const wire::pb::DescribeRequest& request) const;
  wire::pb::Listing list(const wire::pb::ListRequest& request) const;
  // Samples as they are stored, one way.
  std::shared_ptr<const Stream> plain(const wire::pb::ReadRequest& request) const;
  std::shared_ptr<const Stream> stream(const wire::pb::Begin& begin);
  // That run ops: of the makers, those that can work at once.
  int threads() const { return threads_; }
  // Throws unless there is such a sample.
  static void check_id(const Stream& stream, std::int64_t id);

 private:
  class Stamp;
  struct Set {
    ServedData data;
    std::shared_ptr<Stamp> stamp;
    std::shared_ptr<const Stream> plain;
    std::shared_ptr<HintBook> hints;
  };
  const Set& named(const std::string& name) const;
  // The set that a trainer means, which speaks as this server does and was told of these samples.
  template <class Request>
  const Set& meant(const Request& request) const;

  std::vector<Set> sets_;
  const OpTable& ops_;
  const int threads_;
  Mutex mutex_;
  // What was learned of ways, by data set, pipeline and ways; a bounded number of them.
  std::map<std::string, std::shared_ptr<WayBook>> books_ CUTWATER_GUARDED_BY(mutex_);
};

}  // namespace cutwater::serve
