// SPDX-License-Identifier: Apache-2.0
#include "train/model_setup.h"

#include <cmath>
#include <limits>

#include "exec/context_state.h"
#include "layers/definition.h"
#include "train/objective.h"
#include "train/optimizers.h"
#include "train/trainable.h"

namespace tenon::train {
namespace {

bool names_devices(const std::vector<LayerDefinition>& all) {
  bool found = false;
  layers::for_each_layer(all, [&](const LayerDefinition& layer) { found = found || !layer.device.empty(); });
  return found;
}

}  // namespace

CompileOptions compile_options(const TrainDefinition& definition) {
  return {.optimizer = with_defaults(definition.optimizer),
          .loss = definition.loss,
          .metrics = definition.metrics,
          .parallel_devices = definition.parallel_devices,
          .trainable = definition.trainable,
          .frozen = definition.frozen};
}

const Context& ModelSetup::need_context() const {
  if (!context) throw Error("model: call compile() first: it sets the context, the optimizer and the loss");
  return *context;
}

BuildOptions ModelSetup::build_options() const {
  return {.learns = learns_of(options), .context = context ? &*context : nullptr, .sources = sources.get()};
}

Device ModelSetup::device(const std::string& name) const {
  const std::string found = name.empty() ? main_device() : name;
  return found.empty() ? context->default_device() : Device(context->state()->open_found(found));
}

std::optional<Device> ModelSetup::batch_device() const {
  if (!context->config().placement.empty()) return std::nullopt;  // placement rules may move the first node or the loss
  if (options.parallel_devices.size() > 1 || names_devices(definition.layers)) return std::nullopt;
  return device();
}

Logs ModelSetup::empty_logs() const {
  Logs logs{{"loss", 0.0}};
  for (const MetricDefinition& metric : options.metrics) logs.emplace_back(metric.name(), 0.0);
  return logs;
}

void ModelSetup::write_logs(std::span<const double> means, Logs& out_logs) const {
  out_logs[0].second = means[0];
  for (std::size_t i = 1; i < out_logs.size(); ++i) {
    const auto rule = rule_of(options.metrics[i - 1].metric).finish;
    out_logs[i].second = rule == nullptr ? means[i] : rule(means[i]);
  }
  for (auto& [name, value] : out_logs) {
    if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();  // 0/0 is negative on x86, and would be printed as "-nan"
  }
}

}  // namespace tenon::train
