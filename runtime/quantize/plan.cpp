// SPDX-License-Identifier: Apache-2.0
#include "quantize/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include <tenon/error.h>

#include "quantize/prepare.h"
#include "yaml/glob.h"
#include "yaml/suggest.h"

namespace tenon::quantize {
namespace {

/// The ops that can be quantised.
struct OpRow {
  tenon_op op;
  Role role;
  bool by_default = true;
  const char* name = nullptr;  ///< ONNX's, if it is not the op's
  /// whether the node is such an operator; null: always
  bool (*fits)(const Graph& graph, const NodeInfo& node) = nullptr;
};

/// Zeros, and elements of the operand, are exact in its integers.
bool pads_with_exact_values(const Graph&, const NodeInfo& node) {
  const auto& attributes = node.attributes.as<tenon_attributes_pad>();
  return attributes.mode != TENON_PAD_CONSTANT || attributes.value == 0;
}
/// Passes drop the indices that nothing reads.
bool has_no_indices(const Graph&, const NodeInfo& node) {
  return node.outputs.size() < 2 || node.outputs[1] == no_id;
}

constexpr OpRow op_rows[] = {
    {TENON_OP_Conv, Role::product},
    {TENON_OP_MatMul, Role::product},
    {TENON_OP_Gemm, Role::product},
    {TENON_OP_Relu, Role::clips},
    {TENON_OP_Clip, Role::clips},
    {TENON_OP_MaxPool, Role::moves, true, nullptr, has_no_indices},
    {TENON_OP_Reshape, Role::moves},
    {TENON_OP_Flatten, Role::moves},
    {TENON_OP_Transpose, Role::moves},
    {TENON_OP_Slice, Role::moves},
    {TENON_OP_Pad, Role::moves, true, nullptr, pads_with_exact_values},
    {TENON_OP_Concat, Role::moves},
    {TENON_OP_Split, Role::moves},
    {TENON_OP_Add, Role::computes},
    {TENON_OP_AveragePool, Role::computes},
    {TENON_OP_ReduceMean, Role::computes, true, "GlobalAveragePool", is_global_average_pool},
    // Errors of both factors multiply; where one is a gate, as in squeeze-and-excitation, it is the more sensitive one.
    {TENON_OP_Mul, Role::computes, false},
    // Errors of scores enter the exponent of the softmax, and those of its results are large for keys that count little.
    {TENON_OP_Attention, Role::attention, false},
};

const char* name_of_row(const OpRow& row) {
  return row.name != nullptr ? row.name : op_name(row.op);
}

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const OpRow& row : op_rows) names.emplace_back(name_of_row(row));
  return names;
}

/// A name of Options::op_types without the sign that adds it to the default ones.
std::string name_of_type(const std::string& type) {
  return type.starts_with('+') ? type.substr(1) : type;
}

/// What Options select.
class Selection {
 public:
  Selection(const Graph& graph, const Options& options) : graph_(graph), options_(options) {
    const std::vector<std::string> known = known_names();
    for (const std::string& type : options.op_types) {
      const std::string name = name_of_type(type);
      if (std::ranges::find(known, name) == known.end())
        throw Error(fmt::format("quantisation: operator '{}' cannot be quantised{}; those that can: {}", name,
                                yaml::did_you_mean(name, known), fmt::join(known, ", ")));
    }
    std::vector<std::string> names;
    for (const NodeInfo& node : graph.nodes()) names.push_back(node.name);
    for (const std::string& glob : options.exclude) {
      if (std::ranges::none_of(names, [&](const std::string& name) { return matches(glob, name); }))
        throw Error(fmt::format("quantisation: '{}' matches no node of the model{}; `tenon explain` prints their names", glob,
                                yaml::did_you_mean(glob, names)));
    }
  }

  bool is_excluded(const NodeInfo& node) const {
    return std::ranges::any_of(options_.exclude, [&](const std::string& glob) { return matches(glob, node.name); });
  }
  bool has_type(const OpRow& row) const {
    const auto& types = options_.op_types;
    const bool with_default = std::ranges::all_of(types, [](const std::string& type) { return type.starts_with('+'); });
    return (with_default && row.by_default) || std::ranges::find(types, name_of_row(row), name_of_type) != types.end();
  }
  Role role_of(const NodeInfo& node) const {
    const auto* const row = std::ranges::find(op_rows, node.op, &OpRow::op);
    const bool fits = row != std::end(op_rows) && (row->fits == nullptr || row->fits(graph_, node));
    return fits && has_type(*row) && !is_excluded(node) ? row->role : Role::none;
  }

 private:
  /// The name of an ONNX node, or of one of the nodes that it was imported as.
  static bool matches(const std::string& glob, const std::string& name) {
    return yaml::glob_matches(glob, name) || yaml::glob_matches(glob + "/*", name);
  }
  const Graph& graph_;
  const Options& options_;
};

/// How a node multiplies an activation by constant weights of f32. `out_reason`: why it does not, if it is a Conv, MatMul or Gemm.
bool is_product(const Graph& graph, const NodeInfo& node, Product& out_product, std::string& out_reason) {
  out_product = {};
  out_reason.clear();
  if (node.op != TENON_OP_Conv && node.op != TENON_OP_MatMul && node.op != TENON_OP_Gemm) return false;
  const ValueInfo &x = graph.info(node.inputs[activation_operand]), &w = graph.info(node.inputs[weight_operand]);
  const auto refuse = [&](const char* reason) {
    out_reason = reason;
    return false;
  };
  if (w.dtype != DType::f32) return refuse("it computes in another dtype than f32");
  if (w.kind != ValueKind::constant) return refuse("both operands are activations");
  if (x.kind == ValueKind::constant) return refuse("its first operand is constant");
  if (w.shape.count() == 0) return refuse("it has no weights");
  if (node.op == TENON_OP_MatMul) {
    // A scale for each column belongs to matrices; vectors and stacks of matrices have one for all.
    out_product.weight_axis = w.shape.rank() == 2 ? 1 : -1;
    return true;
  }
  const bool has_bias = node.inputs.size() > bias_operand && node.inputs[bias_operand] != no_id;
  out_product.has_bias = has_bias;
  out_product.weight_axis = 0;
  if (node.op == TENON_OP_Gemm) {
    const auto& attributes = node.attributes.as<tenon_attributes_gemm>();
    if (attributes.trans_a != 0) return refuse("its activation is transposed");
    if (attributes.alpha != 1 || (has_bias && attributes.beta != 1)) return refuse("it has factors alpha or beta");
    out_product.weight_axis = attributes.trans_b != 0 ? 0 : 1;
  }
  if (!has_bias) return true;
  const ValueInfo& bias = graph.info(node.inputs[bias_operand]);
  if (bias.kind != ValueKind::constant) return refuse("its bias is no constant");
  const std::int64_t channels = w.shape[static_cast<std::size_t>(out_product.weight_axis)];
  const bool is_row = bias.shape.rank() == 0 || bias.shape[bias.shape.rank() - 1] == channels;  // a scalar is one element, too
  if (bias.shape.count() != channels || !is_row) return refuse("its bias is a matrix");
  return true;
}

class Planner {
 public:
  Planner(const Graph& graph, const Options& options)
      : graph_(graph),
        options_(options),
        readers_(graph),
        selection_(graph, options),
        roles_(graph.nodes().size(), Role::none),
        integer_(graph.values().size()),
        needed_(graph.values().size()) {}

  Plan run() {
    find_candidates();
    find_needed();
    for (NodeId id = 0; id < graph_.nodes().size(); ++id) add_values(id);
    group();
    plan_.roles = std::move(roles_);
    return std::move(plan_);
  }

 private:
  const NodeInfo& node(NodeId id) const { return graph_.nodes()[id]; }
  bool is_constant(ValueId id) const { return graph_.info(id).kind == ValueKind::constant; }
  bool is_f32(ValueId id) const { return graph_.info(id).dtype == DType::f32; }
  Role role_of_producer(ValueId id) const {
    const NodeId producer = graph_.info(id).producer;
    return producer == no_id ? Role::none : roles_[producer];
  }

  /// Roles of nodes whose operands are integers if all nodes before them are quantised that can be.
  void find_candidates() {
    for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
      const NodeInfo& at = node(id);
      roles_[id] = candidate_role(id);
      if (roles_[id] == Role::none || roles_[id] == Role::attention) continue;
      for (const ValueId output : at.outputs) {
        if (output != no_id) integer_[output] = true;
      }
    }
  }

  Role candidate_role(NodeId id) {
    const NodeInfo& at = node(id);
    Product product;
    std::string reason;
    const bool multiplies = is_product(graph_, at, product, reason);
    Role role = selection_.role_of(at);
    if (quantizes_attention(options_) && is_attention_product(id)) {
      const bool is_excluded = selection_.is_excluded(at);
      plan_.products.push_back({at.name, op_name(at.op), !is_excluded, is_excluded ? "excluded" : ""});
      return is_excluded ? Role::none : Role::attention;
    }
    if (multiplies || !reason.empty()) {
      if (multiplies && options_.weights_only_bits == 4 && (at.op == TENON_OP_Conv || product.weight_axis < 0))
        reason = "weights of 4 bits are matrices";
      if (multiplies && role == Role::none) reason = selection_.is_excluded(at) ? "excluded" : "its operator is not selected";
      plan_.products.push_back({at.name, op_name(at.op), reason.empty(), reason});
      if (!reason.empty()) return Role::none;
      plan_.weights[id] = product;
      return Role::product;
    }
    if (adds_bias(at)) return Role::bias;
    if (role == Role::product || role == Role::attention) return Role::none;
    for (const ValueId input : at.inputs) {
      if (input == no_id || !is_f32(input) || !integer_[input]) return Role::none;
    }
    return role;
  }

  /// The only node that reads a value, if it has this op; no_id otherwise.
  NodeId only_reader(ValueId v, tenon_op op) const {
    if (!readers_.only_one(v)) return no_id;
    const NodeId reader = readers_.of(v)[0];
    return node(reader).op == op ? reader : no_id;
  }
  /// A product of two activations whose result is scaled, masked and normalised by a softmax, or that of a softmax and values.
  bool is_attention_product(NodeId id) const {
    const NodeInfo& at = node(id);
    if (at.op != TENON_OP_MatMul || is_constant(at.inputs[0]) || is_constant(at.inputs[1]) || !is_f32(at.inputs[0])) return false;
    const NodeId producer = graph_.info(at.inputs[0]).producer;
    if (producer != no_id && node(producer).op == TENON_OP_Softmax && only_reader(at.inputs[0], TENON_OP_MatMul) == id) return true;
    ValueId scores = at.outputs[0];
    for (const tenon_op op : {TENON_OP_Mul, TENON_OP_Add}) {
      if (const NodeId next = only_reader(scores, op); next != no_id) scores = node(next).outputs[0];
    }
    const NodeId softmax = only_reader(scores, TENON_OP_Softmax);
    return softmax != no_id && only_reader(node(softmax).outputs[0], TENON_OP_MatMul) != no_id;
  }

  /// A constant added to a quantised MatMul that nothing else reads.
  bool adds_bias(const NodeInfo& at) const {
    if (at.op != TENON_OP_Add) return false;
    for (const std::size_t side : {0, 1}) {
      const ValueId product = at.inputs[side];
      if (!is_constant(at.inputs[1 - side]) || role_of_producer(product) != Role::product) continue;
      if (node(graph_.info(product).producer).op == TENON_OP_MatMul && readers_.only_one(product)) return true;
    }
    return false;
  }

  /// The clipping node that alone reads a value; no_id: there is none.
  NodeId clip_of(ValueId value) const {
    if (!readers_.only_one(value)) return no_id;
    const NodeId reader = readers_.of(value)[0];
    return roles_[reader] == Role::clips ? reader : no_id;
  }
  /// Whether a value is computed by arithmetic, whose result is rounded to integers only after a clip that follows.
  bool is_computed(ValueId value) const {
    const Role role = role_of_producer(value);
    return role == Role::product || role == Role::bias || role == Role::computes;
  }

  /// Takes back the roles of nodes that no quantised product needs, from the last node on.
  void find_needed() {
    for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
      if (roles_[id] != Role::product || node(id).op != TENON_OP_Conv) continue;
      const ValueId result = node(id).outputs[0];
      const NodeId clip = clip_of(result);
      const ValueId last = clip == no_id ? result : node(clip).outputs[0];
      if (!readers_.is_output(last) && !readers_.of(last).empty()) needed_[last] = true;
    }
    for (NodeId id = static_cast<NodeId>(graph_.nodes().size()); id-- > 0;) {
      const NodeInfo& at = node(id);
      if (roles_[id] == Role::none || roles_[id] == Role::bias) continue;
      if (roles_[id] == Role::product || roles_[id] == Role::attention) {
        needed_[at.inputs[activation_operand]] = true;
        if (roles_[id] == Role::attention) needed_[at.inputs[weight_operand]] = true;
        continue;
      }
      const bool is_needed = std::ranges::any_of(at.outputs, [&](ValueId v) { return v != no_id && needed_[v]; });
      if (!is_needed) {
        roles_[id] = Role::none;
        continue;
      }
      for (const ValueId input : at.inputs) needed_[input] = true;
    }
    // Once a node is quantised, so are all its results.
    for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
      if (roles_[id] == Role::none || roles_[id] == Role::bias || roles_[id] == Role::product || roles_[id] == Role::attention) continue;
      for (const ValueId output : node(id).outputs) {
        if (output != no_id && !readers_.of(output).empty()) needed_[output] = true;
      }
    }
  }

  /// Adds the quantised values among a node's operands that it is the first reader of.
  void add_values(NodeId id) {
    for (const ValueId input : node(id).inputs) {
      if (input == no_id || !needed_[input] || readers_.of(input)[0] != id) continue;
      if (clip_of(input) == id && is_computed(input)) continue;  // the result of the clip is quantised
      QuantizedValue value{.value = input, .first_reader = id};
      const NodeId producer = graph_.info(input).producer;
      value.all_readers = producer != no_id && roles_[producer] != Role::none && roles_[producer] != Role::attention;
      if (producer != no_id && roles_[producer] == Role::clips) {
        const ValueId operand = node(producer).inputs[0];
        if (clip_of(operand) == producer && is_computed(operand)) value.clip = producer;
      }
      plan_.values.push_back(value);
    }
  }

  /// Unites operands and results of nodes that move elements.
  void group() {
    std::ranges::sort(plan_.values, {}, &QuantizedValue::value);
    std::vector<std::size_t> parent(plan_.values.size());
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](std::size_t i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    const auto index_of = [&](ValueId v) {
      return static_cast<std::size_t>(std::ranges::lower_bound(plan_.values, v, {}, &QuantizedValue::value) - plan_.values.begin());
    };
    for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
      if (roles_[id] != Role::moves) continue;
      const std::size_t first = index_of(node(id).inputs[0]);
      for (const auto* values : {&node(id).inputs, &node(id).outputs}) {
        for (const ValueId v : *values) {
          if (v != no_id && needed_[v]) parent[root(index_of(v))] = root(first);
        }
      }
    }
    std::vector<std::size_t> number(plan_.values.size(), plan_.values.size());
    for (std::size_t i = 0; i < plan_.values.size(); ++i) {
      std::size_t& group = number[root(i)];
      if (group == plan_.values.size()) group = plan_.groups++;
      plan_.values[i].group = group;
    }
  }

  const Graph& graph_;
  const Options& options_;
  Readers readers_;
  Selection selection_;
  std::vector<Role> roles_;
  std::vector<bool> integer_, needed_;
  Plan plan_;
};

}  // namespace

bool Plan::quantizes_anything() const {
  return std::ranges::any_of(products, &NodeReport::quantized);
}

Plan plan(const Graph& graph, const Options& options) {
  return Planner(graph, options).run();
}

bool quantizes_attention(const Options& options) {
  return std::ranges::any_of(options.op_types, [](const std::string& type) { return name_of_type(type) == "Attention"; }) &&
         options.weights_only_bits == 0;
}

const std::vector<QuantizableOperator>& quantizable_operators() {
  static const std::vector<QuantizableOperator> operators = [] {
    std::vector<QuantizableOperator> list;
    for (const OpRow& row : op_rows) list.push_back({name_of_row(row), row.by_default});
    return list;
  }();
  return operators;
}

}  // namespace tenon::quantize
