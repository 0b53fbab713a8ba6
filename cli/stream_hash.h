// SPDX-License-Identifier: Apache-2.0
// Hashes of what an epoch delivered: the proof that a feature changes no byte.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cutwater/loader.h"

namespace cutwater::cli {

class StreamHash {
 public:
  StreamHash();
  ~StreamHash();

  void add(const Batch& batch);

  std::string stream() const;  // ids and bytes of the samples, in the order delivered
  std::string set() const;     // the same whatever the order

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cutwater::cli
