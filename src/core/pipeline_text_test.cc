// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/test_ops.h"
#include "cutwater/pipeline.h"
#include "ops/all_ops.h"

namespace cutwater {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

// The ops of a text, printed again.
std::string reprinted(std::string_view text, const OpTable& table = all_ops()) {
  std::string printed;
  for (const Op& op : parse_ops(text, table))
    printed += (printed.empty() ? "" : " | ") + op.to_string();
  return printed;
}

TEST(PipelineText, ReadsAndPrints) {
  const std::pair<const char*, const char*> table[] = {
      {"", ""},
      {"  \n", ""},
      {"decode", "decode"},
      {" decode ( ) ", "decode"},
      {"decode|to_tensor", "decode | to_tensor"},
      {"resize(256)", "resize(size=256)"},
      {"resize( size = 256 )", "resize(size=256)"},
      {"resize(256, bicubic)", "resize(size=256, interpolation=\"bicubic\")"},
      {"resize(256, \"nearest-exact\")", "resize(size=256, interpolation=\"nearest-exact\")"},
      {"resize(256, 'box')", "resize(size=256, interpolation=\"box\")"},
      {"resize([192, 256])", "resize(size=[192, 256])"},
      {"resize((192, 256))", "resize(size=[192, 256])"},
      {"resize(size=(192,256,))", "resize(size=[192, 256])"},
      {"resize((256,))", "resize(size=256)"},
      {"resize(256, max_size=None)", "resize(size=256)"},
      {"resize(256, max_size=none, antialias=true)", "resize(size=256)"},
      {"resize(256, bilinear, 300, True, 12)", "resize(size=256, max_size=300, pillow=12)"},
      {"decode(exif=True)", "decode(exif=True)"},
      {"random_horizontal_flip(1)", "random_horizontal_flip(p=1.0)"},
      {"random_horizontal_flip(p=2.5e-1)", "random_horizontal_flip(p=0.25)"},
      {"normalize(mean=0.5, std=[1e-3, 2, .5])", "normalize(mean=[0.5], std=[0.001, 2, 0.5])"},
      {"pad(padding=[1,2],fill=(1 , 2 ,3 ))", "pad(padding=[1, 2], fill=[1, 2, 3])"},
  };
  for (const auto& [text, printed] : table) EXPECT_EQ(reprinted(text), printed) << text;
}

TEST(PipelineText, IsAFixedPointOfReadingAndPrinting) {
  for (const char* text :
       {"decode | resize(256) | center_crop(224) | to_tensor | normalize(0.5, 0.5)",
        "decode(exif=true) | random_resized_crop([100, 200], scale=(0.2, 1), "
        "interpolation=lanczos)",
        "decode | random_crop(32, padding=4, padding_mode=reflect) | random_vertical_flip(0.3)",
        "decode | five_crop(8) | to_tensor | to_dtype(float16, scale=True)"}) {
    const std::string once = Pipeline::parse(text, all_ops()).to_string();
    const Pipeline again = Pipeline::parse(once, all_ops());
    EXPECT_EQ(again.to_string(), once);
    EXPECT_EQ(again.fingerprint(), Pipeline::parse(text, all_ops()).fingerprint());
  }
}

TEST(PipelineText, RefusesWithThePlace) {
  const std::pair<const char*, const char*> table[] = {
      {"|", "pipeline text, character 1: expected a name, found '|'"},
      {"decode |", "pipeline text, character 9: expected a name, found the end"},
      {"decode to_tensor",
       "pipeline text, character 8: expected '|' or the end, found 'to_tensor'"},
      {"decode || to_tensor", "pipeline text, character 9: expected a name, found '| to_tensor'"},
      {"resize(256",
       "pipeline text, character 11: expected ')' after the parameters, found the end"},
      {"resize(256 300)",
       "pipeline text, character 12: expected ')' after the parameters, found '300)'"},
      {"resize(size=)", "pipeline text, character 13: expected a value, found ')'"},
      {"resize(size=25x)", "pipeline text, character 13: expected a value, found '25x)'"},
      {"resize(256,)", "pipeline text, character 12: expected a value, found ')'"},
      {"resize([1 2])",
       "pipeline text, character 11: expected ',' between the numbers of a list, found '2])'"},
      {"resize([1, x])", "pipeline text, character 12: expected a value, found 'x])'"},
      {"resize([1, 2)",
       "pipeline text, character 13: expected ',' between the numbers of a list, found ')'"},
      {"resize(256, \"box)",
       "pipeline text, character 18: expected the closing quote, found the end"},
      {"resize(256, 'box\\",
       "pipeline text, character 18: expected the closing quote, found the end"},
      {"random_horizontal_flip(p=inf)",
       "pipeline text, character 29: expected a finite number, found ')'"},
      {"random_horizontal_flip(p=-inf)",
       "pipeline text, character 26: expected a value, found '-inf)'"},
      {"random_horizontal_flip(p=1e999)",
       "pipeline text, character 26: expected a value, found '1e999)'"},
      {"center_crop(1, 2)",
       "pipeline text, character 16: center_crop: too many parameters, found '2)'"},
      {"grayscale(1, 2)",
       "pipeline text, character 14: grayscale: too many parameters, found '2)'"},
  };
  for (const auto& row : table)
    EXPECT_THAT([&] { parse_ops(row.first, all_ops()); }, ThrowsMessage<Error>(StrEq(row.second)))
        << row.first;
}

TEST(PipelineText, GuessesWhatAMistypedNameMeant) {
  EXPECT_THAT([] { parse_ops("decode | resise(256)", all_ops()); },
              ThrowsMessage<Error>(AllOf(HasSubstr("unknown op 'resise'; did you mean 'resize'?"),
                                         HasSubstr("(known: center_crop decode"))));
  EXPECT_THAT([] { parse_ops("decode | make_it_nice", all_ops()); },
              ThrowsMessage<Error>(AllOf(HasSubstr("unknown op 'make_it_nice' (known: center_crop"),
                                         Not(HasSubstr("did you mean")))));
  EXPECT_THAT([] { parse_ops("resize(sise=256)", all_ops()); },
              ThrowsMessage<Error>(StrEq("resize: unknown parameter 'sise'; did you mean 'size'? "
                                         "(known: antialias interpolation max_size pillow size)")));
  EXPECT_THAT([] { parse_ops("opaque(x=1)", test::test_table()); },
              ThrowsMessage<Error>(StrEq("opaque: unknown parameter 'x' (it takes none)")));
}

TEST(PipelineText, RefusesAParameterThatIsMissingOrTwice) {
  EXPECT_THAT(
      [] { parse_ops("resize", all_ops()); },
      ThrowsMessage<Error>(StrEq("resize: parameter 'size' is missing: Height and width; one "
                                 "number: length of the shorter side.")));
  EXPECT_THAT([] { parse_ops("resize(256, size=2)", all_ops()); },
              ThrowsMessage<Error>(StrEq("resize: parameter 'size' is given twice")));
}

// Whatever comes in, out comes a pipeline that prints and reads back, or a refusal.
TEST(PipelineText, GarbageIsRefusedOrReadNeverWorse) {
  const std::string_view pieces[] = {
      "resize", "typed", "(",  ")",    "[",    "]",    ",",
      "|",      "=",     "\"", "'",    "\\",   " ",    "1",
      "-",      ".5",    "e9", "size", "real", "list", "None",
      "True",   "nan",   "_",  "\xff", "@",    "0x",   "99999999999999999999"};
  const std::string_view zero("\0", 1);
  std::mt19937 random(11);
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = i % 2 == 0 ? "typed(real=0.5, list=[1, 2], dtype=\"int16\") | typed" : "";
    for (auto edits = 1 + random() % 6; edits > 0; --edits) {
      const std::size_t piece = random() % (std::size(pieces) + 1);
      const std::string_view what = piece < std::size(pieces) ? pieces[piece] : zero;
      const std::size_t at = random() % (text.size() + 1);
      if (random() % 3 == 0)
        text.erase(at, random() % 4);
      else
        text.insert(at, what);
    }
    try {
      const std::string once = reprinted(text, test::test_table());
      ASSERT_EQ(reprinted(once, test::test_table()), once) << text;
      ++read;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Code::kInvalidArgument) << text;
      ASSERT_STRNE(error.what(), "");
    }
  }
  EXPECT_GT(read, 500) << "the loop must reach both ends";
}

}  // namespace
}  // namespace cutwater
