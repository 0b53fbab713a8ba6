// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind.h"
#include "core/units.h"
#include "ops/simd_level.h"

NB_MODULE(_core, m) {
  // A forked child lets go of its parent's loaders (see Loader::~Loader): that is no defect to
  // report.
  nanobind::set_leak_warnings(false);
  cutwater::use_simd_of_environment();
  m.doc() = "The native engine of cutwater.";
  m.attr("version") = CUTWATER_VERSION;
  cutwater::python::bind_error(m);
  cutwater::python::bind_source(m);
  cutwater::python::bind_pipeline(m);
  cutwater::python::bind_store(m);
  cutwater::python::bind_cache(m);
  cutwater::python::bind_remote(m);
  cutwater::python::bind_profile(m);
  cutwater::python::bind_loader(m);
  cutwater::python::bind_plan(m);
  m.def("simd_levels", &cutwater::simd_levels, "SIMD levels of this processor, best first.");
  m.def(
      "parse_bytes",
      [](const char* what, const char* text, std::uint64_t least) {
        return cutwater::parse_bytes(what, text, least);
      },
      nanobind::arg("what"), nanobind::arg("text"), nanobind::arg("least") = 1,
      "Number of bytes that a size such as '8GiB' stands for.");
  m.def(
      "parse_rate",
      [](const char* what, const char* text) { return cutwater::parse_rate(what, text); },
      nanobind::arg("what"), nanobind::arg("text"),
      "Bytes per second that a rate such as '250MB/s' or '10Gb/s' stands for.");
}
