// SPDX-License-Identifier: Apache-2.0
// Part: of a data set, what some servers have of it, and say of that.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "cutwater/error.h"
#include "cutwater/sample.h"
#include "proto/messages.h"
#include "remote/url.h"

namespace cutwater::remote {

struct Part {
  Url url;
  wire::pb::DataSet data;
  SampleId first = 0;                     // its first sample's id in the whole
  std::vector<std::int64_t> labels = {};  // in the whole, of each of its own; empty: the same

  // Throws Error(kBadSample) for a label that the part said nothing of.
  std::int64_t label(std::int64_t own) const {
    if (labels.empty()) return own;
    if (own < 0 || static_cast<std::uint64_t>(own) >= labels.size())
      throw Error(Code::kBadSample, "its label " + std::to_string(own) + " is none of the " +
                                        std::to_string(labels.size()) + " classes of " +
                                        url.text());
    return labels[static_cast<std::size_t>(own)];
  }
  // A sample of the part becomes one of the whole.
  void renumber(Sample& sample) const {
    sample.id += first;
    Tensor* const tensor = labels.empty() ? nullptr : sample.find(kLabelField);
    if (tensor == nullptr) return;
    std::int64_t own = 0;
    if (tensor->spec().bytes() != sizeof own)
      throw Error(Code::kBadSample, "its label is no number");
    std::memcpy(&own, tensor->view().bytes(), sizeof own);
    *tensor = Tensor::scalar(label(own));
  }
};

}  // namespace cutwater::remote
