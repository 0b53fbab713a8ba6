// SPDX-License-Identifier: Apache-2.0
// Source: where samples come from. A sample's id is its place in the source's listing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cutwater/buffer.h"
#include "cutwater/error.h"
#include "cutwater/sample.h"

namespace cutwater {

// Where the bytes of a read go. A pool alone will do.
struct ReadContext {
  ReadContext(BufferPool& the_pool, std::function<void(std::size_t)> the_reserve = {})
      : pool(the_pool), reserve(std::move(the_reserve)) {}

  Buffer allocate(std::size_t bytes) const {
    if (reserve) reserve(bytes);
    return pool.allocate(bytes);
  }

  BufferPool& pool;
  // Asked before bytes are allocated: for those that are read, and again where they have to be
  // unpacked. May wait the first time. May throw Error(kCancelled).
  std::function<void(std::size_t bytes)> reserve;
};

class StoredBytes;
class Fetcher;
struct FetchJob;

// Immutable once made; every method may be called from any thread.
class Source {
 public:
  virtual ~Source();

  virtual std::int64_t size() const = 0;
  virtual Cut cut() const { return 0; }  // where its samples stand
  // The fingerprint of the pipeline at that cut; empty where it is 0: those are bytes as stored.
  virtual std::string fingerprint() const { return {}; }
  // The text of that pipeline, for people; empty where the cut is 0.
  virtual std::string pipeline() const { return {}; }

  // The sample, its bytes in a buffer of the context's pool, or borrowed from this source: then the
  // sample must not outlive it. Failures carry id, path and op, which is "read" where the source
  // itself failed. REQUIRES: 0 <= id < size().
  virtual Result<Sample> read(SampleId id, const ReadContext& into) const = 0;

  // Where the bytes lie, for the loader's own way to read them; null: read() is the only way.
  virtual const StoredBytes* stored_bytes() const { return nullptr; }

  // Whether samples come from far away and are best asked for many at a time, by its fetcher();
  // read() brings one, as it is stored.
  virtual bool far_away() const { return false; }
  virtual std::unique_ptr<Fetcher> fetcher(const FetchJob& job) const;  // null: it is not far away

  // The folder that its samples lie in, where there is one: what is kept about them can stand
  // there.
  virtual std::string home() const { return {}; }

  virtual std::string path(SampleId id) const = 0;  // for people, and for error messages
  // Brings what path() and label() tell where that is far away; path() is vaguer before. Throws
  // Error.
  virtual void load_listing() const {}
  virtual bool has_labels() const = 0;
  virtual std::int64_t label(SampleId id) const = 0;  // REQUIRES: has_labels()
  // Names of the labels 0, 1…; empty where labels are plain numbers.
  virtual const std::vector<std::string>& classes() const = 0;

  // Names the listing: equal identities mean the same ids for the same stored samples.
  virtual std::string identity() const = 0;
  // Changes when a stored sample changes: what is kept of the samples is good as long as it stays.
  // May take a system call for each of them.
  virtual std::string stamp() const { return identity(); }
};

// One class per subfolder: the same classes, labels and order as torchvision's ImageFolder (links
// are followed). A folder without subfolders is a flat list of images and has no labels.
struct FolderOptions {
  // Compared without regard to case. ImageFolder's, and .gif.
  std::vector<std::string> extensions = {".jpg", ".jpeg", ".png",  ".ppm",  ".bmp",
                                         ".pgm", ".tif",  ".tiff", ".webp", ".gif"};
  bool allow_empty = false;  // classes without a file are an error otherwise, as in ImageFolder
};
// Throws Error(kNotFound, kInvalidArgument, kIo).
std::shared_ptr<const Source> open_folder(const std::string& path,
                                          const FolderOptions& options = {});

// Files by name; labels (empty, or one per file) with optional class names.
std::shared_ptr<const Source> open_files(const std::vector<std::string>& paths,
                                         const std::vector<std::int64_t>& labels = {},
                                         std::vector<std::string> classes = {});

// A table: CSV, or TSV by its name, with a header line that has a column `path` and optionally
// `label`. Paths are relative to the table. Labels are whole numbers, or class names.
std::shared_ptr<const Source> open_table(const std::string& path);

// Tar shards in the WebDataset convention, read in place: members that share the name up to the
// first dot are one sample; .jpg, .png… is its image, .cls its label. The index of a shard is built
// once and kept (beside the shard, else in the user's cache folder).
std::shared_ptr<const Source> open_tar(const std::vector<std::string>& shards);
// The shards that a path, a glob ("train-*.tar") or a range ("train-{000..127}.tar") stands for.
std::vector<std::string> shards_of(const std::string& pattern);

// Samples whose stored bytes are in memory; they are copied. Labels and classes as for files.
std::shared_ptr<const Source> open_memory(const std::vector<std::span<const std::uint8_t>>& samples,
                                          std::vector<std::int64_t> labels = {},
                                          std::vector<std::string> classes = {});

// What the command line takes as --data: a folder, a table, or tar shards (also a glob of shards).
std::shared_ptr<const Source> open_source(const std::string& data);

}  // namespace cutwater
