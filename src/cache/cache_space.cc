// SPDX-License-Identifier: Apache-2.0
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string>

#include "cutwater/cache.h"

namespace cutwater {

CacheSpace cache_space(std::string_view data_identity, std::string_view fingerprint,
                       const Codec& codec) {
  std::string text = "cutwater cache 1";
  for (const std::string_view part : {data_identity, fingerprint})
    text += "\n" + std::to_string(part.size()) + " " + std::string(part);
  text += "\n" + to_string(codec);
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.high64, hash.low64};
}

}  // namespace cutwater
