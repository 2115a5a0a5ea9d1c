// SPDX-License-Identifier: Apache-2.0
#include "train/program/stages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "graph/passes.h"
#include "layers/definition.h"

namespace tenon::train {
namespace {

/// The stage of a layer's device; nothing: it names none. Errors  a device that is not among those of the stages.
std::optional<std::size_t> named_stage(const LayerDefinition& layer, const std::vector<std::string>& devices, const Context& context) {
  if (layer.device.empty()) return std::nullopt;
  const std::string name = context.device(layer.device).name();
  for (std::size_t stage = 0; stage < devices.size(); ++stage) {
    if (context.device(devices[stage]).name() == name) return stage;
  }
  layer.fail(fmt::format("has the device '{}', which is not one of parallel.devices ({}); use one of these, or add it there", layer.device,
                         fmt::join(devices, ", ")));
}

/// The stages of layers with this work: the sum of the squares of their work is the least, and no stage is empty.
std::vector<std::size_t> balanced_stages(const std::vector<double>& work, std::size_t stages) {
  const std::size_t count = work.size();
  std::vector<double> before(count + 1, 0);
  for (std::size_t i = 0; i < count; ++i) before[i + 1] = before[i] + work[i];
  // min_cost[s][i]: of the first i layers in s stages; begin[s][i]: where the last of these stages begins.
  std::vector<std::vector<double>> min_cost(stages + 1, std::vector<double>(count + 1, std::numeric_limits<double>::infinity()));
  std::vector<std::vector<std::size_t>> begin(stages + 1, std::vector<std::size_t>(count + 1, 0));
  min_cost[0][0] = 0;
  for (std::size_t s = 1; s <= stages; ++s) {
    for (std::size_t i = s; i <= count; ++i) {
      for (std::size_t cut = s - 1; cut < i; ++cut) {
        const double own = before[i] - before[cut], sum = min_cost[s - 1][cut] + own * own;
        if (sum < min_cost[s][i]) {
          min_cost[s][i] = sum;
          begin[s][i] = cut;
        }
      }
    }
  }
  std::vector<std::size_t> stage_of(count, 0);
  for (std::size_t s = stages, end = count; s > 0; end = begin[s][end], --s)
    std::fill(stage_of.begin() + static_cast<std::ptrdiff_t>(begin[s][end]), stage_of.begin() + static_cast<std::ptrdiff_t>(end), s - 1);
  return stage_of;
}

}  // namespace

ModelDefinition divide_into_stages(const ModelDefinition& definition, const std::vector<LayerSummary>& layers,
                                   const ParallelOptions& parallel, const Context& context) {
  const std::vector<std::string>& devices = parallel.devices;
  ModelDefinition staged = definition;
  if (staged.layers.size() < devices.size()) {
    throw Error(
        fmt::format("{}parallel.devices: mode pipeline expects at least one layer for each of the {} stages, the model has {}; list "
                    "fewer devices",
                    definition.file.empty() ? "" : definition.file + ": ", devices.size(), staged.layers.size()));
  }
  // Layers inside of others have rows of their own, before that of the outer one.
  std::vector<double> work;
  std::vector<std::optional<std::size_t>> named;
  bool is_named = false;
  for (std::size_t i = 0, row = 0; i < staged.layers.size(); ++i) {
    work.push_back(0);
    named.emplace_back();
    std::vector<LayerDefinition> one{staged.layers[i]};
    layers::for_each_layer(one, [&](const LayerDefinition& layer) {
      const LayerSummary& summary = layers.at(row++);
      work.back() += static_cast<double>(summary.flops + summary.parameters);
      const std::optional<std::size_t> stage = named_stage(layer, devices, context);
      if (stage && named.back() && stage != named.back())
        layer.fail(fmt::format(
            "has the device '{}', while another part of the same outer layer is on '{}'; a stage has whole layers: use one device",
            layer.device, devices[*named.back()]));
      if (stage) named.back() = stage;
    });
    is_named = is_named || named.back().has_value();
  }
  std::vector<std::size_t> stage_of = is_named ? std::vector<std::size_t>() : balanced_stages(work, devices.size());
  for (std::size_t i = 0; is_named && i < named.size(); ++i) {
    const std::size_t before = i == 0 ? 0 : stage_of.back(), stage = named[i].value_or(before);
    if (stage < before || stage > before + (i == 0 ? 0 : 1)) {
      staged.layers[i].fail(
          fmt::format("is on '{}', after a layer on '{}': expected the devices of the layers in the order of parallel.devices "
                      "({}), each with at least one layer",
                      devices[stage], i == 0 ? "none" : devices[before], fmt::join(devices, ", ")));
    }
    stage_of.push_back(stage);
  }
  if (stage_of.back() + 1 < devices.size()) {
    throw Error(
        fmt::format("parallel.devices: no layer has the device '{}': expected a layer for each stage; name it in a layer, or remove it",
                    devices.back()));
  }
  for (std::size_t i = 0; i < staged.layers.size(); ++i) {
    std::vector<LayerDefinition> one{std::move(staged.layers[i])};
    layers::for_each_layer(one, [&](LayerDefinition& layer) { layer.device = devices[stage_of[i]]; });
    staged.layers[i] = std::move(one[0]);
  }
  return staged;
}

namespace {

/// The piece of each node of a graph.
class Pieces {
 public:
  Pieces(const Graph& graph, const std::vector<std::string>& devices) : graph_(graph), devices_(devices), of_(graph.nodes().size(), none) {
    find_forward();
    for (NodeId n = static_cast<NodeId>(of_.size()); n-- > 0;) place_without_device(n);
    for (NodeId n = 0; n < of_.size(); ++n) place(n);
  }
  std::size_t count() const { return 2 * devices_.size() - 1; }
  std::size_t of(NodeId node) const { return of_[node]; }
  /// That of a value's producer; what nothing computes belongs to the last stage.
  std::size_t of_value(ValueId v) const { return is_computed(v) ? of_[graph_.info(v).producer] : last(); }
  bool is_computed(ValueId v) const { return v != no_id && graph_.info(v).kind == ValueKind::computed; }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::size_t last() const { return devices_.size() - 1; }

  /// Losses, metrics and running statistics come from the forward pass; everything else is of the backward pass.
  void find_forward() {
    std::vector<bool> needed(graph_.values().size(), false);
    for (const GraphOutput& output : graph_.outputs()) needed[output.value] = true;
    for (const GraphUpdate& update : graph_.updates())
      needed[update.value] = needed[update.value] || !is_training_state(graph_.info(update.parameter).name);
    is_forward_.resize(of_.size());
    for (NodeId n = static_cast<NodeId>(of_.size()); n-- > 0;) {
      for (const ValueId output : graph_.nodes()[n].outputs) is_forward_[n] = is_forward_[n] || (output != no_id && needed[output]);
      if (!is_forward_[n]) continue;
      for (const ValueId input : graph_.nodes()[n].inputs) {
        if (input != no_id) needed[input] = true;
      }
    }
    first_reader_.assign(graph_.values().size(), none);
  }
  std::size_t stage_of(const NodeInfo& node) const {
    return static_cast<std::size_t>(std::ranges::find(devices_, node.device) - devices_.begin());
  }
  /// From the last node back: a node of the forward pass that requests no device goes to the first stage that reads it.
  void place_without_device(NodeId n) {
    if (!is_forward_[n]) return;
    const NodeInfo& node = graph_.nodes()[n];
    of_[n] = stage_of(node);
    if (of_[n] == devices_.size()) {
      of_[n] = last();
      for (const ValueId output : node.outputs) {
        if (output != no_id) of_[n] = std::min(of_[n], first_reader_[output]);
      }
    }
    for (const ValueId input : node.inputs) {
      if (input != no_id) first_reader_[input] = std::min(first_reader_[input], of_[n]);
    }
  }
  void place(NodeId n) {
    const NodeInfo& node = graph_.nodes()[n];
    std::size_t earliest = 0;
    for (const ValueId input : node.inputs) {
      if (is_computed(input)) earliest = std::max(earliest, of_[graph_.info(input).producer]);
    }
    if (!is_forward_[n]) {  // sums of gradients may wait for an earlier stage, which comes later
      of_[n] = std::max(earliest, 2 * last() - std::min(stage_of(node), last()));
    } else if (earliest > of_[n]) {
      throw Error(
          fmt::format("mode pipeline: '{}' on '{}' reads a result of '{}', a later stage; expected layers that read those before them",
                      node.name, devices_[of_[n]], devices_[std::min(earliest, last())]));
    }
  }

  const Graph& graph_;
  const std::vector<std::string>& devices_;
  std::vector<std::size_t> of_;
  std::vector<bool> is_forward_;
  std::vector<std::size_t> first_reader_;  ///< per value: the first stage that reads it
};

/// Copies the nodes of the pieces to graphs of their own.
class PieceBuilder {
 public:
  PieceBuilder(const Graph& graph, const std::vector<std::string>& devices) : graph_(graph), pieces_(graph, devices) {
    result.resize(pieces_.count());
    copies_.resize(pieces_.count());
    for (std::size_t p = 0; p < result.size(); ++p) result[p].stage = p < devices.size() ? p : 2 * devices.size() - 2 - p;
    // Outputs come first, so that callers find them.
    const std::size_t last = devices.size() - 1;
    for (const auto& [name, value] : graph.outputs()) {
      if (pieces_.of_value(value) != last) send(value, pieces_.of_value(value));
      sent_.try_emplace(value, Sent{last, outputs_[last].size()});
      outputs_[last].push_back(value);
    }
    for (const NodeInfo& node : graph.nodes()) {
      const std::size_t piece = pieces_.of(static_cast<NodeId>(&node - graph.nodes().data()));
      for (const ValueId input : node.inputs) {
        if (pieces_.is_computed(input) && pieces_.of_value(input) != piece) send(input, pieces_.of_value(input));
      }
    }
    for (NodeId n = 0; n < graph.nodes().size(); ++n) copy(n);
    for (std::size_t p = 0; p < result.size(); ++p) finish(p);
  }

  std::vector<PipelinePiece> result;

 private:
  /// A result of a piece.
  struct Sent {
    std::size_t piece, output;
  };

  void send(ValueId v, std::size_t piece) {
    const std::size_t next = outputs_[piece].size();
    if (sent_.try_emplace(v, Sent{piece, next}).second) outputs_[piece].push_back(v);
  }
  /// A value of the whole graph in the graph of a piece.
  Value operand(ValueId v, std::size_t piece) {
    if (v == no_id) return {};
    const auto [found, inserted] = copies_[piece].try_emplace(v);
    if (!inserted) return found->second;
    PipelinePiece& to = result[piece];
    const ValueInfo& info = graph_.info(v);
    switch (info.kind) {
      case ValueKind::parameter:
        return found->second = to.graph.parameter(info.name, info.dtype, info.shape);
      case ValueKind::constant:
        return found->second = to.graph.constant(info.constant, info.name);
      case ValueKind::input:
        to.sources.push_back({.input = info.name});
        return found->second = to.graph.input(info.name, info.dtype, info.shape);
      default:
        break;
    }
    const Sent& from = sent_.at(v);
    to.sources.push_back({.input = {}, .piece = from.piece, .output = from.output});
    result[from.piece].sent.resize(outputs_[from.piece].size());
    if (result[from.piece].stage != to.stage) result[from.piece].sent[from.output] = true;
    return found->second = to.graph.input(fmt::format("from_stage_{}/{}/{}", result[from.piece].stage + 1,
                                                      2 * from.piece < result.size() ? "forward" : "backward", from.output),
                                          info.dtype, info.shape);
  }
  void copy(NodeId n) {
    const NodeInfo& node = graph_.nodes()[n];
    const std::size_t piece = pieces_.of(n);
    std::vector<Value> operands;
    for (const ValueId input : node.inputs) operands.push_back(operand(input, piece));
    const std::vector<Value> made = graph::apply_again(graph_, node, operands, result[piece].graph);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != no_id) copies_[piece][node.outputs[i]] = made[i];
    }
  }
  void finish(std::size_t piece) {
    PipelinePiece& to = result[piece];
    to.sent.resize(outputs_[piece].size());
    for (std::size_t i = 0; i < outputs_[piece].size(); ++i)
      to.graph.output(fmt::format("output_{}", i), operand(outputs_[piece][i], piece));
    for (const GraphUpdate& update : graph_.updates()) {
      if (pieces_.of_value(update.value) == piece) to.graph.update(operand(update.parameter, piece), operand(update.value, piece));
    }
  }

  const Graph& graph_;
  const Pieces pieces_;
  std::map<std::size_t, std::vector<ValueId>> outputs_;  ///< per piece
  std::map<ValueId, Sent> sent_;
  std::vector<std::map<ValueId, Value>> copies_;  ///< per piece
};

}  // namespace

std::vector<PipelinePiece> divide_into_pieces(const Graph& graph, const std::vector<std::string>& devices) {
  return std::move(PieceBuilder(graph, devices).result);
}

}  // namespace tenon::train
