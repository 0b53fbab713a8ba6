// SPDX-License-Identifier: Apache-2.0
// Files that are kept to save time, and may be deleted at any time.
#pragma once

#include <string>
#include <string_view>

namespace cutwater {

// Under its name there is always a whole file or none: others may be reading, or writing the same.
// False: it could not be written, and nothing is left of it.
bool store_whole(const std::string& path, std::string_view bytes, unsigned mode);

// Where to keep something about `path` that cannot stand beside it: a file in the user's cache
// folder, named by a digest of the absolute path. Empty when the user has none.
std::string cached_path(const std::string& path, std::string_view suffix);
// Makes the folder that a cached_path() lies in.
void make_cache_folder(const std::string& cached);

}  // namespace cutwater
