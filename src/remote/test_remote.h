// SPDX-License-Identifier: Apache-2.0
// For tests: loaders over servers of this process, and what they deliver.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cutwater/loader.h"
#include "cutwater/remote.h"
#include "run/test_loader.h"
#include "serve/test_server.h"

namespace cutwater::test {

inline constexpr char kTrain[] =
    "decode | random_resized_crop(24) | random_horizontal_flip | to_tensor";

inline What photos_of(std::shared_ptr<const Source> source, std::string_view pipeline = kTrain) {
  What what{std::move(source), Pipeline::parse(pipeline, all_ops()), 4};
  what.shuffle = true;
  what.seed = 11;
  return what;
}

inline HowFast by_policy(std::string policy, int threads = 2) {
  HowFast how = with_threads(threads);
  how.policy = std::move(policy);
  return how;
}

// Each sample that was delivered, whatever batch it was in: epoch, id, bytes of every field.
using Samples =
    std::map<std::pair<std::uint32_t, SampleId>, std::vector<std::vector<std::uint8_t>>>;
inline Samples samples_of(const std::vector<Seen>& batches) {
  Samples samples;
  for (const Seen& batch : batches)
    for (std::size_t i = 0; i < batch.ids.size(); ++i) {
      std::vector<std::vector<std::uint8_t>> fields;
      for (const std::vector<std::uint8_t>& field : batch.fields) {
        const std::size_t size = field.size() / batch.ids.size();
        const auto begin = field.begin() + static_cast<std::ptrdiff_t>(i * size);
        fields.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(size));
      }
      EXPECT_TRUE(samples.try_emplace({batch.epoch, batch.ids[i]}, std::move(fields)).second)
          << "sample " << batch.ids[i] << " twice in epoch " << batch.epoch;
    }
  return samples;
}

// Epochs until it is so; false: it never was, for as long as a test may take.
template <class So>
bool epochs_until(Loader& loader, So so) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!so() && std::chrono::steady_clock::now() < until) epochs(loader, 1);
  return so();
}

// Of all that came from servers.
inline std::int64_t samples_in(const FetchReport& report) {
  std::int64_t samples = 0;
  for (const FetchReport::Way& way : report.ways) samples += way.samples;
  return samples;
}

// "grpc://A,B/data"
template <class Servers>
std::string url_of(const Servers& servers) {
  std::string addresses;
  for (const auto& server : servers)
    addresses += (addresses.empty() ? "" : ",") + server->address();
  return "grpc://" + addresses + "/data";
}

}  // namespace cutwater::test
