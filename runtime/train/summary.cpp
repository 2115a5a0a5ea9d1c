// SPDX-License-Identifier: Apache-2.0
#include "train/summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>

#include <tenon/error.h>

#include "core/log.h"
#include "train/optimizers.h"
#include "train/parameters.h"

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
  return kib < 1024 ? fmt::format("{:.2f} KB", kib) : fmt::format("{:.2f} MB", kib / 1024);
}

}  // namespace

std::string summary_table(const std::string& name, const std::vector<LayerSummary>& layers, DType dtype, std::int64_t optimizer_parameters,
                          const std::string& device) {
  using Row = std::array<std::string, 5>;
  std::vector<Row> rows{{"Layer (type)", "Output Shape", "Param #", "FLOPs/sample", "Device"}};
  std::int64_t total = 0, fixed = 0, frozen = 0, flops = 0;
  for (const LayerSummary& layer : layers) {
    std::string shape = "(None";
    for (const std::int64_t d : layer.output) shape += fmt::format(", {}", d);
    rows.push_back({fmt::format("{} ({})", layer.name, layer.type), shape + ")", grouped(layer.parameters), grouped(layer.flops),
                    layer.device.empty() ? device : layer.device});
    total += layer.parameters;
    fixed += layer.non_trainable;
    frozen += layer.frozen;
    flops += layer.flops;
  }
  std::array<std::size_t, 5> width{};
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  }
  std::string rule;
  for (const std::size_t w : width) rule += std::string(w + 2, '-');
  std::string text = fmt::format("Model: {}\n{}\n", name.empty() ? "sequential" : name, rule);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < width.size(); ++c) {
      const bool number = c == 2 || c == 3;
      text += number ? fmt::format("{:>{}}  ", rows[r][c], width[c]) : fmt::format("{:<{}}  ", rows[r][c], width[c]);
    }
    while (text.back() == ' ') text.pop_back();
    text += "\n";
    if (r == 0) text += rule + "\n";
  }
  const std::int64_t size = size_of(dtype);
  const auto line = [&](const char* what, std::int64_t count) {
    return fmt::format(" {}: {} ({})\n", what, grouped(count), bytes(count * size));
  };
  text += rule + "\n";
  text += line("Total params", total);
  text += line("Trainable params", total - fixed);
  text += line("Non-trainable params", fixed);
  if (frozen > 0) text += line("  of these frozen", frozen);
  if (optimizer_parameters > 0) text += line("Optimizer state, in training", optimizer_parameters);
  text += fmt::format(" FLOPs of a forward pass: {} per sample\n", grouped(flops));
  return text;
}

std::string summary_of(const ModelSetup& setup, const std::vector<LayerSummary>& layers) {
  const OptimizerDefinition& optimizer = setup.options.optimizer;
  const ModelDefinition& definition = setup.definition;
  std::int64_t learned = 0;
  for (const LayerSummary& row : layers) learned += row.parameters - row.non_trainable;
  const auto states = static_cast<std::int64_t>(rule_of(optimizer.kind).state(optimizer).size());
  const Precision precision = setup.need_context().config().precision;
  std::string text =
      summary_table(definition.name, layers, definition.dtype, learned * states, setup.need_context().default_device().name());
  if (setup.options.loss.loss == Loss::custom) text += fmt::format(" Loss: {} (custom)\n", setup.options.loss.str());
  const bool mixed = precision == Precision::mixed_bfloat16 || precision == Precision::mixed_float16;
  if (precision == Precision::float32) return text;
  return text + fmt::format(" Precision: {}{}\n", name_of(precision), mixed ? fmt::format(", weights {}", name_of(definition.dtype)) : "");
}

std::string summary_of(const TrainDefinition& definition, const Context& context) {
  if (!definition.model.input_shape) throw Error("summary: the shape of a sample is not known; set `input: {shape: ...}` in the model");
  ModelSetup setup{definition.model, context, {}};
  setup.options.optimizer = definition.optimizer;
  setup.options.trainable = definition.trainable;
  Graph graph;
  const Forward forward = describe(graph, setup, Shape(std::span<const std::int64_t>(*definition.model.input_shape)));
  for (const LayerSummary& layer : forward.layers) {
    try {
      if (!layer.device.empty()) static_cast<void>(context.device(layer.device));
    } catch (const Error& problem) {
      log::warning("layer '{}': {}", layer.name, problem.what());
    }
  }
  return summary_of(setup, forward.layers);
}

}  // namespace tenon::train
