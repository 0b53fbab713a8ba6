// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_contents.h"

#include <charconv>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "cache/redis_client.h"
#include "cutwater/error.h"

namespace cutwater::redis {
namespace {

// A key of ours: a value's first chunk, a further one, or a list of the board.
struct Found {
  std::string key;
  std::uint64_t data = 0;
  std::optional<std::uint64_t> form = {};  // none: a list
  bool is_first = false;                   // of its value's chunks
  std::size_t bytes = 0;
};

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (text.empty() || read.ec != std::errc{} || read.ptr != text.data() + text.size())
    return std::nullopt;
  return number;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t colon = 0; colon != std::string_view::npos;) {
    colon = text.find(':');
    words.push_back(text.substr(0, colon));
    if (colon != std::string_view::npos) text.remove_prefix(colon + 1);
  }
  return words;
}

// Nothing: whoever shares the prefix has keys of his own.
std::optional<Found> parse(const std::string& prefix, const std::string& key) {
  const std::string begin = prefix + ":{";
  const std::size_t end = key.find("}:");
  if (!key.starts_with(begin) || end == std::string::npos) return std::nullopt;
  const std::vector<std::string_view> tag =
      words_of(std::string_view(key).substr(begin.size(), end - begin.size()));
  const std::vector<std::string_view> rest = words_of(std::string_view(key).substr(end + 2));
  const std::optional<std::uint64_t> data = number_in(tag[0]);
  if (!data) return std::nullopt;
  if (tag.size() == 1 && rest.size() == 1 && (rest[0] == "arrivals" || rest[0] == "jobs"))
    return Found{key, *data};
  const bool is_value = tag.size() == 2 && (rest.size() == 2 || rest.size() == 4);
  if (!is_value || !number_in(tag[1])) return std::nullopt;
  for (const std::string_view word : rest)
    if (!number_in(word)) return std::nullopt;
  return Found{key, *data, number_in(rest[0]), rest.size() == 2};
}

// The pattern that a text as it stands matches.
std::string escaped(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

class Walker {
 public:
  explicit Walker(const std::string& url) : client_(parse_url(url), [] {}) {
    (void)client_.mend();
    if (client_.nodes().empty()) throw Error(Code::kUnavailable, client_.why_unknown());
  }

  // A part of the keys. Returns what the server refused, in its own words.
  using See = std::function<std::string(Connection& link, Deadline deadline,
                                        const std::vector<Found>& found)>;
  void walk(const See& see) {
    const std::string pattern = escaped(client_.url().prefix) + ":{*";
    for (const std::shared_ptr<Node>& node : client_.nodes()) {
      std::string cursor = "0";
      do {
        const Client::Outcome outcome =
            client_.run_at(node, [&](Connection& link, Deadline deadline) {
              return some(link, deadline, pattern, cursor, see);
            });
        if (!outcome.is_done())
          throw Error(Code::kUnavailable,
                      to_string(node->endpoint()) + ": " +
                          (outcome.refusal.empty() ? node->trouble() : outcome.refusal));
      } while (cursor != "0");
    }
  }

 private:
  std::string some(Connection& link, Deadline deadline, const std::string& pattern,
                   std::string& cursor, const See& see) const {
    const Reply reply = link.ask({"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"}, deadline);
    if (reply.is_error()) return reply.text;
    if (!reply.is_list(2)) return "SCAN was answered with something else";
    std::vector<Found> values, found;
    Commands lengths = link.commands();
    for (const Reply& key : reply.parts[1].parts) {
      std::optional<Found> one = parse(client_.url().prefix, key.text);
      if (one && one->form) lengths.add({"STRLEN", key.text});
      if (one) (one->form ? values : found).push_back(*std::move(one));
    }
    if (!values.empty()) {
      const std::vector<Reply> bytes = link.exchange(lengths, deadline);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (bytes[i].is_error()) return bytes[i].text;
        values[i].bytes = static_cast<std::size_t>(bytes[i].number);
        found.push_back(std::move(values[i]));
      }
    }
    if (!found.empty())
      if (std::string refusal = see(link, deadline, found); !refusal.empty()) return refusal;
    cursor = reply.parts[0].text;
    return {};
  }

  Client client_;
};

void count(const Found& found, FormContents& into) {
  into.entries += found.is_first ? 1 : 0;
  into.bytes += found.bytes;
}

}  // namespace

std::vector<FormContents> contents_of(const std::string& url) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, FormContents> forms;
  Walker(url).walk([&](Connection&, Deadline, const std::vector<Found>& found) {
    for (const Found& one : found) {
      if (!one.form) continue;
      FormContents& form = forms[{one.data, *one.form}];
      form.data = one.data;
      form.form = *one.form;
      count(one, form);
    }
    return std::string();
  });
  std::vector<FormContents> all;
  for (const auto& [key, form] : forms) all.push_back(form);
  return all;
}

FormContents clear(const std::string& url, const Selection& which) {
  const auto wanted = [&](const Found& found) {
    return (!which.data || found.data == *which.data) && (!which.form || found.form == which.form);
  };
  FormContents cleared;
  Walker(url).walk([&](Connection& link, Deadline deadline, const std::vector<Found>& found) {
    // Each by itself: the nodes of a cluster take no command for keys of several slots.
    Commands commands = link.commands();
    std::vector<const Found*> asked;
    for (const Found& one : found) {
      if (!wanted(one)) continue;
      commands.add({"UNLINK", one.key});
      asked.push_back(&one);
    }
    if (asked.empty()) return std::string();
    const std::vector<Reply> replies = link.exchange(commands, deadline);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (replies[i].is_error()) return replies[i].text;
      if (replies[i].number == 1) count(*asked[i], cleared);  // else it had gone by itself
    }
    return std::string();
  });
  return cleared;
}

}  // namespace cutwater::redis
