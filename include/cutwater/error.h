// SPDX-License-Identifier: Apache-2.0
// Errors: thrown as Error inside a thread, carried as Result<T> across threads, queues and wires.
// See docs/adr/0002-throw-inside-result-across.md.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace cutwater {

enum class Code : std::uint8_t {
  kInvalidArgument,  // the caller asked for something that cannot be; Python: ValueError
  kNotFound,         // a file or folder is missing; Python: FileNotFoundError
  kBadSample,    // this one sample cannot be delivered; handled by on_error; Python: SampleError
  kIo,           // the operating system refused; Python: OSError
  kUnavailable,  // a service is gone
  kTimeout,      // a wait ended without its condition
  kStale,        // kept results are of other data or of another pipeline; Python: StaleStore
  kCancelled,    // the work was closed or restarted under the caller
  kInternal,     // a defect of ours
};

std::string_view name_of(Code code);

// What went wrong, and where. Whoever knows a part of "where" fills it in on the way up.
struct Failure {
  Code code = Code::kInternal;
  std::string reason;        // names the thing, the value and the way out
  std::int64_t sample = -1;  // sample id, or -1 when no sample is concerned
  std::string path;          // where the sample comes from
  std::string op;            // the op that refused it; "read" for the source
  // What it was to be read from failed, or was damaged: the sample itself may be sound, so nobody
  // should write down for good that it is bad.
  bool storage_failed = false;

  std::string message() const;
};

class Error : public std::exception {
 public:
  Error(Code code, std::string reason) : Error(Failure{code, std::move(reason), -1, {}, {}}) {}
  explicit Error(Failure failure) : failure_(std::move(failure)), what_(failure_.message()) {}

  const char* what() const noexcept override { return what_.c_str(); }
  Code code() const { return failure_.code; }
  const Failure& failure() const { return failure_; }

 private:
  Failure failure_;
  std::string what_;
};

// A value or the reason why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: !ok()
  const Failure& failure() const { return std::get<1>(state_); }
  Failure& failure() { return std::get<1>(state_); }

  // Throws Error when there is no value.
  T& value() & {
    if (!ok()) throw Error(failure());
    return std::get<0>(state_);
  }
  T&& value() && { return std::move(value()); }

 private:
  std::variant<T, Failure> state_;
};

}  // namespace cutwater
