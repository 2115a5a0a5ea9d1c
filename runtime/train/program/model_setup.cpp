// SPDX-License-Identifier: Apache-2.0
#include "train/program/model_setup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "exec/context_state.h"
#include "layers/definition.h"
#include "train/program/objective.h"
#include "train/program/optimizers.h"
#include "train/program/trainable.h"
#include "yaml/suggest.h"

namespace tenon::train {
namespace {

bool names_devices(const std::vector<LayerDefinition>& all) {
  bool found = false;
  layers::for_each_layer(all, [&](const LayerDefinition& layer) { found = found || !layer.device.empty(); });
  return found;
}

[[noreturn]] void fail(const OutputLoss& of, const std::string& reason) {
  throw Error(fmt::format("{}losses: {}", of.loss.where.empty() ? "" : of.loss.where + ": ", reason));
}

void check(const std::vector<OutputLoss>& losses, const std::vector<std::string>& outputs) {
  for (auto of = losses.begin(); of != losses.end(); ++of) {
    if (std::ranges::find(outputs, of->output) == outputs.end()) {
      fail(*of, fmt::format("expected an output of the model ({}), got '{}'{}", fmt::join(outputs, ", "), of->output,
                            yaml::did_you_mean(of->output, outputs)));
    }
    if (std::any_of(losses.begin(), of, [&](const OutputLoss& earlier) { return earlier.output == of->output; }))
      fail(*of, fmt::format("expected one loss for each output, got two for '{}'", of->output));
    if (!(of->weight >= 0) || !std::isfinite(of->weight))
      fail(*of, fmt::format("{}: weight is {}, expected a finite number of at least 0", of->output, of->weight));
    check_kind(of->loss);
  }
}

/// Errors  what a pipeline does not have, or fewer than two stages.
void check_pipeline(const ParallelOptions& parallel) {
  const auto refuse = [](bool given, const char* key, const char* reason) {
    if (given) throw Error(fmt::format("parallel.{}: not available with mode pipeline, {}; remove it, or use mode: data", key, reason));
  };
  refuse(parallel.shard_optimizer, "shard", "where each stage has only the optimizer state of its layers");
  refuse(!parallel.shares.empty(), "shares", "where every stage computes the whole batch; place layers by their `device`");
  refuse(parallel.sync_batch_norm, "sync_bn", "where batch normalisation uses the statistics of each micro-batch");
  refuse(parallel.bucket_mb.has_value(), "bucket_mb", "which sums no gradients over devices");
  refuse(!parallel.transport.empty(), "transport", "whose stages are devices of one process");
  refuse(parallel.link.bandwidth_bytes_per_s > 0 || parallel.link.ranks > 1, "link", "which has no sums over ranks");
  if (parallel.devices.size() < 2) {
    throw Error(
        fmt::format("parallel.devices: mode pipeline expects one device for each of at least 2 stages, got {}; list more, or the "
                    "virtual devices of one",
                    parallel.devices.size()));
  }
  if (parallel.micro_batches < 1) throw Error(fmt::format("parallel.micro_batches: expected at least 1, got {}", parallel.micro_batches));
}

/// Errors  a device that is missing or given twice, shares that are not one positive number for each device, a timeout out of range.
void check(const ParallelOptions& parallel, const Context& context) {
  std::map<std::string, std::string> known;  // by canonical name, as they are given
  for (const std::string& given : parallel.devices) {
    const std::string name = context.device(given).name();
    const auto [found, inserted] = known.try_emplace(name, given);
    if (!inserted) {
      throw Error(
          fmt::format("parallel.devices: '{}' and '{}' are both {}; expected each device once, or the virtual devices of one "
                      "(virtual: [{{of: {}, count: 2}}])",
                      found->second, given, name, name));
    }
  }
  if (!(parallel.timeout_s == 0 || (parallel.timeout_s >= 1 && parallel.timeout_s <= 1e6))) {
    throw Error(
        fmt::format("parallel.timeout_s: expected a number of seconds from 1 to 1e6, or 0 for no limit, got {}", parallel.timeout_s));
  }
  if (parallel.shares.empty()) return;
  if (parallel.shares.size() != parallel.devices.size()) {
    throw Error(fmt::format("parallel.shares: expected one number for each of the {} devices, got {}", parallel.devices.size(),
                            parallel.shares.size()));
  }
  for (const double share : parallel.shares) {
    if (!(share > 0) || !std::isfinite(share)) throw Error(fmt::format("parallel.shares: expected positive numbers, got {}", share));
  }
}

}  // namespace

CompileOptions compile_options(const TrainDefinition& definition) {
  return {.optimizer = with_defaults(definition.optimizer),
          .loss = definition.loss,
          .metrics = definition.metrics,
          .losses = definition.losses,
          .parallel = definition.parallel,
          .trainable = definition.trainable,
          .frozen = definition.frozen};
}

ModelSetup::ModelSetup(ModelDefinition model)
    : definition(std::move(model)), interface(layers::complete_interface(definition, *sources)), options{.optimizer = with_defaults({})} {}

void ModelSetup::compile(const Context& on, CompileOptions with) {
  check_kind(with.loss);
  check(with.losses, output_names());
  if (!with.losses.empty() && !with.metrics.empty())
    throw Error("losses: expected the metrics of each of them in OutputLoss::metrics, got CompileOptions::metrics, too");
  with.optimizer = with_defaults(with.optimizer);
  check(with.parallel, on);
  const bool is_pipeline = with.parallel.mode == ParallelOptions::Mode::pipeline;
  if (is_pipeline) check_pipeline(with.parallel);
  const bool has_transport = !with.parallel.transport.empty();
  if (has_transport && !with.parallel.shares.empty()) throw Error("parallel.shares: not available with a transport; expected none");
  const bool has_link = with.parallel.link.bandwidth_bytes_per_s > 0 || with.parallel.link.ranks > 1;
  if (has_transport && has_link) throw Error("parallel.link: not available with a transport; expected none");
  auto connected = has_transport ? exec::ProcessGroup::connect(with.parallel.transport, with.parallel.timeout_s) : nullptr;
  const auto devices = static_cast<int>(with.parallel.devices.size());
  const int ranks = std::max(devices, 1) * (connected == nullptr ? 1 : connected->size());
  if (with.parallel.shard_optimizer && !is_pipeline && ranks == 1) {
    throw Error(
        "parallel.shard: 'optimizer' divides the optimizer state among ranks; expected at least 2 devices or processes, got 1; add "
        "devices, or remove shard");
  }
  // A model whose compilation is refused stays as it was: what is checked is checked above.
  losses = with.losses;
  if (losses.empty() && interface.outputs.size() == 1)
    losses = {{.output = "", .loss = with.loss, .target = {}, .weight = 1, .metrics = with.metrics}};
  logged = {{"loss", nullptr}};
  if (!with.losses.empty()) {
    for (const OutputLoss& of : losses) logged.push_back({of.output + "_loss", nullptr});
  }
  for (const OutputLoss& of : losses) {
    for (const MetricDefinition& metric : of.metrics)
      logged.push_back({(of.output.empty() ? "" : of.output + "_") + metric.name(), rule_of(metric.metric).finish});
  }
  staged = is_pipeline ? std::make_shared<ModelDefinition>() : nullptr;
  options = std::move(with);
  context = on;
  processes = std::move(connected);
  device_index = 0;
  const bool is_shared = !is_pipeline && (devices > 1 || options.parallel.link.ranks > 1);
  group = is_shared ? std::make_shared<exec::LocalGroup>(std::max(devices, 1), options.parallel.link, processes) : nullptr;
}

void ModelSetup::compile(const Context& on) {
  losses.clear();
  logged = {{"loss", nullptr}};
  options = {.optimizer = with_defaults({})};
  context = on;
  group = nullptr;
  processes = nullptr;
  staged = nullptr;
  device_index = 0;
}

const std::vector<OutputLoss>& ModelSetup::need_losses() const {
  if (!losses.empty()) return losses;
  if (interface.outputs.size() == 1)
    throw Error("model: expected a loss, got a model that was compiled without one, to predict; call compile() with a loss first");
  throw Error(
      fmt::format("{}the model has the outputs {}: expected a loss for at least one of them, by name (`losses` in a train.yaml, "
                  "CompileOptions::losses), got none",
                  options.loss.where.empty() ? "" : options.loss.where + ": ", fmt::join(output_names(), ", ")));
}

void ModelSetup::expect_one_of_each(const char* call) const {
  if (interface.inputs.size() == 1 && interface.outputs.size() == 1) return;
  throw Error(fmt::format("{}: expected a model with one input and one output, got the inputs {} and the outputs {}; give tensors by name",
                          call, fmt::join(input_names(), ", "), fmt::join(output_names(), ", ")));
}

std::string ModelSetup::custom_losses() const {
  std::vector<std::string> names;
  for (const OutputLoss& of : losses) {
    if (of.loss.loss == Loss::custom) names.push_back(of.loss.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string ModelSetup::input_name(std::size_t input) const {
  return interface.inputs.size() == 1 ? "x" : "inputs/" + interface.inputs[input].name;
}

std::string ModelSetup::target_name(std::size_t loss) const {
  return losses.size() == 1 ? "y" : "targets/" + losses[loss].output;
}

std::vector<std::string> ModelSetup::input_names() const {
  std::vector<std::string> names;
  for (const layers::ModelInput& input : interface.inputs) names.push_back(input.name);
  return names;
}

std::vector<std::string> ModelSetup::output_names() const {
  std::vector<std::string> names;
  for (const layers::ModelOutput& output : interface.outputs) names.push_back(output.name);
  return names;
}

const OutputLoss* loss_of(const TrainDefinition& definition, const std::string& output) {
  const auto found = std::ranges::find_if(definition.losses, [&](const OutputLoss& of) { return output.empty() || of.output == output; });
  return found == definition.losses.end() ? nullptr : &*found;
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

Shards ModelSetup::shards_of(const std::vector<ParameterSpec>& learned) const {
  if (!shards_optimizer()) return {};
  return {balanced_owners(learned, rank_count()), rank()};
}

bool ModelSetup::shards(const std::string& name) const {
  return shards_optimizer() && is_training_state(name) && !is_loss_scale(name);
}

std::function<std::pair<std::int64_t, std::int64_t>(std::int64_t samples)> ModelSetup::part_of_batches() const {
  if (processes == nullptr) return nullptr;
  return [this](std::int64_t samples) {
    const BatchPart own = part_of_process(samples);
    return std::pair(own.begin, own.end);
  };
}

BatchPart ModelSetup::part_within(std::int64_t rows, const layers::BatchShare& share) const {
  if (share.whole == 0) return part(rows);
  BatchPart own = part(share.whole);
  const std::int64_t size = own.size();
  own.begin = std::clamp<std::int64_t>(own.begin - part_of_process(share.whole).begin, 0, rows - size);
  own.end = own.begin + size;
  return own;
}

void ModelSetup::expect_micro_batches(std::int64_t batch_size) const {
  if (!is_pipeline() || batch_size >= options.parallel.micro_batches) return;
  throw Error(
      fmt::format("parallel.micro_batches: expected at most the number of samples of a batch, {}, got {}; set fewer, or a larger "
                  "batch_size",
                  batch_size, options.parallel.micro_batches));
}

std::optional<Device> ModelSetup::batch_device() const {
  if (!context->config().placement.empty()) return std::nullopt;  // placement rules may move the first node or the loss
  if (group != nullptr || is_pipeline() || names_devices(definition.layers)) return std::nullopt;
  return device();
}

Logs ModelSetup::empty_logs() const {
  Logs logs;
  for (const Logged& value : logged) logs.emplace_back(value.name, 0.0);
  return logs;
}

void ModelSetup::write_logs(std::span<const double> means, Logs& out_logs) const {
  for (std::size_t i = 0; i < out_logs.size(); ++i)
    out_logs[i].second = logged[i].finish == nullptr ? means[i] : logged[i].finish(means[i]);
  for (auto& [name, value] : out_logs) {
    if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();  // 0/0 is negative on x86, and would be printed as "-nan"
  }
}

}  // namespace tenon::train
