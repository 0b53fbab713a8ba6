// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <latch>

#include "core/machine.h"
#include "core/thread_clock.h"
#include "run/test_source.h"
#include "serve/workshop.h"

namespace cutwater::serve {
namespace {

constexpr int kSamples = 100;
constexpr std::int64_t kSampleBytes = 40'000;
constexpr double kSendingSeconds = 1e-4;  // of each answer

// What a workshop with so many makers finds that a byte costs whose answers take their time to
// leave.
double cost_with(int makers) {
  const Pipeline nothing(OpTable{});
  const auto stream = std::make_shared<Stream>(
      Stream{std::make_shared<test::MemorySource>(kSamples, kSampleBytes), nothing});
  stream->book = std::make_shared<WayBook>(nothing, std::vector<Way>(1));
  WorkshopOptions options;
  options.makers = makers;
  Workshop shop(options);
  std::latch sent(kSamples);
  Workshop::Client client(shop, [&](std::vector<Answer> answers) {
    const double until = thread_seconds() + kSendingSeconds * static_cast<double>(answers.size());
    while (thread_seconds() < until) {
    }
    sent.count_down(static_cast<std::ptrdiff_t>(answers.size()));
  });
  std::vector<Order> orders;
  for (std::uint64_t token = 0; token < kSamples; ++token)
    orders.push_back({token, static_cast<SampleId>(token), 0, 0, stream});
  client.order(std::move(orders));
  sent.wait();
  shop.look_after();
  return shop.send_seconds_per_byte();
}

TEST(WorkshopSending, CostsMakersThatHaveNoCoresOfTheirOwn) {
  EXPECT_GE(cost_with(usable_cores()), 0.999 * kSendingSeconds / (kSampleBytes + 100));
}

TEST(WorkshopSending, CostsNoMakersThatThereAreNot) { EXPECT_EQ(cost_with(0), 0); }

}  // namespace
}  // namespace cutwater::serve
