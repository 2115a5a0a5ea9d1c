// SPDX-License-Identifier: Apache-2.0
// Gradients compared with finite differences: the runtime differentiates, the backend computes both sides in f64.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <tenon/functions.h>
#include <tenon/graph.h>

#include "case.h"

namespace tenon::conformance {
namespace {

/// The attributes of a node in the graph's form.
Attributes graph_attributes(tenon_op op, const AttributeBytes& bytes) {
  switch (op) {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) \
  case id:                                                                                            \
    return Attributes::of(bytes.as<tenon_attributes_##attributes>());
#include <tenon/ops.def>
#undef TENON_OP
    default:
      throw Failure(fmt::format("op {} is not in ops.def", op));
  }
}

Dims dims(const Shape& shape) {
  return Dims(shape.begin(), shape.end());
}

/// sum over results r of sum(weight_r * r): a scalar that depends on each element differently.
struct Loss {
  Graph graph;
  std::vector<ValueId> inputs;      ///< per operand; no_id: absent
  std::vector<ValueId> results;     ///< floating results of the node
  std::vector<std::size_t> places;  ///< per entry of `results`: its index among the results that are present
  std::vector<Array> weights;       ///< per entry of `results`
  std::vector<ValueId> weight_ids;
  std::vector<Value> gradients;  ///< per requested operand
};

/// Lowers the whole graph; `requested` become outputs, in this order.
Net lower(const Loss& loss, const std::vector<Array>& operands, const std::vector<ValueId>& requested) {
  Net net;
  const auto& infos = loss.graph.values();
  std::vector<std::uint32_t> value_of(infos.size(), TENON_NO_INDEX);
  for (std::size_t i = 0; i < loss.inputs.size(); ++i) {
    if (loss.inputs[i] != no_id) value_of[loss.inputs[i]] = net.input(operands[i]);
  }
  for (std::size_t r = 0; r < loss.weight_ids.size(); ++r) value_of[loss.weight_ids[r]] = net.input(loss.weights[r]);
  for (const ValueId id : requested) {
    if (infos[id].kind != ValueKind::computed || value_of[id] != TENON_NO_INDEX) continue;
    value_of[id] = net.output(static_cast<tenon_dtype>(infos[id].dtype), dims(infos[id].shape));
  }
  for (ValueId id = 0; id < infos.size(); ++id) {
    if (infos[id].kind != ValueKind::constant) continue;
    Array bytes(static_cast<tenon_dtype>(infos[id].dtype), dims(infos[id].shape));
    std::copy_n(static_cast<const unsigned char*>(infos[id].constant.raw()), bytes.size_bytes(), bytes.bytes());
    value_of[id] = net.input(std::move(bytes), {}, TENON_VALUE_CONSTANT);
  }
  for (const NodeInfo& node : loss.graph.nodes()) {
    std::vector<std::uint32_t> ins, outs;
    for (const ValueId id : node.inputs) ins.push_back(id == no_id ? TENON_NO_INDEX : value_of[id]);
    for (const ValueId id : node.outputs) {
      if (value_of[id] == TENON_NO_INDEX) value_of[id] = net.internal(static_cast<tenon_dtype>(infos[id].dtype), dims(infos[id].shape));
      outs.push_back(value_of[id]);
    }
    net.node(node.op, node.version, node.attributes.data(), ins, outs);
  }
  return net;
}

void build(Loss& loss, const OpCase& op_case, const Variant& variant, std::uint64_t seed) {
  std::vector<Value> operands;
  for (std::size_t i = 0; i < variant.inputs.size(); ++i) {
    const OperandSpec& spec = variant.inputs[i];
    if (!spec.present) {
      operands.emplace_back();
      loss.inputs.push_back(no_id);
      continue;
    }
    const auto dtype = static_cast<DType>(resolved(spec.dtype, TENON_DTYPE_F64));
    operands.push_back(loss.graph.input(fmt::format("operand_{}", i), dtype, Shape(std::span(spec.shape))));
    loss.inputs.push_back(operands.back().id());
  }
  while (!operands.empty() && !operands.back().present()) operands.pop_back();
  NodeOptions options;
  options.shape = Shape(std::span(variant.outputs[0].shape));  // read by ops whose operands do not imply the result's shape
  if (op_case.op == TENON_OP_Split) {
    const auto axis = static_cast<std::size_t>(variant.attributes.as<tenon_attributes_axis>().axis);
    for (const ResultSpec& part : variant.outputs) options.sizes.push_back(part.shape[axis]);
  }
  AttributeBytes attributes = variant.attributes;
  if (op_case.op == TENON_OP_Dropout) static_cast<tenon_attributes_random*>(attributes.data())->dtype = TENON_DTYPE_F64;
  const std::vector<Value> results = loss.graph.apply(op_case.op, operands, graph_attributes(op_case.op, attributes), options);

  Random random(seed + 1);
  Value total;
  std::size_t place = 0;
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (r >= variant.outputs.size() || !variant.outputs[r].present) continue;
    ++place;
    if (dims(results[r].shape()) != variant.outputs[r].shape) {
      throw Failure(fmt::format("the runtime's shape rule gives {} for result {}, the case {}", results[r].shape().str(), r,
                                str(variant.outputs[r].shape)));
    }
    if (!is_floating(results[r].dtype())) continue;  // indices
    if (std::find(op_case.kept.begin(), op_case.kept.end(), r) != op_case.kept.end()) continue;
    Array weight(TENON_DTYPE_F64, variant.outputs[r].shape);
    for (std::int64_t i = 0; i < weight.count(); ++i) weight.set(i, random.uniform(0.5, 1.5) * (random.integer(0, 2) == 0 ? -1 : 1));
    const Value w = loss.graph.input(fmt::format("weight_{}", r), DType::f64, results[r].shape());
    loss.results.push_back(results[r].id());
    loss.places.push_back(place - 1);
    loss.weights.push_back(std::move(weight));
    loss.weight_ids.push_back(w.id());
    const Value part = ops::reduce_sum(ops::mul(results[r], w));
    total = total.present() ? ops::add(total, part) : part;
  }
  std::vector<Value> with_respect_to;
  for (const std::size_t i : op_case.gradient) {
    if (operands.size() > i && operands[i].present()) with_respect_to.push_back(operands[i]);
  }
  loss.gradients = gradients(total, with_respect_to);
}

}  // namespace

void check_gradient(CaseContext& context, const OpCase& op_case, const Variant& variant, std::uint64_t seed) {
  std::vector<Array> operands = fill(variant, TENON_DTYPE_F64, seed);
  Loss loss;
  build(loss, op_case, variant, seed);

  for (const tenon_op op : op_case.gradient_ops) {
    const auto& nodes = loss.graph.nodes();
    if (std::none_of(nodes.begin(), nodes.end(), [&](const NodeInfo& node) { return node.op == op; })) {
      throw Failure(fmt::format("the runtime's gradient does not use {}: nothing checks it here", line_of(op).stem));
    }
  }

  // A gradient that is not computed (a weight, a constant) is multiplied by 1, so that it becomes an output.
  std::vector<Array> analytic;
  {
    std::vector<ValueId> computed;
    for (Value& gradient : loss.gradients) {
      const bool repeated = std::find(computed.begin(), computed.end(), gradient.id()) != computed.end();
      if (loss.graph.info(gradient.id()).kind != ValueKind::computed || repeated) gradient = ops::mul(gradient, 1.0);
      computed.push_back(gradient.id());
    }
    analytic = context.run(lower(loss, operands, computed));
  }

  // Only the forward node, executed repeatedly with one element moved.
  const Net forward = net_of(line_of(op_case.op), variant, TENON_DTYPE_F64, operands);
  const Plan plan(context.device, forward);
  if (!plan.ready()) throw Failure(plan.why());
  Plan::Bindings bindings(plan, 0xFF);
  std::vector<std::uint32_t> value_of;
  std::uint32_t next = 0;
  for (const OperandSpec& spec : variant.inputs) value_of.push_back(spec.present ? next++ : TENON_NO_INDEX);
  const auto value_of_loss = [&]() {
    const Outcome outcome = bindings.execute();
    if (!outcome.ok()) throw Failure(fmt::format("execution failed with {}: {}", status_name(outcome.status), outcome.text));
    double sum = 0;
    for (std::size_t r = 0; r < loss.weights.size(); ++r) {
      const Array& result = outcome.outputs[loss.places[r]];
      for (std::int64_t i = 0; i < loss.weights[r].count(); ++i) sum += loss.weights[r].at(i) * result.at(i);
    }
    return sum;
  };

  constexpr std::int64_t max_moved = 24;  // elements of an operand that are moved: a large operand is sampled
  Random random(seed + 2);
  std::size_t g = 0;
  for (const std::size_t i : op_case.gradient) {
    if (i >= variant.inputs.size() || !variant.inputs[i].present) continue;
    const Array& gradient = analytic[g++];
    if (gradient.shape() != operands[i].shape()) {
      throw Failure(
          fmt::format("the gradient of operand {} has shape {}, expected {}", i, str(gradient.shape()), str(operands[i].shape())));
    }
    // Sums of many terms have rounding errors relative to the largest element of the gradient.
    double scale = 1;
    for (std::int64_t e = 0; e < gradient.count(); ++e) scale = std::max(scale, std::fabs(gradient.at(e)));
    const std::int64_t count = gradient.count();
    for (std::int64_t n = 0; n < std::min(count, max_moved); ++n) {
      const std::int64_t e = count <= max_moved ? n : random.integer(0, count);
      const double x = operands[i].at(e);
      // The error of a central difference is least where h^2 and epsilon / h meet: near the cube root of epsilon.
      const double h = 6e-6 * std::max(1.0, std::fabs(x));
      operands[i].set(e, x + h);
      bindings.set(value_of[i], operands[i]);
      const double above = value_of_loss();
      operands[i].set(e, x - h);
      bindings.set(value_of[i], operands[i]);
      const double below = value_of_loss();
      operands[i].set(e, x);
      bindings.set(value_of[i], operands[i]);
      const double difference = (above - below) / ((x + h) - (x - h));
      // 1e-6 relative; a loss of magnitude |L| rounds by epsilon |L|, which the quotient divides by h.
      const double rounding = 1e-15 * std::max(std::fabs(above), std::sqrt(static_cast<double>(loss.weights[0].count()))) / h;
      const double allowed = 1e-6 * scale + 4 * rounding;
      const double error = std::fabs(difference - gradient.at(e));
      if (!(error <= allowed)) {
        Facts facts;
        facts.element = index_of(e, gradient.shape());
        facts.expected = fmt::format("{:.12g}", difference);
        facts.got = fmt::format("{:.12g}", gradient.at(e));
        facts.error = fmt::format("{:.3g}", error);
        facts.bound = fmt::format("{:.3g}", allowed);
        throw Failure(
            fmt::format("the gradient of operand {} {} at element {} is {}, finite differences give {}; error {}, at most {} allowed", i,
                        operands[i].str(), facts.element, facts.got, facts.expected, facts.error, facts.bound),
            facts);
      }
    }
  }
}

}  // namespace tenon::conformance
