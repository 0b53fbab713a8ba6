// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_reply.h"

#include <hiredis/read.h>

#include <new>
#include <utility>

#include "cutwater/error.h"

namespace cutwater::redis {
namespace {

Reply::Type type_of(const redisReadTask* task) {
  switch (task->type) {
    case REDIS_REPLY_ERROR: return Reply::Type::kError;
    case REDIS_REPLY_STATUS: return Reply::Type::kStatus;
    default: return Reply::Type::kText;
  }
}

}  // namespace

// What hiredis calls for each part of an answer; null: there is no memory.
struct ReplyReader::Makers {
  static Reply* make(const redisReadTask* task, Reply::Type type) {
    try {
      Reply* const reply = static_cast<ReplyReader*>(task->privdata)->place_for(task);
      reply->type = type;
      return reply;
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  static void* text(const redisReadTask* task, char* data, std::size_t size) {
    Reply* const reply = make(task, type_of(task));
    try {
      if (reply != nullptr) reply->text.assign(data, size);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    return reply;
  }
  static void* list(const redisReadTask* task, int) { return make(task, Reply::Type::kList); }
  static void* number(const redisReadTask* task, long long value) {
    Reply* const reply = make(task, Reply::Type::kNumber);
    if (reply != nullptr) reply->number = value;
    return reply;
  }
  static void* none(const redisReadTask* task) { return make(task, Reply::Type::kNone); }
  static void let_go(void*) {}  // all belong to root_
};

ReplyReader::ReplyReader() : reader_(nullptr, redisReaderFree) {
  static redisReplyObjectFunctions makers = {Makers::text, Makers::list, Makers::number,
                                             Makers::none, Makers::let_go};
  reader_.reset(redisReaderCreateWithFunctions(&makers));
  if (reader_ == nullptr) throw std::bad_alloc();
  reader_->privdata = this;
}

// Parts are made one after another, each complete before the next: the place of a list that is
// still being read does not move.
Reply* ReplyReader::place_for(const redisReadTask* task) {
  if (task->parent == nullptr) {
    root_ = Reply{};
    return &root_;
  }
  return &static_cast<Reply*>(task->parent->obj)->parts.emplace_back();
}

void ReplyReader::feed(std::span<const std::uint8_t> bytes) {
  fed_ += bytes.size();
  if (fed_ > kMostBytes) throw Error(Code::kUnavailable, "the server's answer is too large");
  if (redisReaderFeed(reader_.get(), reinterpret_cast<const char*>(bytes.data()), bytes.size()) !=
      REDIS_OK)
    throw Error(Code::kUnavailable, std::string("not an answer of Redis: ") + reader_->errstr);
}

std::optional<Reply> ReplyReader::next() {
  void* reply = nullptr;
  if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK)
    throw Error(Code::kUnavailable, std::string("not an answer of Redis: ") + reader_->errstr);
  if (reply == nullptr) return std::nullopt;
  fed_ = reader_->len - reader_->pos;
  return std::exchange(root_, Reply{});
}

bool ReplyReader::is_empty() const { return reader_->pos == reader_->len; }

}  // namespace cutwater::redis
