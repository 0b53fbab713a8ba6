// SPDX-License-Identifier: Apache-2.0
// cutwater report: a profile and its plan, or a plan alone, as one page that needs nothing but a
// browser.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cutwater/plan.h"
#include "plan_arguments.h"
#include "report_page.h"
#include "source/read_file.h"
#include "verbs.h"
#include "write_text.h"

namespace cutwater::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t kMostPlanBytes = std::uint64_t{64} << 20;

struct Options {
  PlanArguments plan;
  std::string input, output;
  bool json = false;
};

double mean(const std::vector<double>& column) {
  if (column.empty()) return 0;
  return std::accumulate(column.begin(), column.end(), 0.0) / static_cast<double>(column.size());
}

ordered_json json_of(const CutProfile& cut) {
  ordered_json variants = ordered_json::array();
  for (const VariantProfile& variant : cut.variants)
    variants.push_back({{"codec", to_string(variant.codec)},
                        {"bytes", mean(variant.bytes)},
                        {"encode_s", mean(variant.encode_s)},
                        {"decode_s", mean(variant.decode_s)}});
  return {
      {"cut", cut.cut},
      {"name", cut.name},
      {"after", cut.after},
      {"stable", cut.stable},
      {"bytes", mean(cut.bytes)},
      {"op_s", mean(cut.op_s)},
      {"finish_s", cut.finish_s.empty() ? ordered_json(nullptr) : ordered_json(mean(cut.finish_s))},
      {"variants", std::move(variants)}};
}

ordered_json json_of(const Profile& profile) {
  ordered_json cuts = ordered_json::array();
  for (const CutProfile& cut : profile.cuts) cuts.push_back(json_of(cut));
  ordered_json bad = ordered_json::array();
  for (const Failure& failure : profile.bad) bad.push_back(failure.message());
  const StorageProfile& s = profile.storage;
  return {{"data_samples", profile.data_samples},
          {"profiled", profile.ids.size()},
          {"seconds", profile.seconds},
          {"relative_error", profile.relative_error},
          {"threads", profile.threads},
          {"engine_s", profile.engine_s},
          {"memory_bytes_per_s", profile.memory_bytes_per_s},
          {"storage",
           {{"cold_random", {s.cold_random.reads_per_s, s.cold_random.bytes_per_s}},
            {"cold_sequential", {s.cold_sequential.reads_per_s, s.cold_sequential.bytes_per_s}},
            {"warm_file_s", s.warm_file_s},
            {"warm_part_s", s.warm_part_s},
            {"warm_per_byte_s", s.warm_per_byte_s},
            {"check_per_byte_s", s.check_per_byte_s},
            {"write_bytes_per_s", s.write_bytes_per_s},
            {"write_file_s", s.write_file_s}}},
          {"cuts", std::move(cuts)},
          {"bad", std::move(bad)}};
}

// For HTML: no character of a text is a tag or an entity.
std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else
      safe += c;
  }
  return safe;
}

// For a script element: in JSON, '<' stands in strings only, and there it may be written otherwise.
std::string script_safe(const std::string& json) {
  std::string safe;
  for (const char c : json)
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  return safe;
}

// Text that is no UTF-8 is replaced, so that the page is.
std::string utf8(const std::string& text) {
  const std::string quoted =
      ordered_json(text).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return ordered_json::parse(quoted).get<std::string>();
}

std::string page(const std::optional<Profile>& profile, const Plan& plan) {
  const ordered_json data = {{"version", CUTWATER_VERSION},
                             {"profile", profile ? json_of(*profile) : ordered_json()},
                             {"plan", ordered_json::parse(to_json(plan))}};
  std::string html(kReportPage);
  const auto put = [&](const std::string& mark, const std::string& text) {
    html.replace(html.find(mark), mark.size(), text);
  };
  // From the last mark to the first: what is put in may look like a mark.
  put("%DATA%", script_safe(data.dump(-1, ' ', false, ordered_json::error_handler_t::replace)));
  put("%WORDS%", escaped(utf8(explain(plan))));
  return html;
}

void report(const CLI::App& verb, const Options& options) {
  std::optional<Profile> profile;
  Plan plan;
  std::error_code ignored;  // what cannot be looked at is no file here, and no profile either
  if (std::filesystem::is_regular_file(options.input, ignored)) {
    check_no_plan_arguments(verb);
    plan = plan_from_json(File::open(options.input).text(kMostPlanBytes));
  } else {
    profile = load_profile(options.input);
    plan = make_plan(*profile, plan_options(verb, options.plan));
  }
  const std::string html = page(profile, plan);
  write_text(options.output, html);
  if (options.json)
    std::printf("%s\n", ordered_json({{"output", utf8(options.output)},
                                      {"bytes", html.size()},
                                      {"choice", ordered_json::parse(to_json(plan))["choice"]}})
                            .dump(2)
                            .c_str());
  else
    std::printf("%s\nwrote %s\n", plan.reason.front().c_str(), options.output.c_str());
}

}  // namespace

void add_report(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("report", "A profile or a plan as one page for a browser");
  verb->add_option("input", options->input,
                   "Folder that cutwater profile wrote, or file that cutwater plan wrote")
      ->required();
  verb->add_option("-o,--output", options->output, "The page to write, such as report.html")
      ->required();
  add_plan_arguments(*verb, options->plan);
  verb->add_flag("--json", options->json, "One JSON object on stdout");
  verb->callback([verb, options] { report(*verb, *options); });
}

}  // namespace cutwater::cli
