// SPDX-License-Identifier: Apache-2.0
// cutwater serve: data sets near their storage, for trainers elsewhere.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/machine.h"
#include "core/units.h"
#include "cutwater/loader.h"
#include "last_resort.h"
#include "ops/all_ops.h"
#include "serve/server.h"
#include "stop_on_signal.h"
#include "verbs.h"

namespace cutwater::cli {
namespace {

constexpr std::chrono::seconds kToEnd(5);  // once all was sent that will be

struct ServeArguments {
  std::vector<std::string> data;
  std::string listen = "127.0.0.1:7070", token_file, tls_cert, tls_key, cache, memory, metrics;
  int threads = -1, in_flight = serve::ServiceOptions{}.in_flight;
  int clients = serve::ServiceOptions{}.clients;
  double cpu_share = 0.5;
  bool json = false;
};

[[noreturn]] void refuse(const std::string& why) { throw Error(Code::kInvalidArgument, why); }

std::string content(const char* option, const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw Error(Code::kNotFound, std::string(option) + ": '" + path + "' cannot be read");
  if (text.str().empty()) refuse(std::string(option) + ": '" + path + "' is empty");
  return text.str();
}

// One line that others cannot read.
std::string token_of(const std::string& path) {
  std::string token = content("--token-file", path);
  struct stat about {};
  if (::stat(path.c_str(), &about) == 0 && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    refuse("--token-file: others may read '" + path + "'; make it yours alone (chmod 600)");
  token.erase(
      std::find_if(token.begin(), token.end(), [](char c) { return c == '\n' || c == '\r'; }),
      token.end());
  constexpr std::size_t kLeast = 16;
  if (token.size() < kLeast)
    refuse("--token-file: the token in '" + path + "' must have 16 characters or more");
  return token;
}

// "NAME=PATH", or a path, whose last part is the name.
serve::ServedData served(const std::string& argument) {
  const std::size_t sign = argument.find('=');
  const bool named =
      sign != std::string::npos && argument.find('/') > sign && !std::filesystem::exists(argument);
  const std::string path = named ? argument.substr(sign + 1) : argument;
  std::filesystem::path last = std::filesystem::path(path).lexically_normal();
  if (last.filename().empty()) last = last.parent_path();
  return {named ? argument.substr(0, sign) : last.filename().string(), open_data(path)};
}

// However few the cores are, a share of them is a thread; none of them is none.
int threads_of(double cpu_share) {
  if (cpu_share <= 0) return 0;
  return std::max(1, static_cast<int>(std::lround(cpu_share * usable_cores())));
}

void serve_data(const ServeArguments& arguments) {
  serve::ServerOptions options;
  for (const std::string& data : arguments.data) {
    options.data.push_back(served(data));
    for (std::size_t i = 0; i + 1 < options.data.size(); ++i)
      if (options.data[i].name == options.data.back().name)
        refuse("--data: there are two data sets '" + options.data[i].name +
               "'; name them, as in one=PATH");
  }
  options.listen = arguments.listen;
  if (!arguments.token_file.empty()) options.service.token = token_of(arguments.token_file);
  if (!arguments.tls_cert.empty()) options.tls_cert = content("--tls-cert", arguments.tls_cert);
  if (!arguments.tls_key.empty()) options.tls_key = content("--tls-key", arguments.tls_key);
  options.metrics = arguments.metrics;
  options.service.in_flight = arguments.in_flight;
  options.service.clients = arguments.clients;
  if (!arguments.memory.empty()) {
    options.workshop.memory = parse_bytes("--memory", arguments.memory);
    options.workshop.client_memory =
        std::min(options.workshop.client_memory, options.workshop.memory);
  }
  if (!arguments.cache.empty()) options.workshop.maker.cache = cache_named(arguments.cache);
  options.workshop.makers =
      arguments.threads >= 0 ? arguments.threads : threads_of(arguments.cpu_share);
  options.log = [](const std::string& line) {
    std::fprintf(stderr, "cutwater serve: %s\n", line.c_str());
  };
  LastResort last_resort;
  options.going_down = [&last_resort, drain_s = options.drain_seconds] {
    last_resort.arm(std::chrono::duration<double>(drain_s) + kToEnd);
  };
  serve::Server server(options, all_ops());
  const StopOnSignal stopping(server);
  for (const serve::ServedData& data : options.data)
    options.log("grpc" + std::string(options.tls_cert.empty() ? "" : "s") + "://" +
                server.address() + "/" + data.name + ": " + std::to_string(data.source->size()) +
                " samples, " + std::to_string(options.workshop.makers) + " threads for ops");
  if (arguments.json) {
    nlohmann::ordered_json json = {
        {"address", server.address()}, {"pid", getpid()}, {"threads", options.workshop.makers}};
    if (server.metrics_port()) json["metrics_port"] = *server.metrics_port();
    json["data"] = nlohmann::ordered_json::array();
    for (const serve::ServedData& data : options.data)
      json["data"].push_back({{"name", data.name}, {"samples", data.source->size()}});
    std::printf("%s\n", json.dump().c_str());
    std::fflush(stdout);
  }
  server.run();
}

}  // namespace

void add_serve(CLI::App& app) {
  auto arguments = std::make_shared<ServeArguments>();
  CLI::App* verb =
      app.add_subcommand("serve", "Serve data sets near their storage to trainers elsewhere");
  verb->add_option("--data", arguments->data,
                   "Folder, table, tar shards or store; several, or NAME=PATH")
      ->required();
  verb->add_option("--listen", arguments->listen,
                   "HOST:PORT; port 0: any. Other than loopback needs TLS and a token")
      ->capture_default_str();
  verb->add_option("--threads", arguments->threads,
                   "Threads that run ops for trainers; 0: samples go as stored")
      ->check(CLI::Range(0, 1024));
  verb->add_option("--cpu-share", arguments->cpu_share,
                   "Without --threads: of this machine's cores; 0: samples go as stored")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb->add_option("--cache", arguments->cache, "Such as 2GiB: keep what stable ops have made");
  verb->add_option("--clients", arguments->clients,
                   "Trainers at once, each loader counted; others wait until one leaves")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  verb->add_option("--in-flight", arguments->in_flight,
                   "Samples that a trainer may have asked for and not yet got")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  verb->add_option("--memory", arguments->memory,
                   "Such as 2GiB: of samples read or made and not yet sent (default: 1GiB)");
  verb->add_option("--token-file", arguments->token_file,
                   "A file (mode 600) with what trainers must show");
  verb->add_option("--tls-cert", arguments->tls_cert, "PEM file of the certificate");
  verb->add_option("--tls-key", arguments->tls_key, "PEM file of its key");
  verb->add_option("--metrics", arguments->metrics,
                   "[HOST:]PORT for Prometheus; port 0: any. Without a host: this machine alone");
  verb->add_flag("--json", arguments->json, "One JSON object on stdout when it is ready");
  verb->callback([arguments] { serve_data(*arguments); });
}

}  // namespace cutwater::cli
