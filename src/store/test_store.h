// SPDX-License-Identifier: Apache-2.0
// For tests: stores of test ops, and what can be seen of them.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/test_ops.h"
#include "cutwater/store.h"
#include "run/test_source.h"
#include "source/test_folder.h"

namespace cutwater::test {

inline Pipeline chain(const std::string& text) { return Pipeline::parse(text, test_table()); }

inline std::shared_ptr<const Source> some_samples(std::int64_t size, std::set<SampleId> bad = {}) {
  return std::make_shared<FaultySource>(std::make_shared<MemorySource>(size), std::move(bad));
}

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void set_content(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

// All files of a folder, by name.
inline std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files[entry.path().filename()] = content_of(entry.path());
  return files;
}

// Every field of a sample: name, spec and bytes; or what is wrong with it.
inline std::string seen(const Result<Sample>& sample) {
  if (!sample) {
    const Failure& failure = sample.failure();
    return std::string(name_of(failure.code)) + " " + failure.message();
  }
  auto& value = const_cast<Result<Sample>&>(sample).value();
  std::string text = std::to_string(value.id) + " at " + std::to_string(value.cut);
  for (const Field& field : value.fields) {
    text += " " + field.name + " " + to_string(field.tensor.spec()) + " ";
    text.append(reinterpret_cast<const char*>(field.tensor.view().bytes()),
                field.tensor.spec().bytes());
  }
  return text;
}

// What the source and the pipeline make of a sample, up to the cut.
inline std::string expected(const Source& source, const Pipeline& pipeline, Cut cut, SampleId id) {
  RunContext how;
  how.pool = BufferPool::create(0);
  Result<Sample> sample = source.read(id, *how.pool);
  Draws nothing;
  nothing.steps.resize(pipeline.steps().size());
  if (sample) sample = pipeline.run(std::move(sample).value(), source.cut(), cut, nothing, how);
  if (!sample) sample.failure().path = source.path(id);
  return seen(sample);
}

inline std::string from_store(const Source& store, SampleId id) {
  const auto pool = BufferPool::create(0);
  return seen(store.read(id, *pool));
}

}  // namespace cutwater::test
