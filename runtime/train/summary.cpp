// SPDX-License-Identifier: Apache-2.0
#include "train/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include <tenon/error.h>

#include "core/log.h"
#include "core/table.h"
#include "layers/definition.h"
#include "train/program/optimizers.h"
#include "train/program/parameters.h"

namespace tenon::train {
namespace {

/// 101770 as "101,770".
std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (auto i = static_cast<std::ptrdiff_t>(text.size()) - 3; i > 0; i -= 3) text.insert(static_cast<std::size_t>(i), ",");
  return text;
}

std::string bytes(std::int64_t size) {
  if (size < 1024) return fmt::format("{} B", size);
  const double kib = static_cast<double>(size) / 1024;
  if (kib < 1024) return fmt::format("{:.2f} KB", kib);
  return kib < 1024 * 1024 ? fmt::format("{:.2f} MB", kib / 1024) : fmt::format("{:.2f} GB", kib / 1024 / 1024);
}

/// A row of a memory table.
struct MemoryRow {
  const char* title;
  std::uint64_t (*size_bytes)(const MemoryPlan& plan);
};

std::uint64_t parameter_bytes(const MemoryPlan& plan, bool training_state) {
  std::uint64_t sum = 0;
  for (const auto& [name, size] : plan.parameters) sum += is_training_state(name) == training_state ? size : 0;
  return sum;
}

constexpr MemoryRow memory_rows[] = {
    {"Parameters", [](const MemoryPlan& plan) { return parameter_bytes(plan, false); }},
    {"Optimizer state", [](const MemoryPlan& plan) { return parameter_bytes(plan, true); }},
    {"Activations and workspace", [](const MemoryPlan& plan) { return plan.workspace_size_bytes; }},
    {"Packed weights, shared by programs", [](const MemoryPlan& plan) { return plan.packed_parameters_size_bytes(); }},
    {"Constants and other packed weights", [](const MemoryPlan& plan) { return plan.packed_size_bytes; }},
    {"Inputs and results", [](const MemoryPlan& plan) { return plan.inputs_size_bytes + plan.outputs_size_bytes; }},
    {"Peak", [](const MemoryPlan& plan) { return plan.peak_size_bytes(); }},
};

/// The plan for a device; one of zeros if the program does not use it.
MemoryPlan plan_on(const std::string& device, const std::vector<MemoryPlan>& plans) {
  const auto found = std::ranges::find(plans, device, &MemoryPlan::device);
  return found == plans.end() ? MemoryPlan{.device = device} : *found;
}

}  // namespace

std::string summary_table(const std::string& name, const std::vector<LayerSummary>& layers, DType dtype, std::int64_t optimizer_parameters,
                          const std::string& device) {
  Table table({"Layer (type)", "Output Shape", "Param #", "FLOPs/sample", "Device"});
  table.align_right({2, 3});
  std::int64_t total = 0, fixed = 0, frozen = 0, flops = 0;
  for (const LayerSummary& layer : layers) {
    std::string shape = "(None";
    for (const std::int64_t d : layer.output) shape += fmt::format(", {}", d);
    table.add({fmt::format("{} ({})", layer.name, layer.type), shape + ")", grouped(layer.parameters), grouped(layer.flops),
               layer.device.empty() ? device : layer.device});
    total += layer.parameters;
    fixed += layer.non_trainable;
    frozen += layer.frozen;
    flops += layer.flops;
  }
  const std::string rule = std::string(table.width() + 2, '-') + "\n", lines = table.str();
  const std::size_t header_size = lines.find('\n') + 1;
  std::string text = fmt::format("Model: {}\n{}", name.empty() ? "sequential" : name, rule);
  text += lines.substr(0, header_size) + rule + lines.substr(header_size) + rule;
  const std::int64_t size = size_of(dtype);
  const auto line = [&](const char* what, std::int64_t count) {
    return fmt::format(" {}: {} ({})\n", what, grouped(count), bytes(count * size));
  };
  text += line("Total params", total);
  text += line("Trainable params", total - fixed);
  text += line("Non-trainable params", fixed);
  if (frozen > 0) text += line("  of these frozen", frozen);
  if (optimizer_parameters > 0) text += line("Optimizer state, in training", optimizer_parameters);
  text += fmt::format(" FLOPs of a forward pass: {} per sample\n", grouped(flops));
  return text;
}

std::string summary_of(const ModelSetup& setup, const std::vector<LayerSummary>& layers, const std::vector<SampleType>& outputs) {
  const OptimizerDefinition& optimizer = setup.options.optimizer;
  const ModelDefinition& definition = setup.definition;
  std::int64_t learned = 0;
  for (const LayerSummary& row : layers) learned += row.parameters - row.non_trainable;
  const auto states = setup.losses.empty() ? 0 : static_cast<std::int64_t>(rule_of(optimizer.kind).state(optimizer).size());
  const Precision precision = setup.need_context().config().precision;
  std::string text =
      summary_table(definition.name, layers, definition.dtype, learned * states, setup.need_context().default_device().name());
  if (setup.interface.inputs.size() > 1) text += fmt::format(" Inputs: {}\n", fmt::join(setup.input_names(), ", "));
  if (outputs.size() > 1) {
    std::string names;
    for (const SampleType& output : outputs) names += fmt::format("{}{} {}", names.empty() ? "" : ", ", output.name, output.shape.str());
    text += fmt::format(" Outputs: {}\n", names);
  }
  for (const OutputLoss& of : setup.losses) {
    const bool is_custom = of.loss.loss == Loss::custom;
    if (is_custom || !of.output.empty()) {
      text += fmt::format(" Loss{}: {}{}{}\n", of.output.empty() ? "" : " of " + of.output, of.loss.str(), is_custom ? " (custom)" : "",
                          of.weight == 1 ? "" : fmt::format(", weight {:g}", of.weight));
    }
  }
  const bool mixed = precision == Precision::mixed_bfloat16 || precision == Precision::mixed_float16;
  if (precision == Precision::float32) return text;
  return text + fmt::format(" Precision: {}{}\n", name_of(precision), mixed ? fmt::format(", weights {}", name_of(definition.dtype)) : "");
}

std::string memory_table(const Programs& programs, const BatchType& batch, bool trains) {
  std::string text;
  const auto plans_of = [&](Phase phase, const char* what) {
    try {
      return programs.plan_memory(phase, batch);
    } catch (const Error& problem) {
      text += fmt::format(" Memory of a {}: not known: {}\n", what, problem.what());
      return std::vector<MemoryPlan>();
    }
  };
  const std::vector<MemoryPlan> training = trains ? plans_of(Phase::train, "training step") : std::vector<MemoryPlan>();
  const std::vector<MemoryPlan> prediction = plans_of(Phase::predict, "prediction");
  std::vector<std::string> devices;
  for (const auto* plans : {&training, &prediction}) {
    for (const MemoryPlan& plan : *plans) {
      if (std::ranges::find(devices, plan.device) == devices.end()) devices.push_back(plan.device);
    }
  }
  for (const std::string& device : devices) {
    const MemoryPlan steps = plan_on(device, training), predictions = plan_on(device, prediction);
    const auto cell = [&](bool known, std::uint64_t size) { return known ? bytes(static_cast<std::int64_t>(size)) : std::string("-"); };
    const auto row = [&](const std::string& title, const std::string& first, const std::string& second) {
      text += fmt::format(" {:<44} {:>13}  {:>11}\n", title, first, second);
    };
    row(fmt::format("Memory on {}, batch of {}", device, batch.size()), "Training step", "Prediction");
    for (const MemoryRow& line : memory_rows) {
      row(std::string("  ") + line.title, cell(!training.empty(), line.size_bytes(steps)),
          cell(!prediction.empty(), line.size_bytes(predictions)));
    }
  }
  return text;
}

std::string summary_of(const TrainDefinition& definition, const Context& context, std::int64_t batch_size) {
  ModelSetup setup(definition.model);
  setup.compile(context, compile_options(definition));
  const std::optional<std::vector<Shape>> samples = known_samples(setup);
  if (!samples) {
    const bool one = setup.interface.inputs.size() == 1;
    throw Error(fmt::format("summary: the shape of a sample is not known; set `input: {{shape: {}}}` in the model",
                            one ? "..." : fmt::format("{{{}: ...}}", fmt::join(setup.input_names(), ": ..., "))));
  }
  Graph graph;
  const Forward forward = describe(graph, setup, *samples);
  for (const LayerSummary& layer : forward.layers) {
    try {
      if (!layer.device.empty()) static_cast<void>(context.device(layer.device));
    } catch (const Error& problem) {
      log::warning("layer '{}': {}", layer.name, problem.what());
    }
  }
  Parameters parameters(setup);
  const Programs programs(setup, parameters);
  const std::vector<SampleType> inputs = input_types(setup, *samples), outputs = output_types(forward);
  return summary_of(setup, forward.layers, outputs) + memory_table(programs, BatchType::of(setup, inputs, outputs, batch_size), true);
}

}  // namespace tenon::train
