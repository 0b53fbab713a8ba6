// SPDX-License-Identifier: Apache-2.0
#include "cutwater/param.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "core/pipeline_text.h"
#include "core/test_ops.h"

namespace cutwater {
namespace {

using ::testing::StrEq;
using ::testing::ThrowsMessage;

Op typed(const NamedValues& values) { return make_op(test::test_table(), "typed", values); }

Value param_of(const Op& op, std::string_view name) {
  for (const auto& [param, value] : op.params())
    if (param == name) return value;
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

TEST(Value, PrintsAsPythonWould) {
  const std::pair<Value, const char*> table[] = {
      {Value{}, "None"},
      {Value{true}, "True"},
      {Value{false}, "False"},
      {Value{std::int64_t{224}}, "224"},
      {Value{std::int64_t{-1}}, "-1"},
      {Value{0.5}, "0.5"},
      {Value{256.0}, "256.0"},
      {Value{1e30}, "1e+30"},
      {Value{0.1}, "0.1"},
      {Value{std::string("bilinear")}, "\"bilinear\""},
      {Value{std::string("a\"b\\c")}, "\"a\\\"b\\\\c\""},
      {Value{List{}}, "[]"},
      {Value{List{0.485, 3, -2}}, "[0.485, 3, -2]"},
  };
  for (const auto& [value, text] : table) EXPECT_EQ(to_text(value), text);
}

// Text is how parameters travel to other processes: each must come back bit by bit.
TEST(Value, OfEveryTypeSurvivesTheTripThroughText) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  const NamedValues table = {
      {"truth", true},
      {"whole", std::int64_t{0}},
      {"whole", kMost},
      {"whole", kLeast},
      {"maybe", Value{}},
      {"maybe", std::int64_t{7}},
      {"real", 1.0 / 3},
      {"real", 1e300},
      {"real", std::numeric_limits<double>::denorm_min()},
      {"real", std::numeric_limits<double>::max()},
      {"real", 123456789012345680.0},
      {"real", -0.0},
      {"list", List{0.1, 0.2, 1.0 / 3}},
      {"list", List{1e22, 9223372036854775808.0, -5}},
      {"list", List{-0.0}},
      {"list", Value{}},
      {"size", std::int64_t{224}},
      {"size", List{192, 256}},
      {"dtype", std::string("float64")},
  };
  for (const auto& named : table) {
    const Op op = typed({named});
    for (const std::string& text : {op.to_string(), op.canonical_text()}) {
      const std::vector<Op> read = parse_ops(text.substr(0, text.find('@')), test::test_table());
      ASSERT_EQ(read.size(), 1U);
      EXPECT_EQ(read[0].canonical_text(), op.canonical_text()) << text;
      EXPECT_EQ(param_of(read[0], named.first), param_of(op, named.first)) << text;
    }
  }
}

TEST(Value, RandomDoublesSurviveTheTripThroughText) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const double number = std::bit_cast<double>(random());
    if (!std::isfinite(number)) continue;
    const Op op = typed({{"real", number}, {"list", List{number, 1}}});
    const Op read = parse_ops(op.to_string(), test::test_table()).at(0);
    ASSERT_EQ(read.canonical_text(), op.canonical_text());
    ASSERT_EQ(std::get<double>(param_of(read, "real")), number);
    ASSERT_EQ(std::get<List>(param_of(read, "list"))[0], number);
  }
}

TEST(ParamType, TakesWhatPythonUsersWrite) {
  struct {
    const char* param;
    Value given, kept;
  } const table[] = {
      {"whole", 256.0, std::int64_t{256}},  // a float that is whole
      {"real", std::int64_t{1}, 1.0},       // an int where a float is wanted
      {"list", 0.5, List{0.5}},             // one number for a list
      {"list", std::int64_t{2}, List{2}},
      {"list", List{}, Value{}},  // an empty list is None
      {"size", 32.0, std::int64_t{32}},
      {"size", List{32}, std::int64_t{32}},  // torchvision reads [256] as 256
      {"size", List{32, 64}, List{32, 64}},
      {"maybe", 8.0, std::int64_t{8}},
  };
  for (const auto& row : table)
    EXPECT_EQ(param_of(typed({{row.param, row.given}}), row.param), row.kept)
        << row.param << " " << to_text(row.given);
}

TEST(ParamType, RefusesOtherTypesWithWhatItWanted) {
  struct {
    const char* param;
    Value given;
    const char* message;
  } const table[] = {
      {"truth", std::int64_t{1}, "typed: truth must be true or false, got 1"},
      {"truth", Value{}, "typed: truth must be true or false, got None"},
      {"whole", 0.5, "typed: whole must be a whole number, got 0.5"},
      {"whole", 1e300, "typed: whole must be a whole number, got 1e+300"},
      {"whole", true, "typed: whole must be a whole number, got True"},
      {"whole", Value{}, "typed: whole must be a whole number, got None"},
      {"maybe", std::string("x"), "typed: maybe must be a whole number or None, got \"x\""},
      {"real", std::string("x"), "typed: real must be a number, got \"x\""},
      {"real", List{1}, "typed: real must be a number, got [1]"},
      {"list", true, "typed: list must be a number or a list of numbers, got True"},
      {"size", List{1, 2, 3},
       "typed: size must be a whole number or [height, width], got [1, 2, 3]"},
      {"size", List{}, "typed: size must be a whole number or [height, width], got []"},
      {"size", List{1, 2.5}, "typed: size must be a whole number or [height, width], got [1, 2.5]"},
      {"dtype", std::string("float"),
       "typed: dtype must be one of uint8, int16, int32, int64, float16, float32, float64, got "
       "\"float\""},
      {"dtype", std::int64_t{1},
       "typed: dtype must be one of uint8, int16, int32, int64, float16, float32, float64, got 1"},
  };
  for (const auto& row : table)
    EXPECT_THAT([&] { typed({{row.param, row.given}}); }, ThrowsMessage<Error>(StrEq(row.message)));
}

TEST(Op, PrintsWhatDiffersFromTheDefault) {
  EXPECT_EQ(typed({}).to_string(), "typed");
  EXPECT_EQ(typed({{"real", 0.5}}).to_string(), "typed");
  EXPECT_EQ(typed({{"real", 0.25}, {"truth", true}}).to_string(), "typed(truth=True, real=0.25)");
  EXPECT_EQ(
      typed({}).canonical_text(),
      "typed(truth=False, whole=1, maybe=None, real=0.5, list=[1], size=2, dtype=\"uint8\")@1");
}

TEST(OpDef, TellsOfItsParameters) {
  const std::vector<ParamInfo> infos = test::kTyped.params();
  ASSERT_EQ(infos.size(), 7U);
  EXPECT_EQ(infos[3].name, "real");
  EXPECT_EQ(infos[3].doc, "A double.");
  EXPECT_EQ(infos[3].python_type, "float");
  EXPECT_EQ(infos[3].default_value, Value{0.5});
  EXPECT_FALSE(infos[3].required);
  EXPECT_TRUE(test::kPixels.params()[0].required);
}

TEST(Size, Prints) {
  EXPECT_EQ(to_string(Size{224, {}}), "224");
  EXPECT_EQ(to_string(Size{192, 256}), "192x256");
  EXPECT_EQ((Size{192, 256}).width_or_square(), 256);
  EXPECT_EQ((Size{192, {}}).width_or_square(), 192);
}

}  // namespace
}  // namespace cutwater
