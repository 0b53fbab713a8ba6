// SPDX-License-Identifier: Apache-2.0
// Op: a pure function from one cut to the next. An op is a plain struct whose members are its
// parameters; define_op makes the constant table entry from it. CONTRIBUTING.md: "Add an op".
//
// The struct T has
//   static constexpr std::tuple kParams{Param{...}, ...};
//   void check() const;                                        refuse bad parameters, at build time
//   TensorSpec out_spec(const TensorView& in) const;           shape first; `in` may lack its data,
//                                                              dimensions may be kUnknown
//   void apply(const TensorView& in, const TensorSpan& out) const;   bytes second, into a given
//   place
// and, where it draws random numbers,
//   struct Draw { ...; static constexpr std::tuple kFields{Param{...}, ...}; };
//   Draw draw(const TensorSpec& in, Rng rng) const;            before any pixel is touched
// in which case out_spec, apply and needs take the Draw as well (after `in`).
// Optional:
//   Region needs(const TensorSpec& in, const Region& out) const;
//     the part of the input that this part of the output is made from. An op that has it can be
//     asked for a part: apply then fills out.present() only, and reads no more than it said. Only
//     pixels have parts; of anything else it needs, and makes, the whole.
//   std::vector<Op> expand() const;              what the user wrote once, as several ops
//   std::size_t scratch_bytes(const TensorView& in) const;     memory besides input and output
//   Tensor produce(const TensorView& in, BufferPool& pool) const;
//     instead of apply, where only the work itself tells how large the output is: out_spec then
//     leaves the first dimension unknown.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cutwater/error.h"
#include "cutwater/param.h"
#include "cutwater/rng.h"
#include "cutwater/sample.h"
#include "cutwater/tensor.h"

namespace cutwater {

struct OpDef;

// The random parameters of one op for one sample and epoch: plain bytes that may be copied, stored
// and sent. OpDef::draw_values tells what they mean.
struct DrawnValues {
  alignas(8) std::array<std::byte, 48> bytes{};
};

// An op with its parameters: an immutable value, cheap to copy, safe to share between threads.
class Op {
 public:
  Op(const OpDef& def, std::shared_ptr<const void> params)
      : def_(&def), params_(std::move(params)) {}

  const OpDef& def() const { return *def_; }
  NamedValues params() const;          // all of them, in table order
  std::string to_string() const;       // "resize(size=256)": what differs from the default
  std::string canonical_text() const;  // every parameter: what fingerprints are made of
  std::vector<Op> expand() const;      // itself, or the ops it stands for

  // REQUIRES: T is the struct this op's OpDef was made from.
  template <class T>
  const T& as() const {
    return *static_cast<const T*>(params_.get());
  }
  const void* raw() const { return params_.get(); }

 private:
  const OpDef* def_;
  std::shared_ptr<const void> params_;
};

// What an earlier run of an op on this very sample left behind: it makes later runs faster and
// never changes a byte. The op checks that it fits its input before it trusts it.
struct Hint {
  std::vector<std::uint8_t> known;    // empty: nothing yet
  std::vector<std::uint8_t> learned;  // to be kept in its place; empty: nothing new
};

// One entry of the table of ops.
struct OpDef {
  std::string_view name, doc, domain, field;
  int version;  // part of fingerprints: raise it when the op's bytes change
  bool draws;

  std::vector<ParamInfo> (*params)();
  Op (*make)(const OpDef& def, const NamedValues& values);  // throws Error(kInvalidArgument)
  NamedValues (*values)(const void* op);
  std::vector<Op> (*expand)(const void* op);  // null: stands for itself
  DrawnValues (*draw)(const void* op, const TensorSpec& in, Rng rng);
  NamedValues (*draw_values)(const DrawnValues& drawn);
  TensorSpec (*out_spec)(const void* op, const TensorView& in, const DrawnValues& drawn);
  // null: needs all of its input and makes all of its output
  Region (*needs)(const void* op, const TensorSpec& in, const Region& out,
                  const DrawnValues& drawn);
  std::size_t (*scratch_bytes)(const void* op, const TensorView& in);  // null: none
  void (*apply)(const void* op, const TensorView& in, const DrawnValues& drawn,
                const TensorSpan& out);  // null: it has produce
  Tensor (*produce)(const void* op, const TensorView& in, const DrawnValues& drawn,
                    BufferPool& pool);  // null: it has apply
};

// One op of a chain as it runs. What the user wrote at one position may have expanded into several
// steps; a draw belongs to (position, part), so fusing, moving or caching steps keeps every draw.
struct Step {
  Op op;
  int position;  // 1 for the first op that the user wrote
  int part;      // 0, 1… inside that position
};

// What is known of a step before it runs on a sample.
struct StepShape {
  TensorSpec in, out;
  Region make;  // the part of the output that somebody needs
};

// Steps that run together, with all there is to know about them.
struct FusedSteps {
  std::span<const Step> steps;
  std::span<const DrawnValues> drawn;
  std::span<const StepShape> shapes;
  Hint* hint = nullptr;  // null: nobody keeps any
};

// Where the last of them writes.
class OutputPlace {
 public:
  virtual ~OutputPlace() = default;
  virtual TensorSpan get() = 0;  // may throw Error
};

// Neighbouring ops that can run as one kernel: the same bytes, without the tensors in between.
struct Fusion {
  // How many of the leading steps run as one; less than two: none.
  std::size_t (*match)(std::span<const Step> steps);
  // Whether they do for this sample; if not, they run op by op. Null: always.
  bool (*fits)(const FusedSteps& fused);
  // Asks for its place once, as late as it can: a batch waits for who has one.
  void (*apply)(const FusedSteps& fused, const TensorView& in, OutputPlace& place);
  bool takes_hints = false;
  // About how much of the input's bytes an excerpt of it would take, as a share, from its header
  // and the draws alone; 1: there is none. Null: never.
  double (*excerpt_share)(const FusedSteps& fused, const TensorView& in) = nullptr;
  // A smaller input from which these steps, fused or not, make the very same output. Nothing: there
  // is none; also where the input is bad or odd, which whoever runs it finds out. Null: never.
  std::optional<Tensor> (*excerpt)(const FusedSteps& fused, const TensorView& in,
                                   BufferPool& pool) = nullptr;
};

// All that a pipeline may be built from. Constant; lives for ever.
struct OpTable {
  std::span<const OpDef* const> ops;
  std::span<const Fusion> fusions;

  // Throws Error(kInvalidArgument) that lists near names.
  const OpDef& get(std::string_view name) const;
};

namespace detail {

template <class T>
concept Drawing = requires {
  typename T::Draw;
};

// Calls visit(param) for each Param of the tuple.
template <class Tuple, class F>
void for_each_param(const Tuple& params, F&& visit) {
  std::apply([&](const auto&... param) { (visit(param), ...); }, params);
}

[[noreturn]] void refuse_value(std::string_view op, std::string_view param, const Value& value,
                               std::string_view expected);
void refuse_unknown_params(const OpDef& def, const NamedValues& values);

template <class Owner, class Tuple>
NamedValues values_of(const Owner& owner, const Tuple& params) {
  NamedValues values;
  for_each_param(params, [&](const auto& param) {
    using M = std::remove_cvref_t<decltype(owner.*param.member)>;
    values.emplace_back(std::string(param.name), ParamType<M>::to(owner.*param.member));
  });
  return values;
}

template <class T>
struct OpFunctions {
  static const T& self(const void* op) { return *static_cast<const T*>(op); }

  static std::vector<ParamInfo> params() {
    std::vector<ParamInfo> infos;
    const T defaults{};
    for_each_param(T::kParams, [&](const auto& param) {
      using M = std::remove_cvref_t<decltype(defaults.*param.member)>;
      const bool required = param.need == Need::kRequired;
      infos.push_back({param.name, param.doc, ParamType<M>::kPython, required, Value{}});
      if (!required) infos.back().default_value = ParamType<M>::to(defaults.*param.member);
    });
    return infos;
  }

  static Op make(const OpDef& def, const NamedValues& values) {
    refuse_unknown_params(def, values);
    auto op = std::make_shared<T>();
    for_each_param(T::kParams, [&](const auto& param) {
      using M = std::remove_cvref_t<decltype(op.get()->*param.member)>;
      for (const auto& [name, value] : values)
        if (name == param.name && !ParamType<M>::from(value, op.get()->*param.member))
          refuse_value(def.name, name, value, ParamType<M>::kExpected);
    });
    op->check();
    return Op(def, std::move(op));
  }

  static NamedValues values(const void* op) { return values_of(self(op), T::kParams); }

  static std::vector<Op> expand(const void* op) {
    if constexpr (requires(const T& t) { t.expand(); }) return self(op).expand();
    return {};
  }

  template <class Call>
  static auto with_draw(const DrawnValues& drawn, Call&& call) {
    if constexpr (Drawing<T>) {
      typename T::Draw draw;
      static_assert(std::is_trivially_copyable_v<typename T::Draw> &&
                    sizeof(draw) <= sizeof(DrawnValues::bytes));
      std::memcpy(&draw, drawn.bytes.data(), sizeof draw);
      return call(draw);
    } else {
      return call();
    }
  }

  static DrawnValues draw(const void* op, const TensorSpec& in, Rng rng) {
    DrawnValues drawn;
    if constexpr (Drawing<T>) {
      const typename T::Draw draw = self(op).draw(in, rng);
      std::memcpy(drawn.bytes.data(), &draw, sizeof draw);
    }
    return drawn;
  }

  static NamedValues draw_values(const DrawnValues& drawn) {
    if constexpr (Drawing<T>)
      return with_draw(drawn, [](const auto& draw) { return values_of(draw, T::Draw::kFields); });
    return {};
  }

  static TensorSpec out_spec(const void* op, const TensorView& in, const DrawnValues& drawn) {
    return with_draw(drawn, [&](const auto&... draw) { return self(op).out_spec(in, draw...); });
  }

  static Region needs(const void* op, const TensorSpec& in, const Region& out,
                      const DrawnValues& drawn) {
    return with_draw(drawn, [&](const auto&... draw) { return self(op).needs(in, draw..., out); });
  }

  static std::size_t scratch_bytes(const void* op, const TensorView& in) {
    return self(op).scratch_bytes(in);
  }

  static void apply(const void* op, const TensorView& in, const DrawnValues& drawn,
                    const TensorSpan& out) {
    with_draw(drawn, [&](const auto&... draw) { self(op).apply(in, draw..., out); });
  }

  static Tensor produce(const void* op, const TensorView& in, const DrawnValues& drawn,
                        BufferPool& pool) {
    return with_draw(drawn,
                     [&](const auto&... draw) { return self(op).produce(in, draw..., pool); });
  }
};

}  // namespace detail

struct OpText {
  std::string_view name, doc, domain, field;
  int version = 1;
};

template <class T>
constexpr OpDef define_op(const OpText& text) {
  using F = detail::OpFunctions<T>;
  OpDef def{text.name,   text.doc, text.domain, text.field, text.version, detail::Drawing<T>,
            F::params,   F::make,  F::values,   nullptr,    F::draw,      F::draw_values,
            F::out_spec, nullptr,  nullptr,     nullptr,    nullptr};
  if constexpr (requires { &T::produce; })
    def.produce = F::produce;
  else
    def.apply = F::apply;
  if constexpr (requires { &T::expand; }) def.expand = F::expand;
  if constexpr (requires { &T::needs; }) def.needs = F::needs;
  if constexpr (requires { &T::scratch_bytes; }) def.scratch_bytes = F::scratch_bytes;
  return def;
}

// Makes an op by name: make_op(table, "resize", {{"size", 256}}).
Op make_op(const OpTable& table, std::string_view name, const NamedValues& values);

}  // namespace cutwater
