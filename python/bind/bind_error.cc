// SPDX-License-Identifier: Apache-2.0
// Error to Python: the classes are Python's (cutwater/errors.py); here they are raised, or listed.
#include <nanobind/stl/string.h>

#include <exception>

#include "bind.h"
#include "cutwater/error.h"

namespace cutwater::python {

nb::list failure_list(const std::vector<Failure>& failures) {
  nb::list list;
  for (const Failure& failure : failures) {
    nb::dict dict;
    dict["id"] = failure.sample;
    dict["path"] = file_text(failure.path);
    dict["op"] = failure.op;
    dict["reason"] = file_text(failure.reason);
    list.append(dict);
  }
  return list;
}

void bind_error(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& pending, void*) {
    try {
      std::rethrow_exception(pending);
    } catch (const Error& error) {
      const Failure& failure = error.failure();
      nb::object raised =
          nb::module_::import_("cutwater.errors")
              .attr("from_failure")(static_cast<int>(failure.code), file_text(error.what()),
                                    file_text(failure.reason), failure.sample,
                                    file_text(failure.path), failure.op.c_str());
      PyErr_SetObject(raised.type().ptr(), raised.ptr());
    }
  });
}

}  // namespace cutwater::python
