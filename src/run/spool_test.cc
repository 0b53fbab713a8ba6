// SPDX-License-Identifier: Apache-2.0
#include "run/spool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "run/test_source.h"

namespace cutwater {
namespace {

constexpr std::int64_t kSamples = 5;

class SpoolTest : public testing::Test {
 protected:
  Sample sample(SampleId id) const { return source.read(id, *pool).value(); }
  // The first byte of what is there; -1: nothing.
  int found(const Spool& spool, SampleId id) const {
    const std::optional<Sample> sample = spool.find(id, *pool);
    return sample ? *sample->fields[0].tensor.view().bytes() : -1;
  }

  const test::MemorySource source{kSamples};
  const std::shared_ptr<BufferPool> pool = BufferPool::create(std::size_t{1} << 20);
  const std::string folder = std::filesystem::temp_directory_path().string();
};

TEST_F(SpoolTest, GivesBackWhatWasAdded) {
  Spool spool(folder, kSamples, 0);
  for (const SampleId id : {3, 1}) spool.add(sample(id));
  spool.add(sample(3));
  EXPECT_EQ(spool.samples(), 2);
  for (SampleId id = 0; id < kSamples; ++id) {
    EXPECT_EQ(spool.has(id), id == 1 || id == 3);
    EXPECT_EQ(found(spool, id), spool.has(id) ? static_cast<int>(id) : -1);
  }
  spool.clear();
  EXPECT_THROW(found(spool, 1), Error);
}

TEST_F(SpoolTest, AForkedProcessHasItsOwn) {
  Spool spool(folder, kSamples, 0);
  std::array<int, 2> go;
  ASSERT_EQ(::pipe(go.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // adds another sample once the parent has added its own
    char byte = 0;
    const bool told = ::read(go[0], &byte, 1) == 1;
    if (told) spool.add(sample(4));
    ::_exit(told && found(spool, 4) == 4 ? 0 : 1);
  }
  spool.add(sample(2));
  ASSERT_EQ(::write(go[1], "!", 1), 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(found(spool, 2), 2);
  for (const int fd : go) ::close(fd);
}

}  // namespace
}  // namespace cutwater
