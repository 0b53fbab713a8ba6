// SPDX-License-Identifier: Apache-2.0
// Pipeline text: refused as an argument, or printed so that reading the print gives the same
// pipeline.
#include "cutwater/pipeline.h"
#include "fuzz.h"
#include "ops/all_ops.h"

namespace cutwater::fuzz {

FUZZ_TARGET(pipeline_text) {
  const std::string text(input.begin(), input.end());
  std::optional<Pipeline> read;
  try {
    read = Pipeline::parse(text, all_ops());
  } catch (const Error& error) {
    require(error.code() == Code::kInvalidArgument, std::string("refused: ") + error.what());
    return;
  }
  const std::string printed = read->to_string();
  const Pipeline again = Pipeline::parse(printed, all_ops());
  require(again.to_string() == printed, "the print is stable: " + printed);
  require(again.fingerprint() == read->fingerprint(), "the print is the same pipeline: " + printed);
}

}  // namespace cutwater::fuzz
