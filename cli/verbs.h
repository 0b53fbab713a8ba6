// SPDX-License-Identifier: Apache-2.0
// The verbs of the command. Each adds itself to the app; its callback does the work and throws
// Error.
#pragma once

#include <CLI/CLI.hpp>

namespace cutwater::cli {

void add_run(CLI::App& app);
void add_profile(CLI::App& app);
void add_plan(CLI::App& app);
void add_sim(CLI::App& app);
void add_report(CLI::App& app);
void add_ops(CLI::App& app);
void add_materialize(CLI::App& app);
void add_verify(CLI::App& app);
void add_cache(CLI::App& app);
void add_serve(CLI::App& app);
void add_doctor(CLI::App& app);

}  // namespace cutwater::cli
