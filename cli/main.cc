// SPDX-License-Identifier: Apache-2.0
// cutwater: one command, a verb per capability. Exit status: 0 done, 1 failed, 2 wrong usage.
#include <cstdio>
#include <exception>

#include "cutwater/error.h"
#include "ops/simd_level.h"
#include "verbs.h"

int main(int argc, char** argv) {
  using cutwater::Code;
  CLI::App app{"Cutwater feeds training: data in, finished batches out."};
  app.set_version_flag("--version", CUTWATER_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);
  cutwater::cli::add_run(app);
  cutwater::cli::add_profile(app);
  cutwater::cli::add_plan(app);
  cutwater::cli::add_sim(app);
  cutwater::cli::add_report(app);
  cutwater::cli::add_ops(app);
  cutwater::cli::add_materialize(app);
  cutwater::cli::add_verify(app);
  cutwater::cli::add_cache(app);
  cutwater::cli::add_serve(app);
  cutwater::cli::add_doctor(app);
  try {
    cutwater::use_simd_of_environment();
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return 2;
  } catch (const cutwater::Error& error) {
    std::fprintf(stderr, "cutwater: %s\n", error.what());
    const bool usage = error.code() == Code::kInvalidArgument || error.code() == Code::kNotFound;
    if (error.code() == Code::kCancelled) return 130;  // ctrl-C
    return usage ? 2 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cutwater: internal error: %s\n", error.what());
    return 1;
  }
}
