// SPDX-License-Identifier: Apache-2.0
// A server that goes down while its makers are busy.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <utility>

#include "run/test_source.h"
#include "serve/test_server.h"

namespace cutwater::serve {
namespace {

using test::RawCall;
using test::RunningServer;

// What the op below does while it runs.
std::function<void()> op_runs;

// Leaves sixteen bytes.
struct Few {
  static constexpr std::tuple<> kParams{};
  void check() const {}
  TensorSpec out_spec(const TensorView&) const { return {DType::kU8, {16}}; }
  void apply(const TensorView& in, const TensorSpan& out) const {
    op_runs();
    std::copy_n(in.bytes(), out.spec().bytes(), out.bytes());
  }
};

constexpr OpDef kFew = define_op<Few>({"few", "For tests.", "test", "image"});
constexpr std::array<const OpDef*, 1> kOps = {&kFew};
constexpr OpTable kTable{kOps, {}};

// Nobody waits for a maker that does not come to an end, and the drain does not, either.
TEST(ServerDrain, WhatWaitsBehindAStuckMakerGoesAsStored) {
  std::promise<void> begun, open;
  op_runs = [&begun, opened = open.get_future().share()] {
    begun.set_value();
    opened.wait();
  };
  const auto source = std::make_shared<test::MemorySource>(2, 4000);
  ServerOptions options = RunningServer::serving(source);
  options.workshop.makers = 1;
  options.workshop.wait_seconds = options.workshop.most_wait_seconds = 2;
  options.drain_seconds = 20;
  RunningServer server(options, kTable);
  struct Door {
    std::promise<void>& promise;
    bool opened = false;
    void open() {
      if (!std::exchange(opened, true)) promise.set_value();
    }
    ~Door() { open(); }  // before the server waits for its maker, whatever fails here
  } door{open};
  const Pipeline pipeline = Pipeline::parse("few", kTable);
  wire::pb::FetchRequest request;
  wire::pb::Begin& begin = *request.mutable_begin();
  begin.set_version(wire::kVersion);
  begin.set_identity(source->identity());
  begin.set_pipeline(pipeline.to_string());
  begin.set_fingerprint(pipeline.fingerprint());
  begin.add_ways();
  begin.add_ways()->set_cut(1);
  for (const std::int64_t id : {0, 1}) request.add_wanted()->set_id(id);
  RawCall call(server.address());
  ASSERT_TRUE(call.write(request));
  ASSERT_EQ(begun.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  server->stop();
  const auto late = call.reply();
  door.open();
  ASSERT_TRUE(late);
  EXPECT_EQ(late->reply.way(), 0u);
  EXPECT_TRUE(late->reply.ran_less());
  const auto made = call.reply();
  ASSERT_TRUE(made) << "what a maker has begun is sent as well";
  EXPECT_EQ(made->reply.way(), 1u);
  EXPECT_FALSE(call.reply());
  EXPECT_EQ(call.finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace cutwater::serve
