// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind.h"
#include "cutwater/source.h"

namespace cutwater::python {
namespace {

SampleId checked(const Source& source, SampleId id) {
  if (id < 0) id += source.size();
  if (id < 0 || id >= source.size()) {
    const std::string text = "sample " + std::to_string(id) +
                             " is out of range: the data set has " + std::to_string(source.size()) +
                             " samples";
    throw nb::index_error(text.c_str());
  }
  return id;
}

}  // namespace

void bind_source(nb::module_& m) {
  nb::class_<Source>(m, "Source", "Where samples come from.")
      .def("__len__", &Source::size)
      .def("index", &checked, nb::arg("id"), "The id, counted from the end where negative.")
      .def(
          "path", [](const Source& s, SampleId id) { return s.path(checked(s, id)); },
          nb::arg("id"))
      .def(
          "label", [](const Source& s, SampleId id) { return s.label(checked(s, id)); },
          nb::arg("id"))
      .def_prop_ro("has_labels", &Source::has_labels)
      .def_prop_ro("classes", &Source::classes)
      .def_prop_ro("identity", &Source::identity);

  const auto released = nb::call_guard<nb::gil_scoped_release>();
  m.def(
      "open_folder",
      [](const std::string& path, const std::vector<std::string>& extensions, bool allow_empty) {
        FolderOptions options;
        if (!extensions.empty()) options.extensions = extensions;
        options.allow_empty = allow_empty;
        return std::const_pointer_cast<Source>(open_folder(path, options));
      },
      nb::arg("path"), nb::arg("extensions"), nb::arg("allow_empty"), released);
  m.def(
      "open_files",
      [](const std::vector<std::string>& paths, const std::vector<std::int64_t>& labels,
         const std::vector<std::string>& classes) {
        return std::const_pointer_cast<Source>(open_files(paths, labels, classes));
      },
      nb::arg("paths"), nb::arg("labels"), nb::arg("classes"), released);
  m.def(
      "open_table",
      [](const std::string& path) { return std::const_pointer_cast<Source>(open_table(path)); },
      nb::arg("path"), released);
  m.def(
      "open_tar",
      [](const std::vector<std::string>& shards) {
        return std::const_pointer_cast<Source>(open_tar(shards));
      },
      nb::arg("shards"), released);
}

}  // namespace cutwater::python
