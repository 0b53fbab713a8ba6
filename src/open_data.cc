// SPDX-License-Identifier: Apache-2.0
// open_data: what a person calls the data, a store or not.
#include <filesystem>

#include "cutwater/loader.h"
#include "cutwater/remote.h"
#include "cutwater/store.h"
#include "remote/url.h"
#include "store/layout.h"

namespace cutwater {

std::shared_ptr<const Source> open_data(const std::string& data) {
  if (remote::is_url(data)) return open_remote(data);
  std::error_code ignored;
  // An unfinished one is refused as such, not as a folder without images.
  const bool begun = std::filesystem::exists(std::filesystem::path(data) / kBuildingName, ignored);
  return is_store(data) || begun ? open_store(data) : open_source(data);
}

}  // namespace cutwater
