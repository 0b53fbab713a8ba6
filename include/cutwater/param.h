// SPDX-License-Identifier: Apache-2.0
// Parameters: the members of an op, with a name and a sentence each. One list per op gives parsing,
// printing, docs, Python signatures and the wire form; draws are listed the same way.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cutwater/tensor.h"

namespace cutwater {

// A parameter's value as text and Python know it. A list holds numbers only.
using List = std::vector<double>;
using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, List>;
using NamedValue = std::pair<std::string, Value>;
using NamedValues = std::vector<NamedValue>;

// The form that parse_value reads back: None, True, 224, 0.5, "bilinear", [0.1, 0.2].
std::string to_text(const Value& value);

// One number (a square, or a shorter side: the op says which), or height and width.
struct Size {
  std::int64_t height = 0;
  std::optional<std::int64_t> width;

  std::int64_t width_or_square() const { return width.value_or(height); }
  bool operator==(const Size&) const = default;
};
std::string to_string(const Size& size);  // "224", "192x256"

// Specialise to let an enum be a parameter: kNames[i] names the enumerator of value i.
template <class E>
struct EnumNames;

// How a C++ type travels through Value. Each specialisation has
//   kPython   the type in Python signatures      kExpected   what an error says was wanted
//   from(value, out) -> bool                     to(member) -> Value
template <class M>
struct ParamType;

template <>
struct ParamType<bool> {
  static constexpr std::string_view kPython = "bool", kExpected = "true or false";
  static bool from(const Value& value, bool& out);
  static Value to(bool member) { return member; }
};
template <>
struct ParamType<std::int64_t> {
  static constexpr std::string_view kPython = "int", kExpected = "a whole number";
  static bool from(const Value& value, std::int64_t& out);
  static Value to(std::int64_t member) { return member; }
};
template <>
struct ParamType<std::optional<std::int64_t>> {
  static constexpr std::string_view kPython = "int | None", kExpected = "a whole number or None";
  static bool from(const Value& value, std::optional<std::int64_t>& out);
  static Value to(const std::optional<std::int64_t>& member);
};
template <>
struct ParamType<double> {
  static constexpr std::string_view kPython = "float", kExpected = "a number";
  static bool from(const Value& value, double& out);
  static Value to(double member) { return member; }
};
template <>
struct ParamType<List> {
  static constexpr std::string_view kPython = "float | Sequence[float]",
                                    kExpected = "a number or a list of numbers";
  static bool from(const Value& value, List& out);  // None: an empty list
  static Value to(const List& member) { return member.empty() ? Value{} : Value{member}; }
};
template <>
struct ParamType<Size> {
  static constexpr std::string_view kPython = "int | Sequence[int]",
                                    kExpected = "a whole number or [height, width]";
  static bool from(const Value& value, Size& out);
  static Value to(const Size& member);
};
template <class E>
requires(std::is_enum_v<E>) struct ParamType<E> {
  static constexpr std::string_view kPython = "str", kExpected = EnumNames<E>::kExpected;
  static bool from(const Value& value, E& out) {
    const auto* text = std::get_if<std::string>(&value);
    for (std::size_t i = 0; text != nullptr && i < EnumNames<E>::kNames.size(); ++i)
      if (EnumNames<E>::kNames[i] == *text) return out = static_cast<E>(i), true;
    return false;
  }
  static Value to(E member) {
    return std::string(EnumNames<E>::kNames[static_cast<std::size_t>(member)]);
  }
};

template <>
struct EnumNames<DType> {
  static constexpr std::array<std::string_view, 7> kNames = {
      "uint8", "int16", "int32", "int64", "float16", "float32", "float64"};
  static constexpr std::string_view kExpected =
      "one of uint8, int16, int32, int64, float16, float32, float64";
};

enum class Need : bool { kOptional, kRequired };

// One entry of an op's list: Param{"size", &RandomCrop::size, "Height and width of the window."}.
template <class Owner, class M>
struct Param {
  std::string_view name;
  M Owner::*member;
  std::string_view doc;
  Need need;

  constexpr Param(std::string_view param_name, M Owner::*pointer, std::string_view text = {},
                  Need required = Need::kOptional)
      : name(param_name), member(pointer), doc(text), need(required) {}
};

// What the outside sees of a Param.
struct ParamInfo {
  std::string_view name, doc, python_type;
  bool required = false;
  Value default_value;
};

}  // namespace cutwater
