// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_url.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "core/units.h"
#include "cutwater/error.h"

namespace cutwater::redis {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Code::kInvalidArgument, "the cache's Redis URL: " + why);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// `part` is what an error may name; the text itself may be a password.
std::string decoded(std::string_view part, std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0)
      refuse("a '%' in the " + std::string(part) + " must begin %XX; write '%' itself as %25");
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (out.find('\0') != std::string::npos)
    refuse("the " + std::string(part) + " has a zero byte (%00)");
  return out;
}

int number(std::string_view part, std::string_view text, int least, int most) {
  int value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || value < least ||
      value > most)
    refuse(std::string(part) + " must be in " + std::to_string(least) + ".." +
           std::to_string(most) + ", got '" + std::string(text) + "'");
  return value;
}

std::chrono::milliseconds duration(std::string_view part, std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 24 * 3600e3}};
  constexpr double kMost = 365 * 24 * 3600e3;
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(read.ptr,
                              static_cast<std::size_t>(text.data() + text.size() - read.ptr));
  const auto* const found = std::ranges::find(kUnits, unit, [](const auto& u) { return u.first; });
  const double milliseconds = found != std::end(kUnits) ? value * found->second : 0;
  if (read.ec != std::errc{} || !(milliseconds >= 1 && milliseconds <= kMost))
    refuse(std::string(part) + " must be a time like 500ms, 2s, 10m, 1h or 1d, got '" +
           std::string(text) + "'");
  return std::chrono::milliseconds{static_cast<std::int64_t>(milliseconds)};
}

std::string checked_prefix(std::string prefix) {
  const auto plain = [](char c) { return c > ' ' && c < 127 && c != '{' && c != '}'; };
  if (prefix.empty() || prefix.size() > 64 || !std::ranges::all_of(prefix, plain))
    refuse("prefix must be 1 to 64 letters, digits or signs other than { and }, got '" + prefix +
           "'");
  return prefix;
}

std::size_t checked_chunk(const std::string& text) {
  constexpr std::uint64_t kLeast = 4096, kMost = std::uint64_t{256} << 20;
  const std::uint64_t bytes = parse_bytes("the cache's Redis URL: chunk", text);
  if (bytes < kLeast || bytes > kMost) refuse("chunk must be in 4KiB..256MiB, got '" + text + "'");
  return bytes;
}

void set_option(Url& url, std::string_view name, const std::string& value) {
  if (name == "cluster")
    url.cluster = number("cluster", value, 0, 1) == 1;
  else if (name == "timeout")
    url.timeout = duration("timeout", value);
  else if (name == "slow")
    url.slow = duration("slow", value);
  else if (name == "ttl")
    url.ttl = duration("ttl", value);
  else if (name == "prefix")
    url.prefix = checked_prefix(value);
  else if (name == "chunk")
    url.chunk_bytes = checked_chunk(value);
  else if (name == "db")
    url.database = number("db", value, 0, 1'000'000);
  else if (name == "ca")
    url.ca = value;
  else
    refuse("there is no option '" + std::string(name) +
           "'; those are cluster, timeout, slow, ttl, prefix, chunk, db and ca");
}

// Cuts off what is before `sign`, and the sign; all of it where there is none.
std::string_view take_until(std::string_view& text, char sign) {
  const std::size_t at = text.find(sign);
  const std::string_view taken = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view{} : text.substr(at + 1);
  return taken;
}

void set_login(Url& url, std::string_view text) {
  const std::string_view user = take_until(text, ':');
  url.user = decoded("user", user);
  url.password = decoded("password", text);
  if (!url.user.empty() && url.password.empty()) refuse("a user needs a password: user:password@");
}

void set_host(Url& url, std::string_view text) {
  std::string_view host, port;
  if (text.starts_with('[')) {  // an IPv6 address
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) refuse("the host begins with '[' and has no ']'");
    host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!port.empty() && port.front() != ':') refuse("after the host's ']' comes :port or /");
  } else {
    host = text.substr(0, text.find(':'));
    port = text.substr(host.size());
  }
  url.endpoint.host = decoded("host", host);
  if (url.endpoint.host.empty()) refuse("the host is missing; write redis://host:6379");
  if (!port.empty())
    url.endpoint.port = static_cast<std::uint16_t>(number("port", port.substr(1), 1, 65535));
}

}  // namespace

Url parse_url(std::string_view text) {
  constexpr std::string_view kPlain = "redis://", kTls = "rediss://", kUnix = "redis+unix://";
  Url url;
  const bool is_path = text.starts_with(kUnix);
  url.tls = text.starts_with(kTls);
  if (!is_path && !url.tls && !text.starts_with(kPlain))
    refuse("it begins with redis://, rediss:// or redis+unix://");
  text.remove_prefix((is_path ? kUnix : url.tls ? kTls : kPlain).size());

  // A slash or a question mark of a password would end the authority: nothing of it may be shown.
  const std::string_view authority = text.substr(0, text.find_first_of("/?#"));
  const std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos && text.find('@') != std::string_view::npos)
    refuse(
        "'/', '?', '#' and '@' in a user, password, path or option are written %2F, %3F, %23, "
        "%40");
  if (text.find('#') != std::string_view::npos) refuse("'#' is written %23");
  if (at != std::string_view::npos) set_login(url, authority.substr(0, at));
  const std::string_view host = at == std::string_view::npos ? authority : authority.substr(at + 1);
  text.remove_prefix(authority.size());
  const std::string_view path = take_until(text, '?');

  if (is_path) {
    url.endpoint.port = 0;
    url.endpoint.path = decoded("path", path);
    if (!host.empty()) refuse("a socket's path begins after redis+unix:// with a third '/'");
    if (path.size() < 2) refuse("the path of the socket is missing");
  } else {
    set_host(url, host);
    if (path.size() > 1) url.database = number("db", path.substr(1), 0, 1'000'000);
  }
  while (!text.empty()) {
    std::string_view value = take_until(text, '&');
    const std::string_view name = take_until(value, '=');
    set_option(url, name, decoded("option " + std::string(name), value));
  }
  if (url.cluster && url.database != 0) refuse("a cluster has only db 0");
  if (!url.ca.empty() && !url.tls) refuse("ca= is for rediss://");
  return url;
}

std::string to_string(const Endpoint& endpoint) {
  if (!endpoint.path.empty()) return endpoint.path;
  const bool is_ipv6 = endpoint.host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" +
         std::to_string(endpoint.port);
}

std::string to_string(const Url& url) {
  const char* const scheme = !url.endpoint.path.empty() ? "redis+unix://"
                             : url.tls                  ? "rediss://"
                                                        : "redis://";
  return scheme + to_string(url.endpoint);
}

}  // namespace cutwater::redis
