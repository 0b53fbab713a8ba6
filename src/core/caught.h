// SPDX-License-Identifier: Apache-2.0
// Where what an op or a source throws becomes a value.
#pragma once

#include <new>
#include <string_view>

#include "cutwater/error.h"
#include "cutwater/sample.h"

namespace cutwater {

// The failure that the exception being handled stands for. REQUIRES: called inside a catch block.
inline Failure caught(SampleId sample, std::string_view op) {
  Failure failure;
  try {
    throw;
  } catch (const Error& error) {
    failure = error.failure();
  } catch (const std::bad_alloc&) {
    failure.code = Code::kIo;  // the machine's fault, not the sample's: never skipped
    failure.reason = "out of memory";
  } catch (const std::exception& error) {
    failure.code = Code::kInternal;
    failure.reason = error.what();
  }
  failure.sample = sample;
  if (failure.op.empty()) failure.op = op;
  return failure;
}

}  // namespace cutwater
