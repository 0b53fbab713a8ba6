// SPDX-License-Identifier: Apache-2.0
// What a server does, as Prometheus text over HTTP.
#pragma once

#include <memory>
#include <string>

#include "serve/workshop.h"

namespace cutwater::serve {

class Metrics {
 public:
  // Listens; port 0: any that is free. Throws Error(kUnavailable). REQUIRES: the workshop outlives
  // this.
  Metrics(const std::string& host, int port, const Workshop& shop);
  ~Metrics();

  int port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cutwater::serve
