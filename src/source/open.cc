// SPDX-License-Identifier: Apache-2.0
// open_source: from what a person writes to the source that is meant.
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "cutwater/source.h"
#include "source/file_list.h"
#include "source/read_file.h"

namespace cutwater {
namespace {

constexpr char kAccepted[] =
    "accepted are a folder of images, a table (.csv or .tsv with a column 'path'), a tar shard "
    "(.tar), and a pattern of tar shards as in 'train-*.tar' or 'train-{000..012}.tar'";
constexpr std::size_t kMaxShards = 1'000'000;

bool is_glob(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }
bool is_pattern(std::string_view text) {
  return is_glob(text) || text.find('{') != std::string_view::npos;
}

// A compressed shard is told what to do about it by open_tar.
bool is_tar_name(std::string_view name) {
  for (const char* suffix : {".tar", ".tgz", ".tar.gz", ".tar.zst", ".tar.xz", ".tar.bz2"}) {
    if (has_suffix(name, suffix)) return true;
  }
  return false;
}

[[noreturn]] void refuse_braces(const std::string& pattern) {
  throw Error(Code::kInvalidArgument,
              "pattern '" + pattern +
                  "': braces hold a range of whole numbers, the smaller first and fewer than "
                  "1000000 in all, as in 'train-{000..012}.tar'");
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.size() <= 9 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Each "{first..last}" becomes its numbers, as wide as the wider of the two was written.
std::vector<std::string> expand_braces(const std::string& pattern) {
  std::vector<std::string> expanded = {""};
  std::string_view rest = pattern;
  while (true) {
    const std::size_t open = rest.find('{');
    for (std::string& text : expanded) text += rest.substr(0, open);
    if (open == std::string_view::npos) return expanded;
    const std::size_t close = rest.find('}', open);
    const std::size_t dots = rest.find("..", open);
    if (close == std::string_view::npos || dots > close) refuse_braces(pattern);
    const std::string_view first = rest.substr(open + 1, dots - open - 1);
    const std::string_view last = rest.substr(dots + 2, close - dots - 2);
    if (!is_digits(first) || !is_digits(last)) refuse_braces(pattern);
    std::size_t from = 0;
    std::size_t to = 0;
    std::from_chars(first.data(), first.data() + first.size(), from);
    std::from_chars(last.data(), last.data() + last.size(), to);
    if (from > to || (to - from + 1) * expanded.size() >= kMaxShards) refuse_braces(pattern);

    const bool padded = first.starts_with('0') || last.starts_with('0');
    const std::size_t width = padded ? std::max(first.size(), last.size()) : 0;
    std::vector<std::string> longer;
    for (const std::string& text : expanded) {
      for (std::size_t number = from; number <= to; ++number) {
        const std::string digits = std::to_string(number);
        longer.push_back(text + std::string(width - std::min(width, digits.size()), '0') + digits);
      }
    }
    expanded = std::move(longer);
    rest.remove_prefix(close + 1);
  }
}

// The files that match, in the order of their bytes: glob's own order depends on the locale.
std::vector<std::string> matching(const std::string& pattern) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), GLOB_ERR | GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (status == GLOB_NOMATCH) {
    throw Error(Code::kNotFound, "pattern '" + pattern + "': no file matches");
  }
  if (status != 0) {
    throw Error(Code::kIo, "pattern '" + pattern + "': a folder of it cannot be read");
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::vector<std::string> shards_of(const std::string& pattern) {
  struct stat status;
  if (::stat(pattern.c_str(), &status) == 0) return {pattern};  // a file of that very name
  std::vector<std::string> shards;
  for (std::string& path : expand_braces(pattern)) {
    if (!is_glob(path)) {
      shards.push_back(std::move(path));
      continue;
    }
    for (std::string& match : matching(path)) shards.push_back(std::move(match));
  }
  return shards;
}

std::shared_ptr<const Source> open_source(const std::string& data) {
  struct stat status;
  const bool exists = ::stat(data.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return open_folder(data);
  if (!exists && is_pattern(data)) return open_tar(shards_of(data));
  if (has_suffix(data, ".csv") || has_suffix(data, ".tsv")) return open_table(data);
  if (is_tar_name(data)) return open_tar({data});
  if (!exists) throw Error(Code::kNotFound, "'" + data + "': no such data; " + kAccepted);
  throw Error(Code::kInvalidArgument,
              "'" + data + "': not a kind of data known here; " + kAccepted);
}

}  // namespace cutwater
