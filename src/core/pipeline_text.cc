// SPDX-License-Identifier: Apache-2.0
// Recursive descent over
//   pipeline = call { "|" call }          call  = name [ "(" [ arg { "," arg } ] ")" ]
//   arg      = [ name "=" ] value         value = number | word | "text" | [ numbers ] | ( numbers
//   )
#include "core/pipeline_text.h"

#include <cctype>
#include <charconv>

namespace cutwater {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const OpTable& table) : text_(text), table_(table) {}

  std::vector<Op> pipeline() {
    std::vector<Op> ops;
    if (skip_space(); at_end()) return ops;
    do ops.push_back(call());
    while (accept('|'));
    if (!at_end()) refuse("expected '|' or the end");
    return ops;
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  void skip_space() {
    while (!at_end() && std::isspace(static_cast<unsigned char>(peek())) != 0) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (peek() != c || at_end()) return false;
    ++at_;
    skip_space();
    return true;
  }
  void expect(char c, const char* where) {
    if (!accept(c)) refuse(std::string("expected '") + c + "' " + where);
  }
  [[noreturn]] void refuse(const std::string& what) const {
    const std::string_view rest = text_.substr(at_, 20);
    throw Error(Code::kInvalidArgument,
                "pipeline text, character " + std::to_string(at_ + 1) + ": " + what +
                    (rest.empty() ? ", found the end" : ", found '" + std::string(rest) + "'"));
  }

  std::string_view name() {
    skip_space();
    const std::size_t begin = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '_') ++at_;
    if (begin == at_) refuse("expected a name");
    return text_.substr(begin, at_ - begin);
  }

  Op call() {
    const OpDef& def = table_.get(name());
    NamedValues values;
    if (accept('(') && !accept(')')) {
      const std::vector<ParamInfo> params = def.params();
      do values.push_back(argument(def, params, values.size()));
      while (accept(','));
      expect(')', "after the parameters");
    }
    skip_space();
    return def.make(def, values);
  }

  NamedValue argument(const OpDef& def, const std::vector<ParamInfo>& params, std::size_t place) {
    skip_space();
    const std::size_t begin = at_;
    if (std::isalpha(static_cast<unsigned char>(peek())) != 0 || peek() == '_') {
      const std::string_view word = name();
      if (accept('=')) return {std::string(word), value()};
      at_ = begin;
    }
    if (place >= params.size()) refuse(std::string(def.name) + ": too many parameters");
    return {std::string(params[place].name), value()};
  }

  Value value() {
    skip_space();
    if (accept('[')) return list(']');
    if (accept('(')) return list(')');
    if (peek() == '"' || peek() == '\'') return quoted();
    if (std::isalpha(static_cast<unsigned char>(peek())) == 0) return number();
    const std::string_view word = name();
    if (word == "None" || word == "none") return {};
    if (word == "True" || word == "true") return true;
    if (word == "False" || word == "false") return false;
    if (word == "inf" || word == "nan") refuse("expected a finite number");
    return std::string(word);
  }

  Value list(char closing) {
    List numbers;
    while (!accept(closing)) {
      if (!numbers.empty()) expect(',', "between the numbers of a list");
      if (!numbers.empty() && accept(closing)) break;  // a trailing comma, as Python prints (3,)
      const Value one = number();
      numbers.push_back(std::holds_alternative<double>(one)
                            ? std::get<double>(one)
                            : static_cast<double>(std::get<std::int64_t>(one)));
    }
    return numbers;
  }

  Value quoted() {
    const char quote = text_[at_++];
    std::string content;
    while (peek() != quote) {
      if (at_end()) refuse("expected the closing quote");
      if (peek() == '\\') ++at_;
      if (at_end()) refuse("expected the closing quote");
      content += text_[at_++];
    }
    ++at_;
    return content;
  }

  Value number() {
    skip_space();
    std::size_t end = at_;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 ||
            std::string_view("+-.").find(text_[end]) != std::string_view::npos))
      ++end;
    const char* first = text_.data() + at_;
    const char* last = text_.data() + end;
    std::int64_t integer = 0;
    if (const auto read = std::from_chars(first, last, integer);
        read.ptr == last && read.ec == std::errc{} && first != last)
      return at_ = end, integer;
    double real = 0;
    if (const auto read = std::from_chars(first, last, real);
        read.ptr == last && read.ec == std::errc{} && first != last && real - real == 0)
      return at_ = end, real;
    refuse("expected a value");
  }

  std::string_view text_;
  const OpTable& table_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<Op> parse_ops(std::string_view text, const OpTable& table) {
  return Parser(text, table).pipeline();
}

}  // namespace cutwater
