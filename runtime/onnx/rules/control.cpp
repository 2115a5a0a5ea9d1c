// SPDX-License-Identifier: Apache-2.0
// onnx/rules/control.cpp - If, Loop and Scan: branches are chosen and iterations unrolled while the graph is made.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "onnx/bodies.h"
#include "onnx/rules.h"
#include "text/counted.h"

namespace tenon::onnx {
namespace {

/// A known condition selects a branch. Otherwise both are computed, and selected from element by element.
void if_node(Node& node) {
  const GraphRecord& yes = node.subgraph("then_branch");
  const GraphRecord& no = node.subgraph("else_branch");
  if (node.shape(0).count() != 1) node.fail(fmt::format("the condition: expected one element, got {}", node.shape(0).str()));
  Tensor condition = node.known_if_constant(0);
  const auto same_types = [](const std::vector<Operand>& a, const std::vector<Operand>& b) {
    const auto alike = [](const Operand& x, const Operand& y) {
      return x.kind == Operand::Kind::tensor && y.kind == x.kind && x.dtype() == y.dtype() && x.shape() == y.shape();
    };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), alike);
  };
  if (!condition.defined()) {
    const std::vector<Operand> first = node.run_subgraph(yes, {});
    const std::vector<Operand> second = node.run_subgraph(no, {});
    if (same_types(first, second)) {
      const Value choose = ops::reshape(node.input(0), Shape());
      for (std::size_t i = 0; i < first.size(); ++i) node.output(i, ops::where(choose, node.value_of(first[i]), node.value_of(second[i])));
      return;
    }
    condition = node.known(0);  // whose error says what is missing
  }
  const std::vector<Operand> results = node.run_subgraph(is_true(condition) ? yes : no, {});
  for (std::size_t i = 0; i < results.size(); ++i) node.output(i, results[i]);
}

/// Results of all iterations, stacked along a new axis. `reverse`: the last iteration first.
Value stacked(Node& node, std::vector<Value> values, std::int64_t axis, bool reverse) {
  if (reverse) std::ranges::reverse(values);
  if (axis < 0) axis += static_cast<std::int64_t>(values[0].shape().rank()) + 1;
  if (axis < 0 || axis > static_cast<std::int64_t>(values[0].shape().rank()))
    node.fail(fmt::format("axis {} of a scan output of shape {}", axis, values[0].shape().str()));
  return ops::stack(values, axis);
}

void loop(Node& node) {
  const LoopBody body(node.record(), node.subgraph("body"));
  const std::int64_t trips = node.has_input(0) ? node.known_integer(0) : std::numeric_limits<std::int64_t>::max();
  bool goes_on = !node.has_input(1) || is_true(node.known(1));
  std::vector<Operand> values;
  for (std::size_t i = 0; i < body.carried; ++i) values.push_back(node.has_input(i + 2) ? node.operand(i + 2) : Operand());
  std::vector<std::vector<Value>> scans(body.scans);
  for (std::int64_t trip = 0; trip < trips && goes_on; ++trip) {
    node.count_iterations(1);
    std::vector<Operand> inputs = {Operand(Tensor::scalar(trip)), Operand(Tensor::full(DType::boolean, {}, 1))};
    inputs.insert(inputs.end(), values.begin(), values.end());
    std::vector<Operand> results = node.run_subgraph(body.graph, std::move(inputs));
    const Tensor next = node.known_of(results[0], true);
    if (!next.defined()) {
      node.run_bodies(
          "the condition of the loop is computed from inputs: expected one that follows from constants, shapes, or integer inputs of at "
          "most 64 elements, since iterations are unrolled where one program is necessary");
    }
    goes_on = is_true(next);
    for (std::size_t i = 0; i < scans.size(); ++i) scans[i].push_back(node.value_of(results[1 + body.carried + i]));
    values.assign(results.begin() + 1, results.begin() + 1 + static_cast<std::ptrdiff_t>(body.carried));
  }
  for (std::size_t i = 0; i < body.carried; ++i) node.output(i, values[i]);
  for (std::size_t i = 0; i < scans.size(); ++i) {
    if (!node.needs_output(body.carried + i)) continue;
    const ValueRecord& row = body.graph.outputs[1 + body.carried + i];
    node.output(body.carried + i, scans[i].empty() ? Operand(empty_stack(row)) : stacked(node, scans[i], 0, false));
  }
}

/// The part of a scan input for one iteration.
Value element(Value x, std::int64_t axis, std::int64_t index) {
  return ops::squeeze(ops::slice(x, axis, index, index + 1), {axis});
}

std::int64_t at_or_zero(const std::vector<std::int64_t>& list, std::size_t i) {
  return i < list.size() ? list[i] : 0;
}

/// A Scan of its operands from `first` on, without a batch axis: final states, then stacks.
std::vector<Value> scan_of(Node& node, std::vector<Value> operands, std::size_t states, const std::vector<std::int64_t>& input_axes,
                           const std::vector<std::int64_t>& input_directions, const std::vector<std::int64_t>& output_axes,
                           const std::vector<std::int64_t>& output_directions) {
  const GraphRecord& body = node.subgraph("body");
  const std::size_t scanned = operands.size() - states;
  if (body.inputs.size() != operands.size() || body.outputs.size() < states) {
    node.fail(fmt::format("the body: expected {} and at least {}, got {} and {}", counted(operands.size(), "input"),
                          counted(states, "output"), body.inputs.size(), body.outputs.size()));
  }
  std::vector<std::int64_t> axes;
  std::int64_t trips = -1;
  for (std::size_t i = 0; i < scanned; ++i) {
    const Shape shape = operands[states + i].shape();
    axes.push_back(node.resolve_axis(at_or_zero(input_axes, i), static_cast<std::int64_t>(shape.rank())));
    const std::int64_t size = shape[static_cast<std::size_t>(axes[i])];
    if (trips >= 0 && size != trips) node.fail(fmt::format("scan inputs of different lengths: {} and {}", trips, size));
    trips = size;
  }
  if (trips < 0) node.fail("expected at least one scan input, got none");
  node.count_iterations(trips);
  std::vector<Operand> values(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(states));
  std::vector<std::vector<Value>> stacks(body.outputs.size() - states);
  for (std::int64_t trip = 0; trip < trips; ++trip) {
    std::vector<Operand> inputs = values;
    for (std::size_t i = 0; i < scanned; ++i) {
      const bool reverse = at_or_zero(input_directions, i) == 1;
      inputs.push_back(element(operands[states + i], axes[i], reverse ? trips - 1 - trip : trip));
    }
    const std::vector<Operand> results = node.run_subgraph(body, std::move(inputs));
    values.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(states));
    for (std::size_t i = 0; i < stacks.size(); ++i) stacks[i].push_back(node.value_of(results[states + i]));
  }
  std::vector<Value> results;
  for (const Operand& value : values) results.push_back(node.value_of(value));
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    results.push_back(stacks[i].empty() ? node.value_of(empty_stack(body.outputs[states + i]))
                                        : stacked(node, stacks[i], at_or_zero(output_axes, i), at_or_zero(output_directions, i) == 1));
  }
  return results;
}

std::size_t count_states(Node& node, std::size_t operands) {
  const std::int64_t scanned = node.integer("num_scan_inputs");
  if (scanned < 1 || static_cast<std::uint64_t>(scanned) > operands)
    node.fail(fmt::format("num_scan_inputs: expected 1 to {}, got {}", operands, scanned));
  return operands - static_cast<std::size_t>(scanned);
}

void scan(Node& node) {
  std::vector<Value> operands = node.inputs();
  const std::size_t states = count_states(node, operands.size());
  const std::vector<Value> results =
      scan_of(node, std::move(operands), states, node.integers("scan_input_axes"), node.integers("scan_input_directions"),
              node.integers("scan_output_axes"), node.integers("scan_output_directions"));
  for (std::size_t i = 0; i < results.size(); ++i) node.output(i, results[i]);
}

/// Opset 8: operands have a batch axis, and the first one is the length of each sample.
void scan_8(Node& node) {
  if (node.has_input(0)) {
    node.unsupported("sequence_lens of Scan in opset 8: expected none, which stands for the whole length: export with opset 9 or later");
  }
  std::vector<Value> operands;
  for (std::size_t i = 1; i < node.input_count(); ++i) operands.push_back(node.input(i));
  const std::size_t states = count_states(node, operands.size());
  if (operands.empty() || operands[0].shape().rank() == 0) node.fail("expected operands with a batch axis");
  const std::int64_t batch = operands[0].shape()[0];
  node.count_iterations(batch);
  std::vector<std::vector<Value>> results;
  for (std::int64_t sample = 0; sample < batch; ++sample) {
    std::vector<Value> own;
    for (const Value& operand : operands) {
      if (operand.shape().rank() == 0 || operand.shape()[0] != batch) node.fail(fmt::format("expected operands of batch {}", batch));
      own.push_back(element(operand, 0, sample));
    }
    results.push_back(scan_of(node, std::move(own), states, {}, node.integers("directions"), {}, {}));
  }
  if (results.empty()) node.unsupported("Scan of opset 8 with an empty batch");
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    std::vector<Value> samples;
    for (const std::vector<Value>& result : results) samples.push_back(result[i]);
    node.output(i, ops::stack(samples, 0));
  }
}

}  // namespace

const std::vector<Rule>& control_rules() {
  static const std::vector<Rule> rules = {
      {"If", 1, if_node},
      {"Loop", 1, loop},
      {"Scan", 8, scan_8},
      {"Scan", 9, scan},
  };
  return rules;
}

}  // namespace tenon::onnx
