// SPDX-License-Identifier: Apache-2.0
// cutwater cache: a cache that the jobs of a machine share. serve runs it; stat, ls and clear ask
// it.
#include <pwd.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cache/connection.h"
#include "cache/redis_contents.h"
#include "cache/server.h"
#include "cache/unix_socket.h"
#include "core/machine.h"
#include "core/units.h"
#include "cutwater/cache.h"
#include "cutwater/error.h"
#include "stop_on_signal.h"
#include "verbs.h"

namespace cutwater::cli {
namespace {

using cache::all_rows;
using cache::Connection;
using nlohmann::ordered_json;
namespace wire = cache::wire;

struct CacheArguments {
  std::string socket;
  bool json = false;

  // A Redis server's URL in place of a path.
  bool redis() const {
    return socket.starts_with("redis") && socket.find("://") != std::string::npos;
  }
  // As --cache names it, or a path as it stands.
  std::string path() const {
    constexpr std::string_view kUnix = "unix:";
    const std::string place = socket.starts_with(kUnix) ? socket.substr(kUnix.size()) : socket;
    return socket == "shared" || place.empty() ? cache::default_socket() : place;
  }
};

struct ServeArguments : CacheArguments {
  std::string memory;
  std::vector<std::string> quotas;
};

struct ClearArguments : CacheArguments {
  std::string data, form;
  bool all = false;
};

// Names of jobs may hold bytes that are no text, or that a terminal would obey.
std::string text_of(const ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

void print(const ordered_json& json) { std::printf("%s\n", text_of(json, 2).c_str()); }

std::string hex(std::uint64_t number) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

std::uint64_t number_argument(const char* what, const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number, 16);
  if (read.ec != std::errc{} || read.ptr != end)
    throw Error(Code::kInvalidArgument, std::string(what) +
                                            " must be a number as 'cutwater cache ls' shows it, "
                                            "got '" +
                                            text + "'");
  return number;
}

std::uint64_t user_number(const std::string& user) {
  if (const passwd* const found = getpwnam(user.c_str())) return found->pw_uid;
  std::uint32_t number = 0;
  const char* const end = user.data() + user.size();
  const auto read = std::from_chars(user.data(), end, number);
  if (read.ec != std::errc{} || read.ptr != end)
    throw Error(Code::kInvalidArgument, "--quota: there is no user '" + user + "'");
  return number;
}

std::string user_name(std::uint64_t uid) {
  const passwd* const found = getpwuid(static_cast<uid_t>(uid));
  return found != nullptr ? found->pw_name : std::to_string(uid);
}

std::map<uid_t, std::uint64_t> quotas_of(const std::vector<std::string>& arguments) {
  std::map<uid_t, std::uint64_t> quotas;
  for (const std::string& argument : arguments) {
    const std::size_t sign = argument.find('=');
    if (sign == std::string::npos)
      throw Error(Code::kInvalidArgument,
                  "--quota must be USER=SIZE, as in alice=2GiB, got '" + argument + "'");
    const auto user = static_cast<uid_t>(user_number(argument.substr(0, sign)));
    quotas[user] = parse_bytes("--quota", argument.substr(sign + 1));
  }
  return quotas;
}

void serve(const ServeArguments& arguments) {
  if (arguments.redis())
    throw Error(Code::kInvalidArgument, "--socket must be a path, got '" + arguments.socket +
                                            "'; a Redis server is started by redis-server");
  cache::ServeOptions options;
  options.socket = arguments.path();
  options.limit = parse_bytes("--memory", arguments.memory);
  if (const std::size_t usable = usable_memory_bytes(); options.limit > usable)
    throw Error(Code::kInvalidArgument, "--memory " + bytes_text(options.limit) +
                                            " is more than the " + bytes_text(usable) +
                                            " that this process may use; make it smaller");
  options.quotas = quotas_of(arguments.quotas);
  options.log = [](const std::string& line) {
    std::fprintf(stderr, "cutwater cache: %s\n", line.c_str());
  };
  // Memory beyond RLIMIT_FSIZE is refused, and the cache is full there; the signal would end it.
  std::signal(SIGXFSZ, SIG_IGN);
  cache::Server server(options);
  const StopOnSignal stopping(server);
  options.log(bytes_text(options.limit) + " at " + options.socket);
  if (arguments.json) {
    print({{"socket", options.socket}, {"limit", options.limit}, {"pid", getpid()}});
    std::fflush(stdout);
  }
  server.run();
}

// Throws Error that says how to start a daemon where there is none.
Connection connection_to(const CacheArguments& arguments) {
  try {
    return Connection(arguments.path(), false);
  } catch (const Error& error) {
    if (error.code() != Code::kUnavailable) throw;
    throw Error(error.code(),
                error.failure().reason + "; " + cache::how_to_serve(arguments.path()));
  }
}

ordered_json json_of_form(const wire::Row& row) {
  return {{"data", hex(row.a)},
          {"form", hex(row.b)},
          {"entries", row.entries},
          {"bytes", row.bytes},
          {"seats", row.seats}};
}

ordered_json json_of_user(const wire::Row& row) {
  return {{"user", user_name(row.a)},
          {"entries", row.entries},
          {"bytes", row.bytes},
          {"quota", row.limit != 0 ? ordered_json(row.limit) : ordered_json(nullptr)}};
}

ordered_json json_of_job(const wire::Row& row) {
  return {{"job", wire::name_of(row.name)},
          {"pid", row.limit},
          {"data", hex(row.b)},
          {"samples", row.bytes},
          {"had", row.entries}};
}

ordered_json json_of_form(const redis::FormContents& form) {
  return {{"data", hex(form.data)},
          {"form", hex(form.form)},
          {"entries", form.entries},
          {"bytes", form.bytes}};
}

// Hits and misses are each job's own: a server does not count ours apart from those of others.
void stat_redis(const CacheArguments& arguments) {
  const std::vector<redis::FormContents> forms = redis::contents_of(arguments.socket);
  const CacheStats now = redis_cache(arguments.socket)->stats();
  std::int64_t entries = 0;
  std::size_t bytes = 0;
  ordered_json by_form = ordered_json::array();
  for (const redis::FormContents& form : forms) {
    entries += form.entries;
    bytes += form.bytes;
    by_form.push_back(json_of_form(form));
  }
  if (arguments.json)
    return print({{"bytes", bytes},
                  {"server_bytes", now.bytes},
                  {"limit", now.limit},
                  {"entries", entries},
                  {"hits", nullptr},
                  {"misses", nullptr},
                  {"evicted", now.evicted},
                  {"by_form", by_form}});
  std::printf("%s in %lld entries; the server uses %s of %s, %lld keys made way\n",
              bytes_text(bytes).c_str(), static_cast<long long>(entries),
              bytes_text(now.bytes).c_str(), bytes_text(now.limit).c_str(),
              static_cast<long long>(now.evicted));
}

void stat(const CacheArguments& arguments) {
  if (arguments.redis()) return stat_redis(arguments);
  Connection connection = connection_to(arguments);
  const auto now = connection.ask<wire::StatReply>(wire::Stat{});
  const std::vector<wire::Row> forms = all_rows(connection, wire::Listed::kForms);
  const std::vector<wire::Row> users = all_rows(connection, wire::Listed::kUsers);
  const std::vector<wire::Row> jobs = all_rows(connection, wire::Listed::kJobs);
  if (arguments.json) {
    ordered_json json = {{"socket", connection.path()},
                         {"pid", now.pid},
                         {"bytes", now.bytes},
                         {"limit", now.limit},
                         {"entries", now.entries},
                         {"hits", now.hits},
                         {"misses", now.misses},
                         {"refused", now.refused},
                         {"evicted", now.evicted},
                         {"clients", now.clients},
                         {"by_form", ordered_json::array()},
                         {"users", ordered_json::array()},
                         {"jobs", ordered_json::array()}};
    for (const wire::Row& row : forms) json["by_form"].push_back(json_of_form(row));
    for (const wire::Row& row : users) json["users"].push_back(json_of_user(row));
    for (const wire::Row& row : jobs) json["jobs"].push_back(json_of_job(row));
    return print(json);
  }
  std::printf("%s, process %u\n", connection.path().c_str(), now.pid);
  std::printf("%s of %s in %lld entries; %u clients\n", bytes_text(now.bytes).c_str(),
              bytes_text(now.limit).c_str(), static_cast<long long>(now.entries), now.clients);
  std::printf("%lld hits, %lld misses, %lld refused, %lld made way\n",
              static_cast<long long>(now.hits), static_cast<long long>(now.misses),
              static_cast<long long>(now.refused), static_cast<long long>(now.evicted));
  for (const wire::Row& row : users) {
    const std::string quota = row.limit != 0 ? " of " + bytes_text(row.limit) : "";
    std::printf("user %s: %s%s in %lld entries\n", user_name(row.a).c_str(),
                bytes_text(row.bytes).c_str(), quota.c_str(), static_cast<long long>(row.entries));
  }
  for (const wire::Row& row : jobs)
    std::printf("job %s, process %llu: has had %lld of %llu samples of %s\n",
                text_of(wire::name_of(row.name), -1).c_str(),
                static_cast<unsigned long long>(row.limit), static_cast<long long>(row.entries),
                static_cast<unsigned long long>(row.bytes), hex(row.b).c_str());
}

void ls_redis(const CacheArguments& arguments) {
  const std::vector<redis::FormContents> forms = redis::contents_of(arguments.socket);
  if (arguments.json) {
    ordered_json json = {{"forms", ordered_json::array()}};
    for (const redis::FormContents& form : forms) json["forms"].push_back(json_of_form(form));
    return print(json);
  }
  std::printf("%-16s  %-16s  %10s  %10s\n", "data", "form", "entries", "bytes");
  for (const redis::FormContents& form : forms)
    std::printf("%16s  %16s  %10lld  %10s\n", hex(form.data).c_str(), hex(form.form).c_str(),
                static_cast<long long>(form.entries), bytes_text(form.bytes).c_str());
}

void ls(const CacheArguments& arguments) {
  if (arguments.redis()) return ls_redis(arguments);
  Connection connection = connection_to(arguments);
  const std::vector<wire::Row> forms = all_rows(connection, wire::Listed::kForms);
  if (arguments.json) {
    ordered_json json = {{"socket", connection.path()}, {"forms", ordered_json::array()}};
    for (const wire::Row& row : forms) json["forms"].push_back(json_of_form(row));
    return print(json);
  }
  std::printf("%-16s  %-16s  %10s  %10s  %5s\n", "data", "form", "entries", "bytes", "seats");
  for (const wire::Row& row : forms)
    std::printf("%16s  %16s  %10lld  %10s  %5llu\n", hex(row.a).c_str(), hex(row.b).c_str(),
                static_cast<long long>(row.entries), bytes_text(row.bytes).c_str(),
                static_cast<unsigned long long>(row.seats));
}

void clear(const ClearArguments& arguments) {
  const bool by_data = !arguments.data.empty(), by_form = !arguments.form.empty();
  if (arguments.all == (by_data || by_form))
    throw Error(Code::kInvalidArgument, "say what to clear: --data N, --form N, both, or --all");
  wire::Clear question;
  if (by_data) question.data = number_argument("--data", arguments.data);
  if (by_form) question.form = number_argument("--form", arguments.form);
  question.by_data = by_data ? 1 : 0;
  question.by_form = by_form ? 1 : 0;
  const auto tell = [&](std::int64_t entries, std::uint64_t bytes) {
    if (arguments.json)
      print({{"entries", entries}, {"bytes", bytes}});
    else
      std::printf("%lld entries, %s\n", static_cast<long long>(entries), bytes_text(bytes).c_str());
  };
  if (arguments.redis()) {
    redis::Selection which;
    if (by_data) which.data = question.data;
    if (by_form) which.form = question.form;
    const redis::FormContents cleared = redis::clear(arguments.socket, which);
    return tell(cleared.entries, cleared.bytes);
  }
  if (arguments.all && cache::remove_dead_socket(arguments.path())) {
    std::fprintf(
        stderr,
        "who served a cache at %s was killed: what it held is gone; its socket was removed\n",
        arguments.path().c_str());
    return tell(0, 0);
  }
  Connection connection = connection_to(arguments);
  const auto cleared = connection.ask<wire::ClearReply>(question);
  tell(cleared.entries, cleared.bytes);
}

template <class Arguments>
std::shared_ptr<Arguments> add_verb(CLI::App& cache, const char* name, const char* what,
                                    void (*run)(const Arguments&),
                                    const std::function<void(CLI::App&, Arguments&)>& options) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* const verb = cache.add_subcommand(name, what);
  options(*verb, *arguments);
  verb->add_option(
      "--socket", arguments->socket,
      "Where it is served: a path, unix:PATH or shared (default: shared, your own place); for all "
      "but serve also redis://…");
  verb->add_flag("--json", arguments->json, "One JSON object on stdout");
  verb->callback([arguments, run] { run(*arguments); });
  return arguments;
}

}  // namespace

void add_cache(CLI::App& app) {
  CLI::App* const cache = app.add_subcommand("cache", "A cache that the jobs of a machine share");
  cache->require_subcommand(1);
  add_verb<ServeArguments>(
      *cache, "serve", "Serve one until SIGTERM or ctrl-C", serve,
      [](CLI::App& verb, ServeArguments& arguments) {
        verb.add_option("--memory", arguments.memory, "All that it may take, like 8GiB")
            ->required();
        verb.add_option("--quota", arguments.quotas, "USER=SIZE: what one user's values may take");
      });
  const auto none = [](CLI::App&, CacheArguments&) {};
  add_verb<CacheArguments>(*cache, "stat", "What it holds, and for whom", stat, none);
  add_verb<CacheArguments>(*cache, "ls", "What it holds, by data set and form", ls, none);
  add_verb<ClearArguments>(
      *cache, "clear", "Take values away", clear, [](CLI::App& verb, ClearArguments& arguments) {
        verb.add_option("--data", arguments.data, "Of this data set, as ls shows it");
        verb.add_option("--form", arguments.form, "Of this form, as ls shows it");
        verb.add_flag("--all", arguments.all, "All of them");
      });
}

}  // namespace cutwater::cli
