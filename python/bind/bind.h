// SPDX-License-Identifier: Apache-2.0
// One bind_* per public header; each is one call deep.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>
#include <vector>

#include "cutwater/error.h"
#include "cutwater/param.h"
#include "cutwater/remote.h"
#include "cutwater/tensor.h"

namespace cutwater::python {

namespace nb = nanobind;

void bind_error(nb::module_& m);
void bind_source(nb::module_& m);
void bind_pipeline(nb::module_& m);
void bind_store(nb::module_& m);
void bind_cache(nb::module_& m);
void bind_remote(nb::module_& m);
void bind_loader(nb::module_& m);
void bind_profile(nb::module_& m);
void bind_plan(nb::module_& m);

// File names are bytes; Python shows what is not UTF-8 in them as surrogates, as os.fsdecode does.
std::string file_name(nb::handle text);
nb::str file_text(std::string_view name);

// [{"id", "path", "op", "reason"}, …]
nb::list failure_list(const std::vector<Failure>& failures);

nb::dict fetch_dict(const FetchReport& report);

nb::object to_python(const Value& value);
Value from_python(nb::handle object);
nb::dict to_python(const NamedValues& values);

// A NumPy array over these bytes that keeps `owner` alive.
nb::object numpy_array(const TensorSpec& spec, std::uint8_t* data, nb::handle owner);

}  // namespace cutwater::python
