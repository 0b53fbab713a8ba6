// SPDX-License-Identifier: Apache-2.0
// cutwater doctor: what this machine offers, what it lacks, and the command that mends it.
#include <dlfcn.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/machine.h"
#include "core/units.h"
#include "ops/image/codec_versions.h"
#include "ops/simd_level.h"
#include "run/ring.h"
#include "verbs.h"

namespace cutwater::cli {
namespace {

using nlohmann::ordered_json;

bool cuda_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return false;
  dlclose(library);
  return true;
}

// The torch that `python3` would import, from its package metadata: importing it takes seconds.
std::string torch_version() {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen("python3 -c \"import importlib.metadata as m; print(m.version('torch'))\" 2>/dev/null",
            "r"),
      pclose);
  std::array<char, 64> line{};
  if (!pipe || std::fgets(line.data(), line.size(), pipe.get()) == nullptr) return {};
  std::string version(line.data());
  while (!version.empty() && version.back() == '\n') version.pop_back();
  return version;
}

ordered_json examine() {
  const auto quota = cpu_quota();
  const std::string torch = torch_version();
  ordered_json codecs;
  for (const auto& [name, version] : image::codec_versions()) codecs[name] = version;
  ordered_json problems = ordered_json::array();
  if (torch.empty())
    problems.push_back({{"what", "python3 finds no torch: batches will be NumPy arrays"},
                        {"fix", "pip install torch"}});
  if (quota && *quota < affinity_cores())
    problems.push_back({{"what", "the container may use fewer cores than it sees"},
                        {"fix", "raise its CPU limit, or leave num_workers at \"auto\""}});
  const std::string no_ring = Ring::missing();
  if (!no_ring.empty())
    problems.push_back(
        {{"what", "no io_uring (" + no_ring + "): reads of slow storage take a thread each"},
         {"fix",
          "build with liburing-dev; allow io_uring in the container's seccomp profile and in "
          "/proc/sys/kernel/io_uring_disabled; or set num_workers above the cores"}});
  if (simd_levels().size() < 2)
    problems.push_back({{"what", "no SIMD level is known for this processor"},
                        {"fix", "none needed: the portable code runs, slower"}});
  return {{"version", CUTWATER_VERSION},
          {"cores", affinity_cores()},
          {"quota", quota ? ordered_json(*quota) : ordered_json(nullptr)},
          {"threads_by_default", usable_cores()},
          {"memory_bytes", usable_memory_bytes()},
          {"simd", simd_levels()},
          {"codecs", codecs},
          {"io_uring", no_ring.empty()},
          {"cuda", cuda_driver()},
          {"torch", torch.empty() ? ordered_json(nullptr) : ordered_json(torch)},
          {"problems", problems}};
}

void doctor(bool json) {
  const ordered_json found = examine();
  if (json) {
    std::printf("%s\n", found.dump(2).c_str());
    return;
  }
  const auto text = [&](const char* key) {
    return found[key].is_string() ? found[key].get<std::string>() : found[key].dump();
  };
  std::printf("cutwater %s\n", CUTWATER_VERSION);
  std::printf("  cores    %s (quota %s): %s threads by default\n", text("cores").c_str(),
              found["quota"].is_null() ? "none" : text("quota").c_str(),
              text("threads_by_default").c_str());
  std::printf("  memory   %s\n", bytes_text(found["memory_bytes"].get<std::uint64_t>()).c_str());
  std::string simd;
  for (const auto& level : found["simd"]) simd += " " + level.get<std::string>();
  std::printf("  simd    %s\n", simd.empty() ? " none" : simd.c_str());
  for (const auto& [name, version] : found["codecs"].items())
    std::printf("  %-8s %s\n", name.c_str(), version.get<std::string>().c_str());
  std::printf("  io_uring %s\n", found["io_uring"].get<bool>() ? "yes" : "no");
  std::printf("  cuda     %s\n", found["cuda"].get<bool>() ? "driver found" : "no driver");
  std::printf("  torch    %s\n", found["torch"].is_null() ? "not found" : text("torch").c_str());
  if (found["problems"].empty()) std::printf("nothing is missing\n");
  for (const auto& problem : found["problems"])
    std::printf("! %s\n    %s\n", problem["what"].get<std::string>().c_str(),
                problem["fix"].get<std::string>().c_str());
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* verb = app.add_subcommand("doctor", "What this machine offers, and what it lacks");
  verb->add_flag("--json", *json, "One JSON object on stdout");
  verb->callback([json] { doctor(*json); });
}

}  // namespace cutwater::cli
