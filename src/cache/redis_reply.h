// SPDX-License-Identifier: Apache-2.0
// What a server answers, read by hiredis. Answers are not trusted: their size is bounded, and
// memory follows what has come, not what has been announced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

struct redisReader;
struct redisReadTask;

namespace cutwater::redis {

struct Reply {
  enum class Type : std::uint8_t { kNone, kText, kStatus, kError, kNumber, kList };
  Type type = Type::kNone;
  std::string text;  // of kText, kStatus and kError
  std::int64_t number = 0;
  std::vector<Reply> parts;

  bool is_ok() const { return type == Type::kStatus && text == "OK"; }
  bool is_error() const { return type == Type::kError; }
  bool is_list(std::size_t least) const { return type == Type::kList && parts.size() >= least; }
};

// One thread at a time. Throws Error(kUnavailable) for what is no answer or is too large.
class ReplyReader {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;  // of one answer

  ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  void feed(std::span<const std::uint8_t> bytes);
  std::optional<Reply> next();  // nothing: more has to come
  bool is_empty() const;        // nothing is left over

 private:
  struct Makers;
  Reply* place_for(const redisReadTask* task);

  std::unique_ptr<redisReader, void (*)(redisReader*)> reader_;
  Reply root_;
  std::size_t fed_ = 0;  // since the last answer
};

}  // namespace cutwater::redis
