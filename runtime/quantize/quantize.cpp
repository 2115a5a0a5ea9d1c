// SPDX-License-Identifier: Apache-2.0
// quantize/quantize.cpp - quantises an ONNX model: prepares, plans, calibrates, rewrites, exports.
#include <tenon/quantize.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include <tenon/error.h>

#include "quantize/batch.h"
#include "quantize/calibrate.h"
#include "quantize/plan.h"
#include "quantize/prepare.h"
#include "quantize/rewrite.h"

namespace tenon::quantize {
namespace {

void check(const Options& options) {
  const auto expect = [](bool holds, const char* name, const std::string& text) {
    if (!holds) throw Error(fmt::format("quantisation: Options::{}: expected {}", name, text));
  };
  expect(options.percentile > 50 && options.percentile <= 100, "percentile",
         fmt::format("more than 50 and at most 100, got {}", options.percentile));
  expect(options.activations == DType::u8 || options.activations == DType::i8, "activations",
         fmt::format("u8 or i8, got {}", name_of(options.activations)));
  expect(options.weights_only_bits == 0 || options.weights_only_bits == 4 || options.weights_only_bits == 8, "weights_only_bits",
         fmt::format("4 or 8, or 0 for activations as well, got {}", options.weights_only_bits));
  expect(options.block_size >= 16 && std::has_single_bit(static_cast<std::uint64_t>(options.block_size)), "block_size",
         fmt::format("a power of two of 16 or more, got {}", options.block_size));
  expect(options.batch_size >= 1, "batch_size", fmt::format("at least 1, got {}", options.batch_size));
  expect(options.fixed_batch >= 0, "fixed_batch", fmt::format("at least 1, or 0 for any, got {}", options.fixed_batch));
}

/// The prepared graphs of a model, by batch size.
class Graphs {
 public:
  /// Keeps references.
  Graphs(onnx::Model& model, const Context& context, const Samples& samples, bool separates_attention)
      : model_(model), context_(context), samples_(samples), separates_attention_(separates_attention) {}

  /// Errors  a graph that differs from that of the first batch size in more than sizes.
  const Graph& at(std::int64_t batch) {
    const auto found = graphs_.find(batch);
    if (found != graphs_.end()) return found->second;
    const auto value_of = [&](const std::string& name) { return model_.parameters()->get(name); };
    Graph graph = prepare(context_, model_.to_graph(types(batch)), value_of, separates_attention_);
    if (graphs_.empty()) first_batch_ = batch;
    const Graph& first = graphs_.empty() ? graph : graphs_.at(first_batch_);
    const bool same = std::ranges::equal(graph.nodes(), first.nodes(), [](const NodeInfo& a, const NodeInfo& b) {
      return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs;
    });
    if (!same || graph.values().size() != first.values().size())
      throw Error(
          Status::unsupported,
          fmt::format("quantisation: the graphs for batches of {} and {} differ; fix the batch size (Options::fixed_batch, --batch)",
                      first_batch_, batch));
    return graphs_.emplace(batch, std::move(graph)).first->second;
  }

 private:
  /// Types of the samples, with elements where there are as many samples.
  onnx::InputTypes types(std::int64_t batch) const {
    const std::int64_t known = std::min(batch, samples_.count);
    onnx::InputTypes types;
    for (auto& [name, tensor] : samples_.read(0, known)) {
      Shape shape = tensor.shape();
      if (shape.rank() > 0) shape.set(0, batch);
      types[name] = {tensor.dtype(), shape, known == batch ? tensor : Tensor()};
    }
    return types;
  }

  onnx::Model& model_;
  const Context& context_;
  const Samples& samples_;
  bool separates_attention_;
  std::map<std::int64_t, Graph> graphs_;
  std::int64_t first_batch_ = 0;
};

std::string why_nothing(const Plan& plan) {
  if (plan.products.empty()) return "it has no Conv, MatMul or Gemm";
  std::string text;
  for (std::size_t i = 0; i < plan.products.size() && i < 5; ++i)
    text += fmt::format("{}'{}' ({}): {}", i == 0 ? "" : "; ", plan.products[i].name, plan.products[i].op, plan.products[i].reason);
  return text;
}

}  // namespace

const char* name_of(Calibration calibration) {
  switch (calibration) {
    case Calibration::minmax:
      return "minmax";
    case Calibration::percentile:
      return "percentile";
    case Calibration::entropy:
      return "entropy";
  }
  return "unknown";
}

Report quantize(onnx::Model& model, const Context& context, const Samples& samples, const std::filesystem::path& path,
                const Options& options) {
  check(options);
  if (samples.count < 1) throw Error("quantisation: expected samples of the model's inputs, got none");
  const std::int64_t of_file = fixed_batch_of(model), fixed = of_file > 0 ? of_file : options.fixed_batch;
  if (of_file > 0 && options.fixed_batch > 0 && of_file != options.fixed_batch)
    throw Error(fmt::format("quantisation: the model takes batches of {}, expected to write that, not {}", of_file, options.fixed_batch));
  Graphs graphs(model, context, samples, quantizes_attention(options));
  const std::function<Graph(std::int64_t)> graph_of = [&](std::int64_t batch) { return graphs.at(batch); };
  const Graph& first = graphs.at(fixed > 0 ? fixed : std::min(options.batch_size, samples.count));
  const Plan planned = plan(first, options);
  if (!planned.quantizes_anything())
    throw Error(fmt::format("quantisation: expected a model with a node to quantise, got none: {}", why_nothing(planned)));

  Report report{.nodes = planned.products};
  std::vector<Parameters> groups;
  if (options.weights_only_bits == 0) {
    Calibrator calibrator(context, graph_of, samples, fixed, options);
    std::vector<ValueId> values;
    for (const QuantizedValue& value : planned.values) values.push_back(value.value);
    const std::vector<Range> ranges = calibrator.ranges_of(values);
    std::vector<Range> of_groups(planned.groups);
    for (std::size_t i = 0; i < values.size(); ++i) of_groups[planned.values[i].group].include(ranges[i]);
    for (const Range& range : of_groups) groups.push_back(parameters_of(range, options.activations));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Parameters& chosen = groups[planned.values[i].group];
      report.activations.push_back({first.info(values[i]).name, ranges[i].low, ranges[i].high, chosen.scale, chosen.zero_point});
    }
    report.samples = calibrator.sample_count();
  }
  const auto rewritten = [&](std::int64_t batch) {
    const Graph& graph = graphs.at(batch);
    if (options.weights_only_bits == 4) return quantize_weights_in_blocks(graph, planned, options.block_size);
    return options.weights_only_bits == 8 ? quantize_weights_only(graph, planned) : quantize_activations(graph, planned, groups);
  };
  const onnx::ParameterValues none = [](const std::string& name) -> Tensor {
    throw Error(Status::internal, fmt::format("quantisation: '{}' is still a parameter", name));
  };
  onnx::ExportOptions exported{.opset = options.opset, .batch = fixed, .graph_name = model.metadata().graph};
  exported.metadata = model.metadata().properties;
  onnx::export_graph(path, rewritten, none, exported);
  return report;
}

}  // namespace tenon::quantize
