// SPDX-License-Identifier: Apache-2.0
#include "cutwater/param.h"

#include <charconv>
#include <cmath>

namespace cutwater {
namespace {

// The shortest decimal that reads back as the same double.
std::string shortest(double number) {
  if (number == 0 && std::signbit(number)) return "-0.0";  // "-0" would be read as a whole number
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  return {digits, end};
}

// 256.0 is a whole number too: lists hold doubles only.
bool whole_number(double number, std::int64_t& out) {
  constexpr double kLimit = 9007199254740992.0;  // 2^53: beyond it, doubles skip integers
  if (!(std::abs(number) <= kLimit) || number != std::trunc(number)) return false;
  out = static_cast<std::int64_t>(number);
  return true;
}

}  // namespace

std::string to_text(const Value& value) {
  struct Printer {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool truth) const { return truth ? "True" : "False"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const {
      const std::string digits = shortest(number);
      // A double stays a double when read back.
      return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;
    }
    std::string operator()(const std::string& text) const {
      std::string quoted = "\"";
      for (const char c : text) {
        if (c == '"' || c == '\\') quoted += '\\';
        quoted += c;
      }
      return quoted + "\"";
    }
    std::string operator()(const List& list) const {
      std::string text = "[";
      for (const double number : list) text += (text.size() > 1 ? ", " : "") + shortest(number);
      return text + "]";
    }
  };
  return std::visit(Printer{}, value);
}

std::string to_string(const Size& size) {
  return size.width ? std::to_string(size.height) + "x" + std::to_string(*size.width)
                    : std::to_string(size.height);
}

bool ParamType<bool>::from(const Value& value, bool& out) {
  if (const auto* truth = std::get_if<bool>(&value)) return out = *truth, true;
  return false;
}

bool ParamType<std::int64_t>::from(const Value& value, std::int64_t& out) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return out = *number, true;
  if (const auto* number = std::get_if<double>(&value)) return whole_number(*number, out);
  return false;
}

bool ParamType<std::optional<std::int64_t>>::from(const Value& value,
                                                  std::optional<std::int64_t>& out) {
  if (std::holds_alternative<std::monostate>(value)) return out.reset(), true;
  return ParamType<std::int64_t>::from(value, out.emplace());
}

Value ParamType<std::optional<std::int64_t>>::to(const std::optional<std::int64_t>& member) {
  return member ? Value{*member} : Value{};
}

bool ParamType<double>::from(const Value& value, double& out) {
  if (const auto* number = std::get_if<double>(&value)) return out = *number, true;
  if (const auto* number = std::get_if<std::int64_t>(&value))
    return out = static_cast<double>(*number), true;
  return false;
}

bool ParamType<List>::from(const Value& value, List& out) {
  if (std::holds_alternative<std::monostate>(value)) return out.clear(), true;
  if (const auto* list = std::get_if<List>(&value)) return out = *list, true;
  double number = 0;
  if (!ParamType<double>::from(value, number)) return false;
  out = {number};
  return true;
}

bool ParamType<Size>::from(const Value& value, Size& out) {
  if (ParamType<std::int64_t>::from(value, out.height)) return out.width.reset(), true;
  const auto* list = std::get_if<List>(&value);
  if (list == nullptr || list->empty() || list->size() > 2) return false;
  if (!whole_number(list->front(), out.height)) return false;
  out.width.reset();  // torchvision reads [256] as 256
  return list->size() == 1 || whole_number(list->back(), out.width.emplace());
}

Value ParamType<Size>::to(const Size& member) {
  if (!member.width) return member.height;
  return List{static_cast<double>(member.height), static_cast<double>(*member.width)};
}

}  // namespace cutwater
