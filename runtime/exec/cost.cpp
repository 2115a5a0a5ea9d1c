// SPDX-License-Identifier: Apache-2.0
#include "exec/cost.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace tenon::exec {
namespace {

std::uint64_t count_of(const Graph& graph, ValueId v) {
  return v == no_id ? 0 : static_cast<std::uint64_t>(graph.info(v).shape.count());
}

std::uint64_t bytes_of(const Graph& graph, ValueId v) {
  return v == no_id ? 0 : static_cast<std::uint64_t>(graph.info(v).shape.count() * size_of(graph.info(v).dtype));
}

/// Ops that only change the view of memory and normally have no kernel.
bool is_view(const NodeInfo& node) {
  const std::string_view op = op_name(node.op);
  return op == "Reshape" || op == "Flatten" || op == "Identity";
}

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), op) != list.end();
}

/// Operations per element of the largest operand or result; by name, so that new ops work without an entry.
std::uint64_t flops_per_element(std::string_view op) {
  if (is_one_of(op, {"Reshape",      "Flatten",         "Identity",          "Transpose",       "Expand", "Slice", "Pad",   "Concat",
                     "Split",        "Gather",          "GatherElements",    "ScatterElements", "OneHot", "Cast",  "Where", "RandomUniform",
                     "RandomNormal", "RandomBernoulli", "RandomPermutation", "Im2Col"}))
    return 0;
  if (is_one_of(op, {"Softmax", "LogSoftmax", "SoftmaxCrossEntropyLoss"})) return 4;  // subtract, exp, sum, divide
  if (is_one_of(op, {"SoftmaxGrad", "LogSoftmaxGrad", "SoftmaxCrossEntropyLossGrad"})) return 4;
  if (is_one_of(op, {"AdamStep", "AmsGradStep"})) return 12;
  if (is_one_of(op, {"RmsPropStep", "AdagradStep", "AdadeltaStep"})) return 8;
  if (op == "SgdStep") return 4;
  if (op == "Dropout" || op == "BatchNormalization") return 2;
  if (is_one_of(op, {"BatchNormTrain", "RMSNormalization"})) return 5;  // sum, sum of squares, scale and shift
  if (is_one_of(op, {"LayerNormalization", "BatchNormTrainGrad", "RMSNormalizationGrad"})) return 8;
  if (op == "LayerNormalizationGrad") return 12;
  return 1;
}

/// Flops of a convolution, its gradients or its transpose. Two of the three values are images (N, channels, ...), one holds weights
/// (M, C / groups, ...): each element of the image with M channels is multiplied with the weights of one of them. 0 if the shapes match no
/// convolution.
std::uint64_t convolution_flops(const Graph& graph, const std::array<ValueId, 3>& values) {
  for (std::size_t w = 0; w < 3; ++w) {
    const ValueId first = values[(w + 1) % 3], second = values[(w + 2) % 3];
    if (values[w] == no_id || first == no_id || second == no_id) continue;
    const Shape& weights = graph.info(values[w]).shape;
    const Shape &a = graph.info(first).shape, &b = graph.info(second).shape;
    if (weights.rank() < 3 || a.rank() != weights.rank() || b.rank() != a.rank() || a[0] != b[0] || weights[0] == 0) continue;
    std::uint64_t image = 0;  // the smaller one if both have M channels, as strides make it
    for (const Shape* shape : {&a, &b}) {
      const auto count = static_cast<std::uint64_t>(shape->count());
      if ((*shape)[1] == weights[0] && (image == 0 || count < image)) image = count;
    }
    if (image > 0) return 2 * image * static_cast<std::uint64_t>(weights.count() / weights[0]);
  }
  return 0;
}

/// Elements in each window of a pool.
std::uint64_t window_of(const NodeInfo& node, std::size_t dims) {
  const auto attributes = node.attributes.as<tenon_attributes_window>();
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < dims; ++i) elements *= static_cast<std::uint64_t>(std::max<std::int64_t>(1, attributes.kernel[i]));
  return elements;
}

/// Flops of RNN, GRU and LSTM, whose x, w and r are operands `x`, `x` + 1 and `x` + 2: each step multiplies by all of w and r (gradients by
/// each of them twice more), plus about ten operations per gate.
std::uint64_t recurrence_flops(const Graph& graph, const NodeInfo& node, std::size_t x, std::uint64_t products) {
  const Shape& shape = graph.info(node.inputs[x]).shape;
  if (shape.rank() != 3) return 0;
  const auto steps = static_cast<std::uint64_t>(shape[0] * shape[1]);
  const std::uint64_t w = count_of(graph, node.inputs[x + 1]), r = count_of(graph, node.inputs[x + 2]);
  const Shape& rows = graph.info(node.inputs[x + 1]).shape;
  const auto gates = static_cast<std::uint64_t>(rows[0] * rows[1]);
  return steps * (2 * products * (w + r) + 10 * gates);
}

/// Flops of attention: the products q k' and scores v; the gradient has five products where the forward pass has two.
std::uint64_t attention_flops(const Graph& graph, const NodeInfo& node, std::size_t q, std::uint64_t products) {
  const Shape &queries = graph.info(node.inputs[q]).shape, &keys = graph.info(node.inputs[q + 1]).shape;
  if (queries.rank() != 4 || keys.rank() != 4) return 0;
  const auto scores = static_cast<std::uint64_t>(queries[0] * queries[1] * queries[2] * keys[2]);
  return scores * (2 * products * static_cast<std::uint64_t>(queries[3]) + 4);
}

/// Flops of windowed, normalising and sequence ops; 0 for all others.
std::uint64_t layer_flops(const Graph& graph, const NodeInfo& node, std::string_view op) {
  if (op == "MaxPool" || op == "AveragePool") {
    const Shape& y = graph.info(node.outputs[0]).shape;
    return static_cast<std::uint64_t>(y.count()) * window_of(node, y.rank() - 2);
  }
  if (op == "AveragePoolGrad") {
    const Shape& dy = graph.info(node.inputs[0]).shape;
    return static_cast<std::uint64_t>(dy.count()) * window_of(node, dy.rank() - 2);
  }
  const auto size_of_lrn = [&] { return static_cast<std::uint64_t>(node.attributes.as<tenon_attributes_lrn>().size); };
  if (op == "LRN") return count_of(graph, node.inputs[0]) * (size_of_lrn() + 5);
  if (op == "LRNGrad") return count_of(graph, node.inputs[0]) * (2 * size_of_lrn() + 8);
  if (op == "RNN" || op == "GRU" || op == "LSTM") return recurrence_flops(graph, node, 0, 1);
  if (op == "RNNGrad" || op == "GRUGrad") return recurrence_flops(graph, node, 2, 2);
  if (op == "LSTMGrad") return recurrence_flops(graph, node, 3, 2);
  if (op == "Attention") return attention_flops(graph, node, 0, 2);
  if (op == "AttentionGrad") return attention_flops(graph, node, 1, 5);
  return 0;
}

}  // namespace

std::uint64_t flops_of(const Graph& graph, const NodeInfo& node) {
  const std::string_view op = op_name(node.op);
  if (op == "MatMul") {
    const Shape& a = graph.info(node.inputs[0]).shape;
    const auto k = static_cast<std::uint64_t>(a.rank() == 0 ? 1 : a[a.rank() - 1]);
    return 2 * k * count_of(graph, node.outputs[0]);
  }
  if (op == "Gemm") {
    const Shape& a = graph.info(node.inputs[0]).shape;
    const auto k = static_cast<std::uint64_t>(node.attributes.as<tenon_attributes_gemm>().trans_a != 0 ? a[0] : a[1]);
    const std::uint64_t result = count_of(graph, node.outputs[0]);
    return 2 * k * result + (node.inputs.size() > 2 && node.inputs[2] != no_id ? result : 0);
  }
  if (op.starts_with("Conv") && node.inputs.size() >= 2) {
    if (const std::uint64_t flops = convolution_flops(graph, {node.inputs[1], node.outputs[0], node.inputs[0]}); flops > 0) return flops;
  }
  if (const std::uint64_t flops = layer_flops(graph, node, op); flops > 0) return flops;
  std::uint64_t elements = 0;
  for (const ValueId v : node.inputs) elements = std::max(elements, count_of(graph, v));
  for (const ValueId v : node.outputs) elements = std::max(elements, count_of(graph, v));
  if (op.ends_with("Step")) {  // one node holds several parameters; each is written once
    elements = 0;
    for (const ValueId v : node.inputs) elements += count_of(graph, v);
    elements /= std::max<std::uint64_t>(1, op == "SgdStep"                              ? 2
                                           : op == "AmsGradStep"                        ? 5
                                           : op == "RmsPropStep" || op == "AdagradStep" ? 3
                                                                                        : 4);
  }
  return elements * flops_per_element(op);
}

Cost cost_of(const Graph& graph, const std::vector<NodeId>& nodes) {
  const std::unordered_set<NodeId> inside(nodes.begin(), nodes.end());
  std::unordered_set<ValueId> counted;
  Cost cost;
  for (const NodeId n : nodes) {
    const NodeInfo& node = graph.nodes()[n];
    cost.flops += flops_of(graph, node);
    const std::string_view op = op_name(node.op);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == no_id || !counted.insert(v).second || inside.contains(graph.info(v).producer)) continue;
      const bool picks = i == 0 && is_one_of(op, {"Gather", "GatherElements", "Slice"});  // reads no more than it writes
      cost.size_bytes += picks ? std::min(bytes_of(graph, v), bytes_of(graph, node.outputs[0])) : bytes_of(graph, v);
    }
  }
  // A value that other nodes read must be written.
  std::unordered_set<ValueId> read_outside;
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    if (inside.contains(n)) continue;
    for (const ValueId v : graph.nodes()[n].inputs) {
      if (v != no_id && inside.contains(graph.info(v).producer)) read_outside.insert(v);
    }
  }
  for (const GraphOutput& output : graph.outputs()) read_outside.insert(output.value);
  for (const GraphUpdate& update : graph.updates()) read_outside.insert(update.value);
  for (const NodeId n : nodes) {
    for (const ValueId v : graph.nodes()[n].outputs) {
      if (v != no_id && (nodes.size() == 1 || read_outside.contains(v))) cost.size_bytes += bytes_of(graph, v);
    }
  }
  return cost;
}

std::vector<std::vector<NodeId>> kernel_nodes(const Graph& graph, const std::vector<NodeId>& nodes,
                                              std::span<const tenon_profile_record> records) {
  constexpr std::size_t none = ~std::size_t{0};
  std::vector<std::vector<NodeId>> result(records.size());
  std::vector<std::size_t> missing(records.size(), 0);
  std::unordered_map<NodeId, std::size_t> kernel_of;
  for (const NodeId n : nodes) kernel_of[n] = none;
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (records[r].node >= nodes.size()) continue;
    const NodeId n = nodes[records[r].node];
    if (kernel_of[n] != none) continue;
    kernel_of[n] = r;
    result[r].push_back(n);
    missing[r] = records[r].fused_count > 0 ? records[r].fused_count - 1 : 0;
  }
  std::unordered_map<ValueId, std::vector<NodeId>> readers;
  for (const NodeId n : nodes) {
    for (const ValueId v : graph.nodes()[n].inputs) {
      if (v != no_id) readers[v].push_back(n);
    }
  }
  const auto wanting = [&](NodeId n) {
    const auto found = kernel_of.find(n);
    return found != kernel_of.end() && found->second != none && missing[found->second] > 0 ? found->second : none;
  };
  const auto neighbour = [&](const NodeInfo& node) {
    for (const ValueId v : node.inputs) {
      if (v == no_id || graph.info(v).producer == no_id) continue;
      if (const std::size_t k = wanting(graph.info(v).producer); k != none) return k;
    }
    for (const ValueId v : node.outputs) {
      if (v == no_id) continue;
      for (const NodeId reader : readers[v]) {
        if (const std::size_t k = wanting(reader); k != none) return k;
      }
    }
    return none;
  };
  for (const bool views : {false, true}) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const NodeId n : nodes) {
        if (kernel_of[n] != none || is_view(graph.nodes()[n]) != views) continue;
        const std::size_t k = neighbour(graph.nodes()[n]);
        if (k == none) continue;
        kernel_of[n] = k;
        result[k].push_back(n);
        --missing[k];
        changed = true;
      }
    }
  }
  return result;
}

}  // namespace tenon::exec
