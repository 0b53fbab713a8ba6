// SPDX-License-Identifier: Apache-2.0
#include "cutwater/source.h"

#include "source/fetcher.h"

namespace cutwater {

Source::~Source() = default;

std::unique_ptr<Fetcher> Source::fetcher(const FetchJob&) const { return nullptr; }

}  // namespace cutwater
