// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <span>
#include <utility>

#include "bind.h"
#include "cutwater/source.h"

namespace cutwater::python {

std::string file_name(nb::handle text) {
  const nb::object bytes = nb::steal(PyUnicode_EncodeFSDefault(text.ptr()));
  if (!bytes.is_valid()) throw nb::python_error();
  return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

nb::str file_text(std::string_view name) {
  PyObject* text =
      PyUnicode_DecodeFSDefaultAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
  if (text == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(text);
}

namespace {

std::vector<std::string> file_names(const nb::list& texts) {
  std::vector<std::string> names;
  for (const nb::handle text : texts) names.push_back(file_name(text));
  return names;
}

// A bytes-like object, seen as bytes while this lives.
class BytesView {
 public:
  explicit BytesView(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  BytesView(BytesView&& other) noexcept : view_(std::exchange(other.view_, Py_buffer{})) {}
  ~BytesView() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }
  std::span<const std::uint8_t> bytes() const {
    return {static_cast<const std::uint8_t*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

std::shared_ptr<Source> opened_memory(const nb::list& samples,
                                      const std::vector<std::int64_t>& labels,
                                      const nb::list& classes) {
  std::vector<BytesView> views;
  std::vector<std::span<const std::uint8_t>> bytes;
  views.reserve(nb::len(samples));
  for (const nb::handle sample : samples) bytes.push_back(views.emplace_back(sample).bytes());
  const std::vector<std::string> names = file_names(classes);
  const nb::gil_scoped_release released;  // the views are given back with the GIL held again
  return std::const_pointer_cast<Source>(open_memory(bytes, labels, names));
}

// Opens without the GIL: a listing may take seconds.
template <class Open>
std::shared_ptr<Source> opened(Open&& open) {
  nb::gil_scoped_release released;
  return std::const_pointer_cast<Source>(open());
}

// A server may have to be asked.
void load_listing(const Source& source) {
  const nb::gil_scoped_release released;
  source.load_listing();
}

}  // namespace

void bind_source(nb::module_& m) {
  nb::class_<Source>(m, "Source", "Where samples come from.")
      .def("__len__", &Source::size)
      .def(
          "path",
          [](const Source& s, SampleId id) {
            load_listing(s);
            return file_text(s.path(id));
          },
          nb::arg("id"))
      .def(
          "label",
          [](const Source& s, SampleId id) {
            load_listing(s);
            return s.label(id);
          },
          nb::arg("id"))
      .def_prop_ro("has_labels", &Source::has_labels)
      .def_prop_ro("classes",
                   [](const Source& s) {
                     std::vector<nb::str> names;
                     for (const std::string& name : s.classes()) names.push_back(file_text(name));
                     return names;
                   })
      .def_prop_ro("cut", &Source::cut)
      .def_prop_ro("fingerprint", &Source::fingerprint)
      .def_prop_ro("pipeline", &Source::pipeline)
      .def_prop_ro("identity", &Source::identity);

  m.def(
      "open_folder",
      [](const nb::str& path, const std::vector<std::string>& extensions, bool allow_empty) {
        FolderOptions options;
        if (!extensions.empty()) options.extensions = extensions;
        options.allow_empty = allow_empty;
        return opened([&, name = file_name(path)] { return open_folder(name, options); });
      },
      nb::arg("path"), nb::arg("extensions"), nb::arg("allow_empty"));
  m.def(
      "open_files",
      [](const nb::list& paths, const std::vector<std::int64_t>& labels, const nb::list& classes) {
        return opened([&, names = file_names(paths), classes = file_names(classes)] {
          return open_files(names, labels, classes);
        });
      },
      nb::arg("paths"), nb::arg("labels"), nb::arg("classes"));
  m.def(
      "open_table",
      [](const nb::str& path) {
        return opened([name = file_name(path)] { return open_table(name); });
      },
      nb::arg("path"));
  m.def(
      "open_tar_pattern",
      [](const nb::str& pattern) {
        return opened([name = file_name(pattern)] { return open_tar(shards_of(name)); });
      },
      nb::arg("pattern"));
  m.def(
      "open_tar",
      [](const nb::list& shards) {
        return opened([names = file_names(shards)] { return open_tar(names); });
      },
      nb::arg("shards"));
  m.def("open_memory", &opened_memory, nb::arg("samples"), nb::arg("labels"), nb::arg("classes"));
}

}  // namespace cutwater::python
