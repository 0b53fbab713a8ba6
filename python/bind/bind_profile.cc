// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind.h"
#include "core/machine.h"
#include "cutwater/profile.h"
#include "profile/summary.h"

namespace cutwater::python {
namespace {

Profile made(std::shared_ptr<Source> source, const Pipeline& pipeline,
             std::optional<std::int64_t> samples, double max_seconds, std::optional<int> threads,
             std::uint64_t seed, std::optional<double> consumer) {
  ProfileOptions options;
  options.samples = samples;
  options.max_seconds = max_seconds;
  options.threads = threads ? *threads : default_threads();
  options.seed = seed;
  options.consumer_samples_per_s = consumer;
  options.on_progress = [](std::int64_t, std::int64_t) {
    const nb::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
  const nb::gil_scoped_release released;
  return make_profile(std::move(source), pipeline, options);
}

}  // namespace

void bind_profile(nb::module_& m) {
  nb::class_<Profile>(m, "Profile", "Sizes and times of some samples at every cut.")
      .def_static(
          "load",
          [](const nb::str& path) {
            const std::string name = file_name(path);
            const nb::gil_scoped_release released;
            return load_profile(name);
          },
          nb::arg("path"))
      .def(
          "save",
          [](const Profile& profile, const nb::str& path) {
            const std::string name = file_name(path);
            const nb::gil_scoped_release released;
            save_profile(profile, name);
          },
          nb::arg("path"))
      .def("table", &profile_table)
      .def("json", &profile_json)
      .def_ro("ids", &Profile::ids);
  m.def("make_profile", &made, nb::arg("source"), nb::arg("pipeline"), nb::arg("samples").none(),
        nb::arg("max_seconds"), nb::arg("threads").none(), nb::arg("seed"),
        nb::arg("consumer").none());
}

}  // namespace cutwater::python
