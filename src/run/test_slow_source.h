// SPDX-License-Identifier: Apache-2.0
// For tests: files that count as not cached, so that each of their reads goes through the ring, and
// some of which are not what they should be.
#pragma once

#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "source/stored_bytes.h"
#include "source/test_folder.h"

namespace cutwater::test {

class SlowSource final : public Source, private StoredBytes {
 public:
  using Fault = std::function<void(StoredAt&)>;
  explicit SlowSource(std::shared_ptr<const Source> inner, std::map<SampleId, Fault> faults = {})
      : inner_(std::move(inner)), faults_(std::move(faults)) {}

  std::int64_t size() const override { return inner_->size(); }
  Cut cut() const override { return inner_->cut(); }
  std::string fingerprint() const override { return inner_->fingerprint(); }
  std::string path(SampleId id) const override { return inner_->path(id); }
  bool has_labels() const override { return inner_->has_labels(); }
  std::int64_t label(SampleId id) const override { return inner_->label(id); }
  const std::vector<std::string>& classes() const override { return inner_->classes(); }
  std::string identity() const override { return inner_->identity(); }
  const StoredBytes* stored_bytes() const override { return this; }

  Result<Sample> read(SampleId id, const ReadContext& into) const override {
    const auto bytes = [&] {
      StoredAt at = locate(id);
      if (!at.file) return read_file(at.path, into);
      return at.file->read_sample(at.offset, at.size, into);
    };
    return sample(id, bytes, into);
  }

 private:
  StoredAt locate(SampleId id) const override {
    StoredAt at = inner_->stored_bytes()->locate(id);
    at.perhaps_cached = false;
    if (const auto fault = faults_.find(id); fault != faults_.end()) fault->second(at);
    return at;
  }
  Result<Sample> sample(SampleId id, const std::function<Buffer()>& bytes,
                        const ReadContext& into) const override {
    return inner_->stored_bytes()->sample(id, bytes, into);
  }

  const std::shared_ptr<const Source> inner_;
  const std::map<SampleId, Fault> faults_;
};

// `count` files of `bytes` bytes, each of other content, with labels.
inline std::shared_ptr<const Source> some_files(const TestFolder& folder, int count,
                                                std::size_t bytes) {
  std::vector<std::string> paths;
  std::vector<std::int64_t> labels;
  for (int i = 0; i < count; ++i) {
    std::string content(bytes, '\0');
    for (std::size_t k = 0; k < bytes; ++k)
      content[k] = static_cast<char>((static_cast<std::size_t>(i) * 31 + k * 7 + k / 251) % 256);
    paths.push_back(folder.file(std::to_string(i) + ".bin", content));
    labels.push_back(i);
  }
  return open_files(paths, labels);
}

// Faults, as a disk or a careless user makes them.
inline void gone(StoredAt& at) { at = {"/nonexistent/file.bin", {}, 0, 0, false}; }
inline void is_a_folder(StoredAt& at) { at = {"/proc", {}, 0, 0, false}; }
inline void ends_early(StoredAt& at) {
  at.file = std::make_shared<const File>(File::open(at.path));
  at.size = at.file->size() + 100;
}
inline void unreadable(StoredAt& at) {  // no memory is mapped at address 0: EIO
  at.file = std::make_shared<const File>(File::open("/proc/self/mem"));
  at.size = 100;
}
inline void absurdly_large(StoredAt& at) {
  at.file = std::make_shared<const File>(File::open(at.path));
  at.size = std::uint64_t{1} << 40;
}

}  // namespace cutwater::test
