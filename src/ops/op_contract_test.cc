// SPDX-License-Identifier: Apache-2.0
// What every op of the table promises (cutwater/op.h). A new op is tested here as soon as it has an
// example in test_images.h, and this suite fails until it has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "core/pipeline_text.h"
#include "cutwater/op.h"
#include "cutwater/pipeline.h"
#include "ops/all_ops.h"
#include "ops/test_images.h"

namespace cutwater {
namespace {

using test::Data;
using test::Example;
using test::Input;
using test::Kind;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

Op op_of(const Example& example) { return parse_ops(example.text, all_ops()).at(0); }

std::string_view name_of(const Example& example) {
  return example.text.substr(0, example.text.find('('));
}

TensorView view_of(const Input& input, test::Exact& bytes) { return {input.spec, bytes.data()}; }

Rng rng_of(std::uint64_t seed, std::uint32_t epoch, std::uint64_t sample) {
  return Rng({seed, epoch, sample, 16});
}

// Nothing where the op refuses this very sample (an image smaller than its window).
std::optional<DrawnValues> drawn_for(const Op& op, const TensorView& in, const Rng& rng) {
  try {
    const DrawnValues drawn = op.def().draw(op.raw(), in.spec(), rng);
    (void)op.def().out_spec(op.raw(), in, drawn);
    return drawn;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kBadSample) << error.what();
    return std::nullopt;
  }
}

// Applies between canaries, over a background that shows what was not written.
Data applied(const Op& op, const TensorView& in, const DrawnValues& drawn,
             std::uint8_t background) {
  constexpr std::size_t kCanary = 64;
  const TensorSpec spec = op.def().out_spec(op.raw(), in, drawn);
  if (op.def().produce != nullptr) {
    const auto pool = BufferPool::create(1 << 20);
    const Tensor made = op.def().produce(op.raw(), in, drawn, *pool);
    TensorSpec expected = spec;
    EXPECT_EQ(expected.shape[0], kUnknown);
    expected.shape[0] = made.spec().shape[0];
    EXPECT_EQ(made.spec(), expected);
    return {made.view().bytes(), made.view().bytes() + made.spec().bytes()};
  }
  EXPECT_TRUE(spec.shape.known());
  Buffer memory(spec.bytes() + 2 * kCanary);
  std::ranges::fill(memory.span(), background);
  std::memset(memory.data(), 0xc3, kCanary);
  std::memset(memory.data() + kCanary + spec.bytes(), 0xc3, kCanary);
  op.def().apply(op.raw(), in, drawn, TensorSpan(spec, memory.data() + kCanary));
  const Data canary(kCanary, 0xc3);
  EXPECT_EQ(std::memcmp(memory.data(), canary.data(), kCanary), 0) << "wrote before its output";
  EXPECT_EQ(std::memcmp(memory.data() + kCanary + spec.bytes(), canary.data(), kCanary), 0)
      << "wrote behind its output";
  return {memory.data() + kCanary, memory.data() + kCanary + spec.bytes()};
}

// Calls check(op, view) for each example and input that goes with it.
void for_each_case(const std::function<void(const Op&, const TensorView&)>& check) {
  for (const Example& example : test::examples()) {
    const Op op = op_of(example);
    int cases = 0;
    for (const Kind kind : example.takes)
      for (const Input& input : test::inputs_of(kind)) {
        SCOPED_TRACE(std::string(example.text) + " on " + to_string(input.spec));
        test::Exact bytes(input.bytes);
        const TensorView view = view_of(input, bytes);
        // Three-valued means are for three channels only.
        if (op.def().name == "normalize" && input.spec.shape.from_end(3) != 3) continue;
        check(op, view);
        ++cases;
      }
    EXPECT_GT(cases, 0);
  }
}

TEST(OpContract, EveryOpHasAnExampleForEveryParameter) {
  for (const OpDef* def : all_ops().ops) {
    std::set<std::string> given;
    int count = 0;
    for (const Example& example : test::examples())
      if (name_of(example) == def->name) {
        ++count;
        const NamedValues values = op_of(example).params();
        for (std::size_t i = 0; i < values.size(); ++i)
          if (def->params()[i].required || values[i].second != def->params()[i].default_value)
            given.insert(values[i].first);
      }
    EXPECT_GT(count, 0) << "op '" << def->name << "' has no example in src/ops/test_images.h";
    EXPECT_FALSE(def->doc.empty()) << def->name;
    for (const ParamInfo& info : def->params()) {
      EXPECT_FALSE(info.doc.empty()) << def->name << "." << info.name;
      // Only True is allowed; the padding of random_crop is another op's (pipeline_test.cc).
      if (info.name == "antialias" || (def->name == "random_crop" && info.name == "padding"))
        continue;
      EXPECT_TRUE(given.contains(std::string(info.name)))
          << "no example gives " << def->name << "." << info.name;
    }
  }
}

TEST(OpContract, WritesExactlyItsOutput) {
  for_each_case([](const Op& op, const TensorView& in) {
    for (std::uint64_t sample = 0; sample < 8; ++sample) {
      const auto drawn = drawn_for(op, in, rng_of(1, 0, sample));
      if (!drawn) continue;
      ASSERT_EQ(applied(op, in, *drawn, 0x00), applied(op, in, *drawn, 0xff))
          << "left bytes unwritten";
    }
  });
}

TEST(OpContract, TheSameKeyGivesTheSameDraw) {
  for_each_case([](const Op& op, const TensorView& in) {
    for (std::uint64_t sample = 0; sample < 8; ++sample) {
      const auto drawn = drawn_for(op, in, rng_of(1, 2, sample));
      if (!drawn) continue;
      EXPECT_EQ(op.def().draw(op.raw(), in.spec(), rng_of(1, 2, sample)).bytes, drawn->bytes);
      EXPECT_EQ(op.def().draw_values(*drawn).empty(), !op.def().draws);
    }
  });
}

TEST(OpContract, AnotherKeyGivesAnotherDraw) {
  // Per op: whether seed, epoch and sample each ever made a difference.
  std::map<std::string_view, std::array<bool, 3>> matters;
  for_each_case([&](const Op& op, const TensorView& in) {
    if (!op.def().draws) return;
    for (std::uint64_t i = 1; i < 64; ++i) {
      const auto base = drawn_for(op, in, rng_of(0, 0, 0));
      if (!base) return;
      const Rng others[] = {rng_of(i, 0, 0), rng_of(0, static_cast<std::uint32_t>(i), 0),
                            rng_of(0, 0, i)};
      for (std::size_t k = 0; k < 3; ++k)
        matters[op.def().name][k] |= drawn_for(op, in, others[k])->bytes != base->bytes;
    }
  });
  for (const OpDef* def : all_ops().ops)
    if (def->draws) {
      EXPECT_THAT(matters[def->name], testing::Each(true)) << def->name;
    }
}

TEST(OpContract, APartOfTheOutputNeedsNoMoreThanItSays) {
  std::mt19937 random(17);
  std::set<std::string_view> partial;
  for_each_case([&](const Op& op, const TensorView& in) {
    const OpDef& def = op.def();
    if (def.needs == nullptr) return;
    partial.insert(def.name);
    for (int round = 0; round < 12; ++round) {
      const auto drawn = drawn_for(op, in, rng_of(3, 0, random()));
      if (!drawn) continue;
      const TensorSpec spec = def.out_spec(op.raw(), in, *drawn);
      if (spec.layout != Layout::kPixels) {  // has no parts
        EXPECT_EQ(def.needs(op.raw(), in.spec(), whole(spec), *drawn), whole(in.spec()));
        continue;
      }
      const Data full = applied(op, in, *drawn, 0);
      const Region part = test::random_part(spec, random);
      const Region needs = def.needs(op.raw(), in.spec(), part, *drawn);
      ASSERT_TRUE(whole(in.spec()).contains(needs));

      const bool image = in.spec().shape.rank() == 3;
      const Data all(in.bytes(), in.bytes() + in.spec().bytes());
      test::Exact needed(image ? test::part_of(in.spec(), all, needs) : all);
      const TensorView present =
          image ? TensorView(in.spec(), needed.data(), needs, needs.width * in.pixel_bytes())
                : TensorView(in.spec(), needed.data());
      const Data expected = test::part_of(spec, full, part);
      test::Exact made(Data(expected.size(), 0x77));
      def.apply(op.raw(), present, *drawn,
                TensorSpan(spec, made.data(), part, part.width * spec.shape[2]));
      ASSERT_EQ(Data(made.data(), made.data() + expected.size()), expected)
          << "round " << round << ", part at " << part.top << " " << part.left << " of "
          << to_string(spec);
    }
  });
  EXPECT_GE(partial.size(), 8U) << "most image ops can make a part";
}

TEST(OpContract, ParametersSurviveTheTripThroughText) {
  for (const Example& example : test::examples()) {
    const Op op = op_of(example);
    EXPECT_EQ(op.to_string(), example.text);
    const std::string text = op.canonical_text();
    const Op read = parse_ops(text.substr(0, text.rfind('@')), all_ops()).at(0);
    EXPECT_EQ(read.canonical_text(), text);
    EXPECT_EQ(read.params(), op.params());
    EXPECT_EQ(make_op(all_ops(), op.def().name, op.params()).canonical_text(), text);
  }
}

TEST(OpContract, RefusesParametersByName) {
  const std::map<std::string_view, std::vector<Value>> wrong = {
      {"bool", {std::int64_t{1}, std::string("yes"), Value{}}},
      {"int", {std::string("x"), 0.5, List{1}, true, Value{}}},
      {"int | None", {std::string("x"), 0.5, true}},
      {"float", {std::string("x"), List{1}, true, Value{}}},
      {"float | Sequence[float]", {std::string("x"), true}},
      {"int | Sequence[int]", {std::string("x"), 0.5, List{}, List{1, 2, 3}, true, Value{}}},
      {"str", {std::string("no such word"), std::int64_t{1}, Value{}}},
  };
  for (const Example& example : test::examples()) {
    const OpDef& def = op_of(example).def();
    const std::string name(def.name);
    const NamedValues good = op_of(example).params();
    NamedValues more = good;
    more.emplace_back("no_such_parameter", true);
    EXPECT_THAT([&] { def.make(def, more); },
                ThrowsMessage<Error>(StartsWith(name + ": unknown parameter 'no_such_parameter'")));

    const std::vector<ParamInfo> infos = def.params();
    for (std::size_t i = 0; i < infos.size(); ++i) {
      ASSERT_TRUE(wrong.contains(infos[i].python_type)) << infos[i].python_type;
      for (const Value& value : wrong.at(infos[i].python_type)) {
        NamedValues bad = good;
        bad[i].second = value;
        EXPECT_THAT(
            [&] { def.make(def, bad); },
            ThrowsMessage<Error>(AllOf(StartsWith(name + ": " + good[i].first + " must be "),
                                       HasSubstr(", got " + to_text(value)))));
      }
      NamedValues less = good;
      less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
      if (infos[i].required)
        EXPECT_THAT([&] { def.make(def, less); },
                    ThrowsMessage<Error>(
                        StartsWith(name + ": parameter '" + good[i].first + "' is missing: ")));
      else
        EXPECT_NO_THROW(def.make(def, less));
    }
  }
}

TEST(OpContract, RefusesWhatItCannotTakeByName) {
  for (const OpDef* def : all_ops().ops) {
    std::set<Kind> takes;
    std::optional<Op> op;
    for (const Example& example : test::examples())
      if (name_of(example) == def->name) {
        takes.insert(example.takes.begin(), example.takes.end());
        op = op_of(example);
      }
    ASSERT_TRUE(op) << def->name;
    for (const Kind kind : test::kKinds) {
      if (takes.contains(kind)) continue;
      for (const Input& input : test::inputs_of(kind))
        EXPECT_THAT(
            [&] { (void)def->out_spec(op->raw(), TensorView(input.spec, nullptr), DrawnValues{}); },
            ThrowsMessage<Error>(StartsWith(std::string(def->name) + ": needs ")));
    }
  }
}

// Kernels, tables and fill colours are for one channel or three; a source of its own may give other
// pixels.
TEST(OpContract, RefusesAnImageOfOtherThanOneOrThreeChannels) {
  std::set<std::string_view> accepting;
  for (const Example& example : test::examples()) {
    const Op op = op_of(example);
    if (op.def().name == "to_dtype" || example.takes[0] != Kind::kImage) continue;
    for (const std::int64_t channels : {2, 4, 50}) try {
        const TensorSpec spec = test::image_spec(20, 20, channels);
        (void)op.def().out_spec(op.raw(), TensorView(spec, nullptr), DrawnValues{});
        accepting.insert(op.def().name);
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), StartsWith(std::string(op.def().name) + ": needs an image"));
      }
  }
  EXPECT_THAT(accepting, testing::IsEmpty());
}

}  // namespace
}  // namespace cutwater
