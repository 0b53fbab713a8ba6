// SPDX-License-Identifier: Apache-2.0
#include "remote/url.h"

#include <algorithm>
#include <charconv>

#include "cutwater/error.h"

namespace cutwater::remote {
namespace {

constexpr std::string_view kPlain = "grpc://", kTls = "grpcs://";
constexpr std::string_view kDefaultPort = ":7070";

[[noreturn]] void refuse(std::string_view url, const std::string& why) {
  throw Error(Code::kInvalidArgument,
              "a server's data is called grpc://HOST:PORT/NAME (grpcs:// for TLS, several that "
              "have the same as HOST:PORT,HOST:PORT, parts as grpc://…+grpc://…), got '" +
                  std::string(url) + "': " + why);
}

std::string server_of(std::string_view url, std::string_view text) {
  if (text.empty()) refuse(url, "a server's name is missing");
  if (text.find_first_of("@?# ") != std::string_view::npos)
    refuse(url, "'" + std::string(text) + "' is no name of a server");
  // Colons within brackets belong to an address.
  const std::size_t bracket = text.rfind(']'), colon = text.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  if (!has_port) return std::string(text) + std::string(kDefaultPort);
  int port = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, port);
  if (colon == 0 || read.ec != std::errc{} || read.ptr != end || port < 1 || port > 65535)
    refuse(url, "'" + std::string(text.substr(colon + 1)) + "' is no port");
  return std::string(text);
}

}  // namespace

bool is_url(std::string_view text) { return text.starts_with(kPlain) || text.starts_with(kTls); }

Url parse_url(std::string_view text) {
  Url url;
  url.tls = text.starts_with(kTls);
  if (!is_url(text)) refuse(text, "it begins otherwise");
  std::string_view rest = text.substr(url.tls ? kTls.size() : kPlain.size());
  const std::size_t slash = rest.find('/');
  if (slash != std::string_view::npos) url.name = rest.substr(slash + 1);
  rest = rest.substr(0, slash);
  for (;;) {
    const std::size_t comma = rest.find(',');
    url.servers.push_back(server_of(text, rest.substr(0, comma)));
    if (std::count(url.servers.begin(), url.servers.end(), url.servers.back()) > 1)
      refuse(text, url.servers.back() + " is named twice");
    if (comma == std::string_view::npos) return url;
    rest = rest.substr(comma + 1);
  }
}

std::vector<Url> parse_parts(std::string_view text) {
  std::vector<Url> parts;
  for (std::size_t begin = 0;;) {
    std::size_t plus = text.find('+', begin);
    while (plus != std::string_view::npos && !is_url(text.substr(plus + 1)))
      plus = text.find('+', plus + 1);
    parts.push_back(parse_url(text.substr(begin, plus - begin)));
    if (plus == std::string_view::npos) return parts;
    begin = plus + 1;
  }
}

std::string Url::text() const {
  std::string text(tls ? kTls : kPlain);
  for (std::size_t i = 0; i < servers.size(); ++i) text += (i > 0 ? "," : "") + servers[i];
  return text + "/" + name;
}

}  // namespace cutwater::remote
