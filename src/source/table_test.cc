// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "cutwater/source.h"
#include "source/test_folder.h"

namespace cutwater {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::shared_ptr<const Source> table(const TestFolder& folder, std::string_view text,
                                    const std::string& name = "t.csv") {
  return open_table(folder.file(name, text));
}

Failure refusal(std::string_view text) {
  const TestFolder folder;
  return failure_of([&] { table(folder, text); });
}

TEST(TableTest, PathsAreRelativeToTheTable) {
  const TestFolder folder;
  folder.file("sub/a.jpg", "bytes of a");
  const auto source = table(folder, "path\na.jpg\n/abs/b.jpg\n", "sub/t.csv");
  EXPECT_THAT(paths_of(*source), ElementsAre(folder.path("sub/a.jpg"), "/abs/b.jpg"));
  EXPECT_FALSE(source->has_labels());
  EXPECT_EQ(image_of(*source, 0), "bytes of a");
}

TEST(TableTest, WholeNumbersAreLabelsAsTheyAre) {
  const TestFolder folder;
  const auto source = table(folder, "label,path\n7,a\n-1,b\n007,c\n5000000000,d\n");
  EXPECT_THAT(labels_of(*source), ElementsAre(7, -1, 7, 5000000000));
  EXPECT_THAT(source->classes(), IsEmpty());
}

TEST(TableTest, OtherLabelsAreClassNames) {
  const TestFolder folder;
  const auto source = table(folder, "path,label\na,dog\nb,cat\nc,dog\nd,10\n");
  EXPECT_THAT(source->classes(), ElementsAre("10", "cat", "dog"));
  EXPECT_THAT(labels_of(*source), ElementsAre(2, 1, 2, 0));
}

TEST(TableTest, ColumnsAreFoundByTheirNames) {
  const TestFolder folder;
  const auto source = table(folder, "id,label,split,path\n1,5,train,x\n2,6,val,y\n");
  EXPECT_THAT(paths_of(*source), ElementsAre(folder.path("x"), folder.path("y")));
  EXPECT_THAT(labels_of(*source), ElementsAre(5, 6));
}

TEST(TableTest, QuotesByteOrderMarkAndLineEnds) {
  const TestFolder folder;
  const auto source = table(folder,
                            "\xEF\xBB\xBF\"path\",label\r\n"
                            "\"a, b.jpg\",\"say \"\"hi\"\"\"\r\n"
                            "\r\n"
                            "\"two\nlines\",x\n"
                            "lone\rreturn,y");
  EXPECT_THAT(paths_of(*source), ElementsAre(folder.path("a, b.jpg"), folder.path("two\nlines"),
                                             folder.path("lone\rreturn")));
  EXPECT_THAT(source->classes(), ElementsAre("say \"hi\"", "x", "y"));
}

TEST(TableTest, TabsSeparateInTsv) {
  const TestFolder folder;
  const auto source = table(folder, "path\tlabel\na,b.jpg\t3\n", "t.TSV");
  EXPECT_THAT(paths_of(*source), ElementsAre(folder.path("a,b.jpg")));
  EXPECT_THAT(labels_of(*source), ElementsAre(3));
}

TEST(TableTest, RandomTablesComeBack) {
  std::mt19937_64 random(11);
  constexpr std::string_view kLetters = "ab,\"\n\r\t /.";
  for (int round = 0; round < 200; ++round) {
    const char* line_end = random() % 2 == 0 ? "\n" : "\r\n";
    std::string text = std::string("path,other,label") + line_end;
    std::vector<std::string> paths;
    std::vector<std::string> labels;
    const auto field = [&](const std::string& start) {
      std::string value = start;
      for (std::uint64_t n = random() % 6; n > 0; --n)
        value += kLetters[random() % kLetters.size()];
      std::string quoted = "\"";
      for (const char c : value) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
      const bool plain = value.find_first_of(",\"\n\r") == std::string::npos;
      text += plain && random() % 2 == 0 ? value : quoted + "\"";
      return value;
    };
    const auto rows = 1 + random() % 5;
    for (std::uint64_t row = 0; row < rows; ++row) {
      paths.push_back(field("p"));
      text += ",";
      field("");
      text += ",";
      labels.push_back(field("l"));
      if (row + 1 < rows || random() % 2 == 0) text += line_end;
    }
    const TestFolder folder;
    const auto source = table(folder, text);
    ASSERT_EQ(source->size(), std::ssize(paths)) << text;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const auto id = static_cast<SampleId>(i);
      ASSERT_EQ(source->path(id), folder.path(paths[i])) << text;
      ASSERT_EQ(source->classes()[static_cast<std::size_t>(source->label(id))], labels[i]) << text;
    }
  }
}

TEST(TableTest, MistakesAreNamedWithLineAndColumn) {
  constexpr Code kCode = Code::kInvalidArgument;
  EXPECT_THAT(refusal(""), FailsWith(kCode, "is empty; the first line must be a header"));
  EXPECT_THAT(
      refusal("file,label\na,1\n"),
      FailsWith(kCode, "line 1: the header has no column 'path'; its columns are: file, label"));
  EXPECT_THAT(refusal("path,label,path\n"),
              FailsWith(kCode, "line 1: the header has column 'path' twice (columns 1 and 3)"));
  EXPECT_THAT(refusal("path,label\na,1\n\nb\n"),
              FailsWith(kCode, "line 4: has 1 columns, the header has 2"));
  EXPECT_THAT(refusal("path\na,b\n"), FailsWith(kCode, "line 2: has 2 columns, the header has 1"));
  EXPECT_THAT(refusal("path,label\n\"x\ny\",1\n,1\n"),
              FailsWith(kCode, "line 4: column 'path' is empty"));
  EXPECT_THAT(refusal("path,label\na,\n"), FailsWith(kCode, "line 2: column 'label' is empty"));
  EXPECT_THAT(refusal("path,label\na,\"b\n\n"),
              FailsWith(kCode, "line 2: column 2: a quoted field is not closed"));
  EXPECT_THAT(refusal("path\na\"b\n"),
              FailsWith(kCode, "line 2: column 1: a quote inside a field"));
  EXPECT_THAT(refusal("path\n\"a\"b\n"),
              FailsWith(kCode, "line 2: column 1: text follows a closing quote"));
  EXPECT_THAT(refusal(std::string_view("path\na\0b\n", 9)), FailsWith(kCode, "has a zero byte"));
  EXPECT_THAT(refusal("path,label\n"), FailsWith(Code::kNotFound, "has a header but no rows"));
}

TEST(TableTest, FileThatCannotBeOpenedIsNamed) {
  const TestFolder folder;
  EXPECT_THAT(failure_of([&] { open_table(folder.path("gone.csv")); }),
              FailsWith(Code::kNotFound, folder.path("gone.csv") + ": cannot open"));
  EXPECT_THAT(failure_of([&] { open_table(folder.path()); }),
              FailsWith(Code::kInvalidArgument, "is a folder, not a regular file"));
}

TEST(TableTest, OpenSourceTakesTables) {
  const TestFolder folder;
  EXPECT_EQ(open_source(folder.file("a.CSV", "path\nx\ny\n"))->size(), 2);
  EXPECT_EQ(open_source(folder.file("a.tsv", "path\tlabel\nx\t1\n"))->label(0), 1);
  EXPECT_THAT(failure_of([&] { open_source(folder.path("gone.csv")); }),
              FailsWith(Code::kNotFound, "No such file"));
}

}  // namespace
}  // namespace cutwater
