// SPDX-License-Identifier: Apache-2.0
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bind.h"
#include "cutwater/pipeline.h"
#include "cutwater/source.h"
#include "ops/all_ops.h"
#include "ops/presets.h"

namespace cutwater::python {

nb::object to_python(const Value& value) {
  struct Converter {
    nb::object operator()(std::monostate) const { return nb::none(); }
    nb::object operator()(const List& list) const {
      nb::list numbers;
      for (const double number : list) numbers.append(number);
      return numbers;
    }
    nb::object operator()(const std::string& text) const { return nb::cast(text); }
    nb::object operator()(bool truth) const { return nb::cast(truth); }
    nb::object operator()(std::int64_t number) const { return nb::cast(number); }
    nb::object operator()(double number) const { return nb::cast(number); }
  };
  return std::visit(Converter{}, value);
}

Value from_python(nb::handle object) {
  if (object.is_none()) return {};
  if (nb::isinstance<nb::bool_>(object)) return nb::cast<bool>(object);
  if (nb::isinstance<nb::int_>(object)) {
    std::int64_t number = 0;
    if (nb::try_cast(object, number)) return number;
    throw Error(Code::kInvalidArgument,
                "the number " + std::string(nb::str(object).c_str()) + " is too large");
  }
  if (nb::isinstance<nb::float_>(object)) return nb::cast<double>(object);
  if (nb::isinstance<nb::str>(object)) return nb::cast<std::string>(object);
  List list;
  if (nb::try_cast(object, list)) return list;
  throw Error(Code::kInvalidArgument,
              "a parameter must be a number, a word, True, False, None or a "
              "list of numbers, got " +
                  std::string(nb::repr(object).c_str()));
}

nb::dict to_python(const NamedValues& values) {
  nb::dict dict;
  for (const auto& [name, value] : values) dict[name.c_str()] = to_python(value);
  return dict;
}

nb::object numpy_array(const TensorSpec& spec, std::uint8_t* data, nb::handle owner) {
  static constexpr nb::dlpack::dtype kTypes[] = {
      nb::dtype<std::uint8_t>(),
      nb::dtype<std::int16_t>(),
      nb::dtype<std::int32_t>(),
      nb::dtype<std::int64_t>(),
      {static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1},
      nb::dtype<float>(),
      nb::dtype<double>()};
  std::array<std::size_t, Shape::kMaxRank> shape{};
  std::array<std::int64_t, Shape::kMaxRank> strides{};
  const Shape array = spec.array_shape();
  std::int64_t step = 1;
  for (std::size_t axis = array.rank(); axis-- > 0; step *= array[axis]) {
    shape[axis] = static_cast<std::size_t>(array[axis]);
    strides[axis] = step;
  }
  if (spec.layout == Layout::kPlanesLast) {
    const std::size_t last = array.rank() - 1;
    strides[last - 2] = 1;
    strides[last] = array[last - 2];
    strides[last - 1] = array[last] * array[last - 2];
  }
  return nb::cast(nb::ndarray<nb::numpy>(data, array.rank(), shape.data(), owner, strides.data(),
                                         kTypes[static_cast<std::size_t>(spec.dtype)]));
}

namespace {

// {"image": array, "label": 4}: a field without dimensions is a plain number.
nb::dict sample_dict(Sample sample) {
  auto owned = std::make_unique<Sample>(std::move(sample));
  Sample* fields = owned.get();
  const nb::capsule owner(owned.release(),
                          [](void* p) noexcept { delete static_cast<Sample*>(p); });
  nb::dict dict;
  for (Field& field : fields->fields) {
    const TensorSpec& spec = field.tensor.spec();
    if (spec.shape.rank() == 0 && spec.dtype == DType::kI64) {
      std::int64_t number = 0;
      std::memcpy(&number, field.tensor.view().bytes(), sizeof number);
      dict[field.name.c_str()] = number;
    } else {
      dict[field.name.c_str()] = numpy_array(spec, field.tensor.span().bytes(), owner);
    }
  }
  return dict;
}

template <class T>
T with_path(Result<T> result, const Source& source, SampleId id) {
  if (!result) {
    result.failure().path = source.path(id);
    throw Error(std::move(result.failure()));
  }
  return std::move(result).value();
}

nb::list draws_list(const Pipeline& pipeline, const Source& source, SampleId id,
                    std::uint32_t epoch, std::uint64_t seed) {
  Draws draws;
  {
    nb::gil_scoped_release released;
    const auto pool = BufferPool::create(0);
    const Sample stored = with_path(source.read(id, *pool), source, id);
    draws = with_path(pipeline.draw(stored, seed, epoch), source, id);
  }
  nb::list list;
  for (const NamedDraw& draw : pipeline.describe(draws, source.cut())) {
    nb::dict dict;
    dict["op"] = std::string(draw.op);
    dict["position"] = draw.position;
    for (const auto& [name, value] : draw.values) dict[name.c_str()] = to_python(value);
    list.append(dict);
  }
  return list;
}

Tensor copied(const TensorView& view) {
  Buffer bytes(view.spec().bytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), view.bytes(), bytes.size());
  return {view.spec(), std::move(bytes)};
}

nb::dict run_sample(const Pipeline& pipeline, const Source& source, SampleId id, Cut upto,
                    std::uint32_t epoch, std::uint64_t seed, bool fuse) {
  if (upto < source.cut())
    throw Error(Code::kInvalidArgument,
                "the samples were prepared up to cut '" + pipeline.cut_name(source.cut()) +
                    "' and cannot be run up to '" + pipeline.cut_name(upto) +
                    "', which lies before it; ask the data set that they were made of");
  Sample sample;
  {
    nb::gil_scoped_release released;
    RunContext how;
    how.pool = BufferPool::create(0);
    how.fuse = fuse;
    Sample stored = with_path(source.read(id, *how.pool), source, id);
    const Draws draws = with_path(pipeline.draw(stored, seed, epoch), source, id);
    sample = with_path(pipeline.run(std::move(stored), source.cut(), upto, draws, how), source, id);
    // What the source only lends becomes the caller's, to keep and to write into.
    for (Field& field : sample.fields)
      if (!field.tensor.owns_bytes()) field.tensor = copied(field.tensor.view());
  }
  return sample_dict(std::move(sample));
}

nb::dict cut_dict(const Pipeline& pipeline, Cut cut) {
  nb::dict fields;
  for (const auto& [name, spec] : pipeline.fields_at(cut)) {
    nb::list shape;
    for (const std::int64_t dim : spec.array_shape())
      shape.append(dim == kUnknown ? nb::object(nb::none()) : nb::cast(dim));
    nb::dict field;
    field["dtype"] = std::string(name_of(spec.dtype));
    field["shape"] = shape;
    fields[name.c_str()] = field;
  }
  nb::dict dict;
  dict["cut"] = cut;
  dict["name"] = pipeline.cut_name(cut);
  dict["after"] =
      cut == 0 ? nb::object(nb::none()) : nb::cast(std::string(pipeline.op_before(cut)));
  dict["stable"] = pipeline.stable(cut);
  dict["fingerprint"] = pipeline.fingerprint(cut);
  dict["fields"] = fields;
  return dict;
}

nb::list op_list() {
  nb::list ops;
  for (const OpDef* def : all_ops().ops) {
    nb::list params;
    for (const ParamInfo& info : def->params()) {
      nb::dict param;
      param["name"] = std::string(info.name);
      param["doc"] = std::string(info.doc);
      param["type"] = std::string(info.python_type);
      param["required"] = info.required;
      param["default"] = to_python(info.default_value);
      params.append(param);
    }
    nb::dict op;
    op["name"] = std::string(def->name);
    op["doc"] = std::string(def->doc);
    op["domain"] = std::string(def->domain);
    op["draws"] = def->draws;
    op["params"] = params;
    ops.append(op);
  }
  return ops;
}

}  // namespace

void bind_pipeline(nb::module_& m) {
  nb::class_<Pipeline>(m, "Pipeline", "A chain of ops and the cuts between them. Immutable.")
      .def(nb::new_([]() { return Pipeline(all_ops()); }))
      .def(
          "then",
          [](const Pipeline& pipeline, const std::string& name, const nb::dict& params) {
            NamedValues values;
            for (const auto& [key, value] : params)
              values.emplace_back(nb::cast<std::string>(key), from_python(value));
            return pipeline.then(name, values);
          },
          nb::arg("name"), nb::arg("params"), "A new pipeline with one more op.")
      .def("__str__", &Pipeline::to_string)
      .def("__repr__",
           [](const Pipeline& p) { return "<cutwater.Pipeline '" + p.to_string() + "'>"; })
      .def("__len__", [](const Pipeline& p) { return p.ops().size(); })
      .def("__eq__",
           [](const Pipeline& a, const Pipeline& b) { return a.fingerprint() == b.fingerprint(); })
      .def(
          "__eq__", [](const Pipeline&, nb::handle) { return false; }, nb::arg().none())
      .def("__hash__", [](const Pipeline& p) { return nb::hash(nb::cast(p.fingerprint())); })
      .def_prop_ro("last_cut", &Pipeline::last_cut)
      .def_prop_ro("frontier", &Pipeline::frontier)
      .def(
          "cut", [](const Pipeline& p, const std::string& name) { return p.cut_named(name); },
          nb::arg("name"), "The number of a cut, by the op it follows or by its number.")
      .def("cuts",
           [](const Pipeline& p) {
             nb::list cuts;
             for (Cut cut = 0; cut <= p.last_cut(); ++cut) cuts.append(cut_dict(p, cut));
             return cuts;
           })
      .def(
          "fingerprint",
          [](const Pipeline& p, std::optional<Cut> cut) {
            return p.fingerprint(cut.value_or(p.last_cut()));
          },
          nb::arg("cut").none() = nb::none(), "Names the bytes at a cut (default: the last one).");

  m.def(
      "parse", [](const std::string& text) { return named_pipeline(text); }, nb::arg("text"),
      "A pipeline from its text, or a preset by its name.");
  m.def("ops", &op_list, "The table of ops.");
  m.def("presets", [] {
    nb::dict dict;
    for (const auto& [name, text] : presets()) dict[std::string(name).c_str()] = std::string(text);
    return dict;
  });
  m.def("draws", &draws_list, nb::arg("pipeline"), nb::arg("source"), nb::arg("id"),
        nb::arg("epoch"), nb::arg("seed"));
  m.def("run", &run_sample, nb::arg("pipeline"), nb::arg("source"), nb::arg("id"), nb::arg("upto"),
        nb::arg("epoch"), nb::arg("seed"), nb::arg("fuse"));
}

}  // namespace cutwater::python
