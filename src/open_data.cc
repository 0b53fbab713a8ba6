// SPDX-License-Identifier: Apache-2.0
// open_data: what a person calls the data, a store or not.
#include "cutwater/loader.h"
#include "cutwater/store.h"

namespace cutwater {

std::shared_ptr<const Source> open_data(const std::string& data) {
  return is_store(data) ? open_store(data) : open_source(data);
}

}  // namespace cutwater
