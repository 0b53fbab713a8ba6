// SPDX-License-Identifier: Apache-2.0
// A trainer that only takes: every sample of a data set on a server, as stored, so many times; as
// JSON. What it costs the server is measured from outside.
// usage: bench_fetch URL EPOCHS
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "cutwater/remote.h"
#include "ops/all_ops.h"
#include "source/fetcher.h"

namespace cutwater {
namespace {

constexpr int kMostOut = 64;  // and, as a loader does, what is used up is replaced by half of that

int run(const char* url, std::uint32_t epochs) {
  const auto source = open_remote(url);
  const FetchJob job{Pipeline::parse("decode", all_ops()), 0, "none", 1,
                     BufferPool::create(std::size_t{256} << 20)};
  const std::unique_ptr<Fetcher> fetcher = source->fetcher(job);
  const std::int64_t all = epochs * source->size();
  std::int64_t asked = 0, here = 0;
  std::uint64_t bytes = 0;
  while (here < all) {
    if (asked - here <= kMostOut / 2)
      for (; asked < all && asked - here < kMostOut; ++asked)
        fetcher->ask(static_cast<std::uint64_t>(asked), asked % source->size(), 0, true);
    for (Fetched& fetched : fetcher->wait()) {
      if (!fetched.sample || !fetched.sample->ok()) throw Error(Code::kInternal, "it is not there");
      bytes += fetched.bytes;
      ++here;
    }
  }
  std::printf("{\"samples\": %lld, \"wire_bytes\": %llu, \"stored_bytes\": %llu}\n",
              static_cast<long long>(all), static_cast<unsigned long long>(bytes),
              static_cast<unsigned long long>(fetcher->report().stored_bytes));
  return 0;
}

}  // namespace
}  // namespace cutwater

int main(int argc, char** argv) try {
  if (argc != 3) throw std::invalid_argument("usage: bench_fetch URL EPOCHS");
  return cutwater::run(argv[1], static_cast<std::uint32_t>(std::atoi(argv[2])));
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
