// SPDX-License-Identifier: Apache-2.0
#include "source/kept_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/sha256.h"
#include "source/read_file.h"

namespace cutwater {
namespace {

// Empty when the user has no cache folder.
std::filesystem::path cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  const std::filesystem::path cache = variable("XDG_CACHE_HOME");
  if (cache.is_absolute()) return cache / "cutwater";
  const std::filesystem::path home = variable("HOME");
  return home.is_absolute() ? home / ".cache" / "cutwater" : std::filesystem::path();
}

}  // namespace

bool store_whole(const std::string& path, std::string_view bytes, unsigned mode) {
  std::string temporary = path + ".XXXXXX";
  const Fd fd(::mkostemp(temporary.data(), 0));
  if (fd.get() < 0) return false;
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (bytes.empty() && ::fchmod(fd.get(), mode) == 0 &&
      ::rename(temporary.c_str(), path.c_str()) == 0) {
    return true;
  }
  ::unlink(temporary.c_str());
  return false;
}

std::string cached_path(const std::string& path, std::string_view suffix) {
  const std::filesystem::path folder = cache_folder();
  if (folder.empty()) return {};
  std::error_code ignored;
  const std::string absolute = std::filesystem::absolute(path, ignored).lexically_normal().string();
  return folder / (sha256_hex(absolute) + std::string(suffix));
}

void make_cache_folder(const std::string& cached) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(cached).parent_path(), ignored);
}

}  // namespace cutwater
