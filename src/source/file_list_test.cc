// SPDX-License-Identifier: Apache-2.0
#include "source/file_list.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>

#include "source/read_file.h"
#include "source/test_folder.h"

namespace cutwater {
namespace {

FileList list_of(const std::string& root, const std::vector<std::string>& paths,
                 std::vector<std::int64_t> labels = {}) {
  FileListBuilder builder(root);
  for (const std::string& path : paths) builder.add_path(path);
  return std::move(builder).finish(std::move(labels));
}

TEST(FileListTest, PathsComeBackAsGiven) {
  const std::vector<std::string> paths = {"a.jpg",   "x/b.jpg", "./c",  "../d", "/abs/e.jpg",
                                          "x/f.jpg", "x//g",    "/top", "",     "y/"};
  const FileList list = list_of("", paths);
  ASSERT_EQ(list.size(), std::ssize(paths));
  for (std::size_t i = 0; i < paths.size(); ++i) {
    EXPECT_EQ(list.path(static_cast<std::int64_t>(i)), paths[i]);
  }
}

TEST(FileListTest, RandomPathsAndLabelsComeBack) {
  std::mt19937_64 random(7);
  std::vector<std::string> paths;
  std::vector<std::int64_t> labels;
  for (int i = 0; i < 5000; ++i) {
    std::string path;
    for (std::uint64_t parts = random() % 4; parts > 0; --parts) {
      path += std::string(1, static_cast<char>('a' + random() % 3)) + "/";
    }
    paths.push_back(path + std::to_string(random()));
    labels.push_back(static_cast<std::int64_t>(random()));
  }
  const FileList list = list_of("root", paths, labels);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    ASSERT_EQ(list.path(index), "root/" + paths[i]);
    ASSERT_EQ(list.label(index), labels[i]);
  }
}

TEST(FileListTest, RootIsLeftOutBeforeAbsolutePaths) {
  const FileList list = list_of("/data/", {"a/b", "/other/c"});
  EXPECT_EQ(list.path(0), "/data/a/b");
  EXPECT_EQ(list.path(1), "/other/c");
}

TEST(FileListTest, DigestNamesOrderNamesAndLabelsButNotTheRoot) {
  const std::string digest = list_of("/one", {"a/b", "c"}, {0, 1}).digest();
  EXPECT_EQ(digest.size(), 64u);
  EXPECT_EQ(list_of("/two", {"a/b", "c"}, {0, 1}).digest(), digest);
  EXPECT_NE(list_of("/one", {"c", "a/b"}, {0, 1}).digest(), digest);
  EXPECT_NE(list_of("/one", {"a/b", "c"}, {1, 0}).digest(), digest);
  EXPECT_NE(list_of("/one", {"a/b", "c"}).digest(), digest);
  EXPECT_NE(list_of("/one", {"a/b", "d"}, {0, 1}).digest(), digest);
  EXPECT_NE(list_of("/one", {"b/b", "c"}, {0, 1}).digest(), digest);
  EXPECT_NE(list_of("/one", {"a/bc", ""}, {0, 1}).digest(), digest);
}

TEST(FileListTest, SuffixesAreComparedWithoutCase) {
  EXPECT_TRUE(has_suffix("A.JpG", ".jpg"));
  EXPECT_TRUE(has_suffix(".jpg", ".jpg"));
  EXPECT_FALSE(has_suffix("jpg", ".jpg"));
  EXPECT_FALSE(has_suffix("a.jpg.txt", ".jpg"));
}

TEST(OpenFilesTest, ReadsImageAndLabel) {
  const TestFolder folder;
  const auto source = open_files({folder.file("a", "first"), folder.file("b", "second")}, {7, -3});
  const auto pool = BufferPool::create(1 << 20);
  Result<Sample> read = source->read(1, *pool);
  const Sample& sample = read.value();
  EXPECT_EQ(sample.id, 1);
  EXPECT_EQ(sample.cut, 0);
  ASSERT_EQ(sample.fields.size(), 2u);
  EXPECT_EQ(sample.find("image")->spec(), (TensorSpec{DType::kU8, {6}}));
  EXPECT_EQ(sample.find("label")->spec(), Tensor::scalar(0).spec());
  std::int64_t label = 0;
  std::memcpy(&label, sample.find("label")->view().bytes(), sizeof label);
  EXPECT_EQ(label, -3);
  EXPECT_EQ(image_of(*source, 1), "second");
  EXPECT_TRUE(source->classes().empty());
}

TEST(OpenFilesTest, WithoutLabelsThereIsNoLabelField) {
  const TestFolder folder;
  const auto source = open_files({folder.file("a")});
  const auto pool = BufferPool::create(1 << 20);
  EXPECT_FALSE(source->has_labels());
  Result<Sample> read = source->read(0, *pool);
  EXPECT_EQ(read.value().fields.size(), 1u);
}

TEST(OpenFilesTest, RefusesWhatDoesNotFitTogether) {
  using Paths = std::vector<std::string>;
  const auto refusal = [](const Paths& paths, const std::vector<std::int64_t>& labels,
                          const Paths& classes) {
    return failure_of([&] { open_files(paths, labels, classes); });
  };
  constexpr Code kCode = Code::kInvalidArgument;
  EXPECT_THAT(refusal({}, {}, {}), FailsWith(kCode, "it is empty"));
  EXPECT_THAT(refusal({"a", "b"}, {1}, {}), FailsWith(kCode, "1 labels for 2 samples"));
  EXPECT_THAT(refusal({"a"}, {}, {"x"}), FailsWith(kCode, "class names without labels"));
  EXPECT_THAT(refusal({"a", "b"}, {0, 1}, {"x"}),
              FailsWith(kCode, "label 1 of b is outside the 1 classes"));
  EXPECT_THAT(refusal({"a"}, {-1}, {"x"}), FailsWith(kCode, "label -1 of a is outside"));
  EXPECT_THAT(refusal({"a", ""}, {}, {}), FailsWith(kCode, "path 1 is empty"));
  EXPECT_THAT(refusal({std::string("a\0b", 3)}, {}, {}), FailsWith(kCode, "zero byte"));
}

TEST(OpenFilesTest, IdentityTellsAResizedCopyFromItsOriginal) {
  const TestFolder folder;
  const std::string path = folder.file("a", "large image");
  const std::string identity = open_files({path})->identity();
  EXPECT_EQ(open_files({path})->identity(), identity);
  folder.file("a", "small");
  EXPECT_NE(open_files({path})->identity(), identity);
}

// What reading this file fails with.
Failure read_failure(const std::string& path) {
  const auto source = open_files({"unused", path});
  const auto pool = BufferPool::create(1 << 20);
  Result<Sample> sample = source->read(1, *pool);
  if (sample.ok()) {
    ADD_FAILURE() << "was read";
    return {};
  }
  EXPECT_EQ(sample.failure().sample, 1);
  EXPECT_EQ(sample.failure().path, path);
  EXPECT_EQ(sample.failure().op, "read");
  EXPECT_EQ(pool->used_bytes(), 0u);
  return sample.failure();
}

TEST(ReadFileTest, UnreadableFilesAreBadSamples) {
  const TestFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("fifo").c_str(), 0600), 0);
  folder.link("loop", "loop");
  constexpr Code kCode = Code::kBadSample;
  EXPECT_THAT(read_failure(folder.path("gone")),
              FailsWith(kCode, "cannot open: No such file or directory"));
  EXPECT_THAT(read_failure(folder.path("fifo")),
              FailsWith(kCode, "is a named pipe, not a regular file"));
  EXPECT_THAT(read_failure("/dev/zero"), FailsWith(kCode, "is a device, not a regular file"));
  EXPECT_THAT(read_failure(folder.path()), FailsWith(kCode, "is a folder, not a regular file"));
  EXPECT_THAT(read_failure(folder.file("empty", "")), FailsWith(kCode, "is empty (0 bytes)"));
  EXPECT_THAT(read_failure(folder.path("loop")), FailsWith(kCode, "a link leads to itself"));
}

TEST(ReadFileTest, SocketIsRefused) {
  const TestFolder folder;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  folder.path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(read_failure(folder.path("socket")),
              FailsWith(Code::kBadSample, "is a socket, not a regular file"));
}

TEST(ReadFileTest, AbsurdlyLargeFileIsRefusedBeforeMemoryIsTaken) {
  const TestFolder folder;
  const std::string path = folder.file("huge");
  ASSERT_EQ(::truncate(path.c_str(), std::int64_t{1} << 40), 0);
  EXPECT_THAT(read_failure(path), FailsWith(Code::kBadSample, "has 1099511627776 bytes"));
}

TEST(ReadFileTest, FileThatShrinksWhileReadIsAnError) {
  const TestFolder folder;
  const std::string path = folder.file("a", "0123456789");
  const File file = File::open(path);
  ASSERT_EQ(::truncate(path.c_str(), 4), 0);
  const auto pool = BufferPool::create(1 << 20);
  EXPECT_THAT(failure_of([&] { file.read_sample(0, file.size(), *pool); }),
              FailsWith(Code::kIo, "ends at byte 4, 6 bytes are missing"));
}

TEST(ReadFileTest, RangeOfAFile) {
  const TestFolder folder;
  const File file = File::open(folder.file("a", "0123456789"));
  const auto pool = BufferPool::create(1 << 20);
  const Buffer bytes = file.read_sample(3, 4, *pool);
  EXPECT_EQ(std::string(bytes.view().begin(), bytes.view().end()), "3456");
  EXPECT_THAT(failure_of([&] { file.text(9); }), FailsWith(Code::kInvalidArgument, "up to 9"));
}

// Skipped all the same, but nothing to be written down about the sample.
TEST(ReadFileTest, WhatTheStorageFailsToGiveIsToldFromBadFiles) {
  const auto failure_by = [](const std::function<Sample()>& read) {
    return sample_or_failure(0, read, [] { return std::string("path"); }).failure();
  };
  const std::pair<int, bool> table[] = {{EIO, true},     {ESTALE, true},  {ETIMEDOUT, true},
                                        {ENOENT, false}, {EACCES, false}, {ELOOP, false}};
  for (const auto& [number, storage] : table) {
    const int refusal = number;
    const Failure failure =
        failure_by([=]() -> Sample { throw_system_error(refusal, "path", "read"); });
    EXPECT_EQ(failure.code, Code::kBadSample);
    EXPECT_EQ(failure.storage_failed, storage) << failure.reason;
  }
  const TestFolder folder;
  EXPECT_FALSE(read_failure(folder.file("empty", "")).storage_failed);
  EXPECT_TRUE(failure_by([]() -> Sample {
                throw path_error(Code::kIo, "path", "became shorter while it was read");
              }).storage_failed);
}

// No sample is to blame when the process has no descriptor left, and none may be skipped for it.
TEST(ReadFileTest, RunningOutOfDescriptorsIsNotABadSample) {
  const TestFolder folder;
  const std::string path = folder.file("a");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Failure failure = read_failure(path);
  const Failure listing = failure_of([&] { open_folder(folder.path()); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(failure, FailsWith(Code::kIo, "raise the limit of open files"));
  EXPECT_THAT(listing, FailsWith(Code::kIo, folder.path() + ": cannot open the folder"));
}

TEST(ReadFileTest, ThreadsShareASource) {
  const TestFolder folder;
  std::vector<std::string> paths;
  for (int i = 0; i < 50; ++i) {
    paths.push_back(folder.file(std::to_string(i), "content " + std::to_string(i)));
  }
  const auto source = open_files(paths);
  std::vector<std::thread> threads;
  std::vector<std::string> identities(4);
  for (std::string& identity : identities) {
    threads.emplace_back([&] {
      identity = source->identity();
      for (SampleId id = 0; id < source->size(); ++id) {
        EXPECT_EQ(image_of(*source, id), "content " + std::to_string(id));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(identities, testing::Each(source->identity()));
}

}  // namespace
}  // namespace cutwater
