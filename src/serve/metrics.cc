// SPDX-License-Identifier: Apache-2.0
#include "serve/metrics.h"

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>

#include <exception>
#include <utility>
#include <vector>

#include "cutwater/error.h"

namespace cutwater::serve {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily family(const char* name, const char* help, MetricType type, double value) {
  MetricFamily family{name, help, type, {}};
  prometheus::ClientMetric metric;
  if (type == MetricType::Counter)
    metric.counter.value = value;
  else
    metric.gauge.value = value;
  family.metric.push_back(std::move(metric));
  return family;
}

// Reads the workshop's books when it is asked: nothing is counted twice.
class WorkshopMetrics final : public prometheus::Collectable {
 public:
  explicit WorkshopMetrics(const Workshop& shop) : shop_(shop) {}

  std::vector<MetricFamily> Collect() const override {
    const WorkshopStats stats = shop_.stats();
    const auto count = [](const char* name, const char* help, auto value) {
      return family(name, help, MetricType::Counter, static_cast<double>(value));
    };
    const auto gauge = [](const char* name, const char* help, auto value) {
      return family(name, help, MetricType::Gauge, static_cast<double>(value));
    };
    return {
        count("cutwater_answers_total", "Samples that were sent.", stats.answers),
        count("cutwater_failures_total", "Samples that could not be read.", stats.failures),
        count("cutwater_ran_less_total", "Samples sent as stored for want of CPU.", stats.ran_less),
        count("cutwater_stored_bytes_total", "What the samples weigh as stored.",
              stats.stored_bytes),
        count("cutwater_sent_bytes_total", "What was sent of them.", stats.sent_bytes),
        count("cutwater_op_seconds_total", "CPU seconds that ops took.", stats.maker_seconds),
        count("cutwater_read_seconds_total", "CPU seconds that reading took.",
              stats.reader_seconds),
        count("cutwater_cache_hits_total", "Samples made of what the cache had.", stats.cache_hits),
        count("cutwater_cache_misses_total", "Samples that the cache could have had.",
              stats.cache_misses),
        gauge("cutwater_cache_bytes", "What the cache holds.", stats.cache_bytes),
        gauge("cutwater_clients", "Trainers that are connected.", stats.clients),
        gauge("cutwater_orders_waiting", "Samples ordered and not begun.", stats.waiting),
        gauge("cutwater_held_bytes", "Read or made, and not yet sent.", stats.bytes_held)};
  }

 private:
  const Workshop& shop_;
};

}  // namespace

struct Metrics::Impl {
  std::shared_ptr<WorkshopMetrics> metrics;
  std::unique_ptr<prometheus::Exposer> exposer;
};

Metrics::Metrics(const std::string& host, int port, const Workshop& shop)
    : impl_(std::make_unique<Impl>()) {
  impl_->metrics = std::make_shared<WorkshopMetrics>(shop);
  const std::string address =
      (host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":" + std::to_string(port);
  try {
    impl_->exposer = std::make_unique<prometheus::Exposer>(address, 1);
  } catch (const std::exception& error) {
    throw Error(Code::kUnavailable, "--metrics: cannot listen to " + address + ": " + error.what());
  }
  impl_->exposer->RegisterCollectable(impl_->metrics);
}

Metrics::~Metrics() = default;

int Metrics::port() const { return impl_->exposer->GetListeningPorts().front(); }

}  // namespace cutwater::serve
