// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "cutwater/source.h"
#include "source/test_folder.h"

namespace cutwater {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

// Paths below the folder, in the order of the source.
std::vector<std::string> listed(const Source& source, const TestFolder& folder) {
  std::vector<std::string> paths = paths_of(source);
  for (std::string& path : paths) {
    EXPECT_TRUE(path.starts_with(folder.path() + "/")) << path;
    path = path.substr(folder.path().size() + 1);
  }
  return paths;
}

// ImageFolder said once more, as plainly as can be: (path, label) of every sample.
using Samples = std::vector<std::pair<std::string, std::int64_t>>;

void walk(const fs::path& root,
          std::vector<std::pair<std::string, std::vector<std::string>>>& out) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    if (fs::is_directory(entry.path())) {
      walk(entry.path(), out);
    } else {
      files.push_back(entry.path().filename());
    }
  }
  out.emplace_back(root, files);
}

Samples image_folder(const std::string& root, const std::vector<std::string>& extensions) {
  std::vector<std::string> classes;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    if (fs::is_directory(entry.path())) classes.push_back(entry.path().filename());
  }
  std::sort(classes.begin(), classes.end());
  Samples samples;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    std::vector<std::pair<std::string, std::vector<std::string>>> roots;
    walk(root + "/" + classes[label], roots);
    std::sort(roots.begin(), roots.end());
    for (auto& [folder, files] : roots) {
      std::sort(files.begin(), files.end());
      for (const std::string& file : files) {
        std::string lower = file;
        for (char& c : lower) c = static_cast<char>(std::tolower(c));
        const bool image = std::any_of(extensions.begin(), extensions.end(),
                                       [&](const std::string& e) { return lower.ends_with(e); });
        if (image) samples.emplace_back(folder + "/" + file, static_cast<std::int64_t>(label));
      }
    }
  }
  return samples;
}

TEST(FolderTest, ClassesAreSortedSubfoldersAndLabelsTheirPlaces) {
  const TestFolder folder;
  folder.file("dog/2.png");
  folder.file("dog/10.PNG");
  folder.file("cat/x.JPEG");
  folder.file("cat/notes.txt");
  folder.file("Zebra/z.gif");
  folder.file("top.jpg");
  const auto source = open_folder(folder.path());
  EXPECT_THAT(source->classes(), ElementsAre("Zebra", "cat", "dog"));
  EXPECT_THAT(listed(*source, folder),
              ElementsAre("Zebra/z.gif", "cat/x.JPEG", "dog/10.PNG", "dog/2.png"));
  EXPECT_THAT(labels_of(*source), ElementsAre(0, 1, 2, 2));
  EXPECT_TRUE(source->has_labels());
}

TEST(FolderTest, DirectoriesOfAClassAreSortedByTheirPathAsText) {
  const TestFolder folder;
  folder.file("c/a/c/1.jpg");
  folder.file("c/a-b/1.jpg");
  folder.file("c/a/1.jpg");
  folder.file("c/z.jpg");
  EXPECT_THAT(listed(*open_folder(folder.path()), folder),
              ElementsAre("c/z.jpg", "c/a/1.jpg", "c/a-b/1.jpg", "c/a/c/1.jpg"));
}

TEST(FolderTest, RandomTreesAreListedAsImageFolderDoes) {
  const std::vector<std::string> names = {"a", "a-b", "a b", "A", "b", ".c", "a.jpg", "\xc3\xa4"};
  const std::vector<std::string> endings = {".jpg", ".JPG", ".jpeg", ".txt", "", ".png~", ".WebP"};
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    std::mt19937_64 random(seed);
    const TestFolder folder;
    const TestFolder elsewhere;
    elsewhere.file("deep/er/linked.jpg");
    const auto pick = [&](const std::vector<std::string>& from) {
      return from[random() % from.size()];
    };
    for (int i = 0; i < 60; ++i) {
      std::string path = pick(names) + "/";
      for (std::uint64_t depth = random() % 4; depth > 0; --depth) path += pick(names) + "/";
      std::error_code exists_as_file;
      fs::create_directories(folder.path(path), exists_as_file);
      if (exists_as_file) continue;
      const std::string file = folder.path(path + pick(names) + pick(endings));
      const auto kind = random() % 8;
      std::error_code taken;
      if (kind == 0) {
        fs::create_symlink(elsewhere.path("deep"), file, taken);
      } else if (kind == 1) {
        fs::create_symlink("leads/nowhere.jpg", file, taken);
      } else if (!fs::exists(file)) {
        std::ofstream(file) << "x";
      }
    }
    FolderOptions options;
    options.allow_empty = true;
    const Samples expected = image_folder(folder.path(), options.extensions);
    ASSERT_FALSE(expected.empty());
    const auto source = open_folder(folder.path(), options);
    ASSERT_EQ(source->size(), std::ssize(expected)) << "seed " << seed;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto id = static_cast<SampleId>(i);
      ASSERT_EQ(source->path(id), expected[i].first) << "seed " << seed;
      ASSERT_EQ(source->label(id), expected[i].second) << "seed " << seed;
    }
  }
}

TEST(FolderTest, LinksAreFollowed) {
  const TestFolder folder;
  const TestFolder elsewhere;
  elsewhere.file("cats/1.jpg", "linked");
  folder.link("cat", elsewhere.path("cats"));
  folder.file("dog/1.jpg");
  folder.link("dog/more", elsewhere.path("cats"));
  folder.link("dog/2.jpg", elsewhere.path("cats/1.jpg"));
  const auto source = open_folder(folder.path());
  EXPECT_THAT(source->classes(), ElementsAre("cat", "dog"));
  EXPECT_THAT(listed(*source, folder),
              ElementsAre("cat/1.jpg", "dog/1.jpg", "dog/2.jpg", "dog/more/1.jpg"));
  EXPECT_EQ(image_of(*source, 2), "linked");
}

TEST(FolderTest, LinkThatLeadsNowhereIsListedAndFailsWhenRead) {
  const TestFolder folder;
  folder.folder("a");
  folder.link("a/1.jpg", "gone");
  const auto source = open_folder(folder.path());
  const auto pool = BufferPool::create(1 << 20);
  Result<Sample> sample = source->read(0, *pool);
  ASSERT_FALSE(sample.ok());
  EXPECT_THAT(sample.failure(), FailsWith(Code::kBadSample, "No such file or directory"));
  EXPECT_EQ(sample.failure().path, folder.path("a/1.jpg"));
}

TEST(FolderTest, LinkCycleIsNamed) {
  for (const char* target : {"..", "../..", "."}) {
    const TestFolder folder;
    folder.file("a/b/1.jpg");
    folder.link("a/b/back", target);
    EXPECT_THAT(failure_of([&] { open_folder(folder.path()); }),
                FailsWith(Code::kInvalidArgument,
                          folder.path("a/b/back") + ": a link leads back to a folder"));
  }
}

TEST(FolderTest, FlatFolderHasNoLabels) {
  const TestFolder folder;
  folder.file("b.jpg", "second");
  folder.file("a.png", "first");
  folder.file("readme.md");
  const auto source = open_folder(folder.path() + "/");
  EXPECT_THAT(listed(*source, folder), ElementsAre("a.png", "b.jpg"));
  EXPECT_FALSE(source->has_labels());
  EXPECT_THAT(source->classes(), IsEmpty());
  EXPECT_EQ(image_of(*source, 1), "second");
}

TEST(FolderTest, SubfoldersWithoutImagesDoNotMakeClasses) {
  const TestFolder folder;
  folder.file("b.jpg");
  folder.file("notes/readme.txt");
  const auto source = open_folder(folder.path());
  EXPECT_THAT(listed(*source, folder), ElementsAre("b.jpg"));
  EXPECT_FALSE(source->has_labels());
}

TEST(FolderTest, EmptyClassIsAnErrorUnlessAllowed) {
  const TestFolder folder;
  folder.file("b/1.jpg");
  folder.folder("a");
  folder.file("c/1.txt");
  const Failure failure = failure_of([&] { open_folder(folder.path()); });
  EXPECT_THAT(failure,
              FailsWith(Code::kNotFound, "no image in the classes a, c; looked for .jpg,"));
  EXPECT_THAT(failure, FailsWith(Code::kNotFound, "allow_empty=True"));
  FolderOptions options;
  options.allow_empty = true;
  const auto source = open_folder(folder.path(), options);
  EXPECT_THAT(source->classes(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(labels_of(*source), ElementsAre(1));
}

TEST(FolderTest, ManyEmptyClassesAreCounted) {
  const TestFolder folder;
  folder.file("a/1.jpg");
  for (int i = 10; i < 25; ++i) folder.folder(std::to_string(i));
  EXPECT_THAT(failure_of([&] { open_folder(folder.path()); }),
              FailsWith(Code::kNotFound, "18, 19 and 5 more"));
}

TEST(FolderTest, ExtensionsAreTheCallersChoice) {
  const TestFolder folder;
  folder.file("a.jpg");
  folder.file("b.RAW");
  FolderOptions options;
  options.extensions = {".Raw"};
  EXPECT_THAT(listed(*open_folder(folder.path(), options), folder), ElementsAre("b.RAW"));
  options.extensions = {};
  EXPECT_THAT(failure_of([&] { open_folder(folder.path(), options); }),
              FailsWith(Code::kInvalidArgument, "no file extension is given"));
}

TEST(FolderTest, WhatCannotBeListedIsNamed) {
  const TestFolder folder;
  EXPECT_THAT(failure_of([&] { open_folder(folder.path("gone")); }),
              FailsWith(Code::kNotFound, folder.path("gone") + ": cannot open the folder"));
  EXPECT_THAT(failure_of([&] { open_folder(folder.file("file.jpg")); }),
              FailsWith(Code::kInvalidArgument, folder.path("file.jpg") + ": is not a folder"));
  folder.folder("empty/a");
  EXPECT_THAT(failure_of([&] { open_folder(folder.path("empty")); }),
              FailsWith(Code::kNotFound,
                        "no image in this folder or its subfolders; looked for "
                        ".jpg, .jpeg, .png, .ppm, .bmp, .pgm, .tif, .tiff, "
                        ".webp, .gif"));
}

TEST(FolderTest, UnreadableFolderIsNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const TestFolder folder;
  folder.file("a/1.jpg");
  folder.file("b/2.jpg");
  ASSERT_EQ(::chmod(folder.path("b").c_str(), 0), 0);
  EXPECT_THAT(
      failure_of([&] { open_folder(folder.path()); }),
      FailsWith(Code::kIo, folder.path("b") + ": cannot open the folder: Permission denied"));
  ASSERT_EQ(::chmod(folder.path("b").c_str(), 0700), 0);
}

// Deeper than any path can name; also what ends the descent where links do not.
TEST(FolderTest, TooDeepATreeIsAnErrorNotACrash) {
  const TestFolder folder;
  const std::string name(200, 'd');
  int fd = ::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(::mkdirat(fd, name.c_str(), 0700), 0);
    const int deeper = ::openat(fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_GE(deeper, 0);
    ::close(fd);
    fd = deeper;
  }
  ::close(fd);
  EXPECT_THAT(failure_of([&] { open_folder(folder.path()); }),
              FailsWith(Code::kIo, "File name too long"));
}

TEST(FolderTest, IdentityFollowsTheListingNotThePlace) {
  const TestFolder one;
  const TestFolder two;
  for (const TestFolder* folder : {&one, &two}) {
    folder->file("a/1.jpg");
    folder->file("b/1.jpg");
  }
  const std::string identity = open_folder(one.path())->identity();
  EXPECT_EQ(open_folder(two.path())->identity(), identity);
  two.file("b/2.jpg");
  EXPECT_NE(open_folder(two.path())->identity(), identity);
}

TEST(OpenSourceTest, OpensFoldersAndSaysWhatItAccepts) {
  const TestFolder folder;
  folder.file("a{b}/x.jpg");
  EXPECT_EQ(open_source(folder.path("a{b}"))->size(), 1);  // a name before a pattern
  EXPECT_THAT(failure_of([&] { open_source(folder.path("gone")); }),
              FailsWith(Code::kNotFound, "no such data; accepted are a folder of images"));
  EXPECT_THAT(failure_of([&] { open_source(folder.file("x.zip")); }),
              FailsWith(Code::kInvalidArgument, "not a kind of data known here; accepted are"));
}

}  // namespace
}  // namespace cutwater
