// SPDX-License-Identifier: Apache-2.0
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>

#include "bind.h"
#include "core/machine.h"
#include "cutwater/hold.h"
#include "cutwater/loader.h"

namespace cutwater::python {
namespace {

using Clock = std::chrono::steady_clock;

// How often a waiting consumer looks for ctrl-C.
constexpr std::chrono::milliseconds kSignalCheck{50};

nb::dict batch_dict(Batch batch) {
  auto owned = std::make_unique<Batch>(std::move(batch));
  Batch* held = owned.get();
  const nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<Batch*>(p); });
  nb::dict fields;
  for (const Batch::FieldView& field : held->fields)
    fields[field.name.c_str()] = numpy_array(field.spec, field.data, owner);
  nb::dict dict;
  dict["epoch"] = held->epoch;
  dict["index"] = held->index;
  dict["ids"] = numpy_array({DType::kI64, {held->size()}},
                            reinterpret_cast<std::uint8_t*>(held->ids.data()), owner);
  dict["fields"] = fields;
  return dict;
}

// A batch as a dict, or None at the end of the epoch. Waits without the GIL, and wakes for signals.
std::optional<nb::dict> next_batch(Loader& loader, std::optional<double> timeout_s) {
  const auto start = Clock::now();
  for (;;) {
    bool ready = false;
    {
      nb::gil_scoped_release released;
      ready = loader.wait(kSignalCheck);
    }
    if (ready) break;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (timeout_s && std::chrono::duration<double>(Clock::now() - start).count() > *timeout_s)
      throw Error(Code::kTimeout, "no batch within " + std::to_string(*timeout_s) + " s; " +
                                      loader.stats().bound_by);
  }
  std::optional<Batch> batch = loader.next();
  if (!batch) return std::nullopt;
  return batch_dict(std::move(*batch));
}

nb::dict cache_dict(const CacheReport& report) {
  nb::dict forms;
  for (const CacheReport::Form& form : report.forms) {
    nb::dict one;
    one["entries"] = form.entries;
    one["bytes"] = form.bytes;
    one["hits"] = form.hits;
    forms[form.cut.c_str()] = one;
  }
  nb::dict dict;
  dict["hits"] = report.hits;
  dict["misses"] = report.misses;
  dict["damaged"] = report.damaged;
  dict["refused"] = report.refused;
  dict["made_ahead"] = report.made_ahead;
  dict["by_form"] = forms;
  dict["entries"] = report.entries;
  dict["evicted"] = report.evicted;
  dict["bytes"] = report.bytes;
  dict["limit"] = report.limit;
  dict["cut"] = report.cut;
  dict["codec"] = report.codec;
  dict["why"] = report.why;
  dict["jobs"] = report.jobs;
  dict["trouble"] = report.trouble.empty() ? nb::none() : nb::object(nb::cast(report.trouble));
  dict["seconds"] = report.seconds;
  return dict;
}

nb::dict store_dict(const StoreReport& report) {
  nb::dict dict;
  dict["path"] = file_text(report.path);
  dict["cut"] = report.cut;
  dict["codec"] = report.codec;
  dict["state"] = report.state;
  dict["reason"] = file_text(report.reason);
  dict["samples"] = report.samples;
  dict["bytes"] = report.bytes;
  dict["damaged"] = report.damaged;
  dict["seconds"] = report.seconds;
  return dict;
}

// Ends all work, but for a store that is being written: that is finished first, or left by ctrl-C.
void close_loader(Loader& loader) {
  for (;;) {
    {
      nb::gil_scoped_release released;
      if (loader.finish_store(kSignalCheck)) break;
    }
    if (PyErr_CheckSignals() != 0) {
      loader.close();
      throw nb::python_error();
    }
  }
  nb::gil_scoped_release released;
  loader.close();
}

nb::dict stats_dict(const Loader& loader) {
  const LoaderStats stats = loader.stats();
  nb::dict ops;
  for (const NamedOpTime& op : stats.ops) {
    nb::dict time;
    time["seconds"] = op.seconds;
    time["calls"] = op.calls;
    ops[op.name.c_str()] = time;
  }
  nb::dict waits;
  waits["consumer_seconds"] = stats.consumer_wait_seconds;
  waits["worker_seconds"] = stats.worker_wait_seconds;
  nb::dict memory;
  memory["limit"] = stats.memory_limit;
  memory["peak"] = stats.memory_peak;
  nb::dict dict;
  dict["samples"] = stats.samples;
  dict["batches"] = stats.batches;
  dict["bytes"] = stats.bytes_read;
  dict["seconds"] = stats.elapsed_seconds;
  dict["first_batch_seconds"] = stats.first_batch_seconds;
  dict["read_seconds"] = stats.read_seconds;
  dict["reads_queued"] = stats.reads_queued;
  dict["ops"] = ops;
  dict["waits"] = waits;
  dict["memory"] = memory;
  nb::dict index;
  index["samples"] = stats.index.samples;
  index["uses"] = stats.index.uses;
  index["bytes"] = stats.index.bytes;
  dict["index"] = index;
  dict["store"] = stats.store ? nb::object(store_dict(*stats.store)) : nb::none();
  dict["offload"] = stats.fetch ? nb::object(fetch_dict(*stats.fetch)) : nb::none();
  dict["cache"] = stats.cache ? nb::object(cache_dict(*stats.cache)) : nb::none();
  dict["threads"] = stats.threads;
  dict["skipped"] = failure_list(stats.skipped);
  dict["substituted"] = failure_list(stats.substituted);
  dict["bound_by"] = stats.bound_by;
  return dict;
}

constexpr int kStateVersion = 2;

nb::dict state_dict(const Loader& loader) {
  const LoaderState state = loader.state();
  nb::dict stream;
  for (const auto& [name, value] : state.stream) stream[name.c_str()] = value;
  nb::dict dict;
  dict["version"] = kStateVersion;
  dict["epoch"] = state.epoch;
  dict["position"] = state.position;
  dict["batch"] = state.batch;
  dict["done_beyond"] = state.done_beyond;
  dict["stream"] = stream;
  return dict;
}

std::shared_ptr<Source> hold(std::shared_ptr<Source> source, const Pipeline& pipeline, Cut cut,
                             std::optional<int> threads, std::optional<std::size_t> memory_limit) {
  HoldOptions options{threads, memory_limit, [] {
                        const nb::gil_scoped_acquire acquired;
                        if (PyErr_CheckSignals() != 0) throw nb::python_error();
                      }};
  const nb::gil_scoped_release released;
  return std::const_pointer_cast<Source>(hold_in_memory(std::move(source), pipeline, cut, options));
}

void load_state_dict(Loader& loader, const nb::dict& dict) {
  LoaderState state;
  try {
    if (const int version = nb::cast<int>(dict["version"]); version != kStateVersion)
      throw Error(Code::kInvalidArgument, "the saved state is of version " +
                                              std::to_string(version) + ", this cutwater reads " +
                                              std::to_string(kStateVersion) +
                                              "; use the cutwater that has saved it");
    state.epoch = nb::cast<std::uint32_t>(dict["epoch"]);
    state.position = nb::cast<std::int64_t>(dict["position"]);
    state.batch = nb::cast<std::int64_t>(dict["batch"]);
    state.done_beyond = nb::cast<std::string>(dict["done_beyond"]);
    for (const auto& [name, value] : nb::cast<nb::dict>(dict["stream"]))
      state.stream.emplace_back(nb::cast<std::string>(name), nb::cast<std::string>(value));
  } catch (const nb::python_error&) {
    throw Error(Code::kInvalidArgument,
                "the saved state lacks a key; it is not a loader's state_dict()");
  } catch (const std::bad_cast&) {
    throw Error(Code::kInvalidArgument, "the saved state has a value of a wrong type");
  }
  loader.restore(state);
}

}  // namespace

void bind_loader(nb::module_& m) {
  nb::class_<Loader>(m, "Loader", "Batches of a data set, epoch after epoch.")
      .def(
          "__init__",
          [](Loader* self, std::shared_ptr<Source> source, const Pipeline& pipeline,
             std::int64_t batch_size, bool shuffle, std::uint64_t seed, bool drop_last,
             const std::string& order, const std::string& on_error,
             std::optional<std::int64_t> max_error_count, std::optional<double> max_error_share,
             std::optional<int> threads, std::optional<std::size_t> memory_limit,
             std::optional<std::int64_t> prefetch, bool fuse, std::optional<int> reads_in_flight,
             const std::string& index, std::shared_ptr<Cache> cache, const std::string& cache_cut,
             const std::string& cache_codec, const std::string& cache_split,
             bool cache_outlives_loader, const std::string& job, nb::handle store,
             const std::string& store_cut, const std::string& store_codec, bool profile,
             const std::string& policy) {
            What what{std::move(source), pipeline, batch_size, shuffle, seed, drop_last};
            what.order = order_named(order);
            what.bad_samples.policy = on_error_named(on_error);
            what.bad_samples.max_count = max_error_count;
            what.bad_samples.max_share = max_error_share;
            HowFast how{threads, memory_limit, prefetch, fuse, reads_in_flight, index};
            how.cache = {std::move(cache), cache_cut, cache_codec, cache_split, job};
            how.cache.outlives_loader = cache_outlives_loader;
            how.store = {store.is_none() ? std::string() : file_name(store), store_cut,
                         store_codec};
            how.profile = profile;
            how.policy = policy;
            // A cut may be chosen on some samples, which takes its time.
            const nb::gil_scoped_release released;
            new (self) Loader(std::move(what), how);
          },
          nb::kw_only(), nb::arg("source"), nb::arg("pipeline"), nb::arg("batch_size"),
          nb::arg("shuffle"), nb::arg("seed"), nb::arg("drop_last"), nb::arg("order"),
          nb::arg("on_error"), nb::arg("max_error_count").none(), nb::arg("max_error_share").none(),
          nb::arg("threads").none(), nb::arg("memory_limit").none(), nb::arg("prefetch").none(),
          nb::arg("fuse"), nb::arg("reads_in_flight").none(), nb::arg("index"),
          nb::arg("cache").none(), nb::arg("cache_cut"), nb::arg("cache_codec"),
          nb::arg("cache_split"), nb::arg("cache_outlives_loader"), nb::arg("job"),
          nb::arg("store").none(), nb::arg("store_cut"), nb::arg("store_codec"), nb::arg("profile"),
          nb::arg("policy"))
      .def("begin", &Loader::begin)
      .def("next", &next_batch, nb::arg("timeout_s").none())
      .def("leave_epoch", &Loader::leave_epoch)
      .def("set_epoch", &Loader::set_epoch, nb::arg("epoch"))
      .def_prop_ro("next_epoch", &Loader::next_epoch)
      .def("__len__", &Loader::batches_per_epoch)
      .def("state_dict", &state_dict)
      .def("load_state_dict", &load_state_dict, nb::arg("state"))
      .def("stats", &stats_dict)
      .def("cache_trouble", &Loader::cache_trouble)
      .def("cache_damage", &Loader::cache_damage)
      .def("profile", &Loader::profile)
      .def("close", &close_loader);
  m.def("hold_in_memory", &hold, nb::arg("source"), nb::arg("pipeline"), nb::arg("cut"),
        nb::arg("threads").none(), nb::arg("memory_limit").none(),
        "Runs the pipeline up to the cut once for all samples and keeps the results.");
  m.def("usable_cores", &usable_cores, "Cores that this process may use, by cpuset and CFS quota.");
}

}  // namespace cutwater::python
