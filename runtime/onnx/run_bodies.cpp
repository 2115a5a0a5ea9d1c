// SPDX-License-Identifier: Apache-2.0
// onnx/run_bodies.cpp - branches of If and iterations of Loop that are programs of their own, because computed values choose or count them.
#include <fmt/core.h>

#include <cstring>
#include <limits>

#include <tenon/error.h>

#include "onnx/bodies.h"
#include "onnx/graph_runner.h"

namespace tenon::onnx {
namespace {

const GraphRecord& body_named(const NodeRecord& node, std::string_view name) {
  for (const AttributeRecord& attribute : node.attributes) {
    if (attribute.name == name && !attribute.graphs.empty()) return attribute.graphs.front();
  }
  throw Error(fmt::format("node '{}' ({}): expected an attribute '{}', a graph", node.name, node.op, name));
}

/// What a node with bodies reads from the graph around it.
class Operands {
 public:
  Operands(const ValuesNeeded& segment, const NamedTensors& values) : segment_(segment), values_(values) {}
  /// The i-th operand; undefined: it is absent.
  Tensor at(std::size_t i) const {
    const auto& names = segment_.control->inputs;
    if (i >= names.size() || names[i].empty()) return {};
    const std::string name(names[i]);
    const auto fixed = segment_.constants.find(name);
    return fixed != segment_.constants.end() ? fixed->second : values_.at(name);
  }
  /// The values that bodies may read by name, without constants.
  NamedTensors outer() const {
    NamedTensors named;
    for (const std::string& name : segment_.values) named[name] = values_.at(name);
    return named;
  }

 private:
  const ValuesNeeded& segment_;
  const NamedTensors& values_;
};

/// The same elements in memory of their own: results are memory of the program that computed them, which the next iteration writes.
Tensor copy_of(const Tensor& result, const Device& device) {
  Tensor copy = device.empty(result.dtype(), result.shape());
  copy.copy_from(result);
  return copy;
}

/// Tensors of one type along a new first axis, on the host.
Tensor stack(const std::vector<Tensor>& rows) {
  std::vector<std::int64_t> dims = {static_cast<std::int64_t>(rows.size())};
  const auto row_dims = rows[0].shape().dims();
  dims.insert(dims.end(), row_dims.begin(), row_dims.end());
  Tensor stacked = Tensor::empty(rows[0].dtype(), Shape(std::span(dims)));
  auto* to = static_cast<std::byte*>(stacked.raw());
  for (const Tensor& row : rows) {
    std::memcpy(to, row.raw(), static_cast<std::size_t>(row.size_bytes()));
    to += row.size_bytes();
  }
  return stacked;
}

}  // namespace

void GraphRunner::run_branch(const ValuesNeeded& segment, NamedTensors& values, const RunOptions& options) {
  const NodeRecord& node = *segment.control;
  const Operands operands(segment, values);
  const bool condition = is_true(operands.at(0).to_host());
  GraphRunner& branch = body_of(segment, body_named(node, condition ? "then_branch" : "else_branch"));
  const std::vector<Tensor>& results = branch.run(operands.outer(), options);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty()) values[std::string(node.outputs[i])] = results.at(i);
  }
}

void GraphRunner::run_loop(const ValuesNeeded& segment, NamedTensors& values, const RunOptions& options) {
  const NodeRecord& node = *segment.control;
  const LoopBody body(node, body_named(node, "body"));
  GraphRunner& runner = body_of(segment, body.graph);
  const Operands operands(segment, values);
  const Tensor trip_count = operands.at(0), condition = operands.at(1);
  const std::int64_t trips =
      trip_count.defined() ? trip_count.to_host().to(DType::i64).to_vector<std::int64_t>().at(0) : std::numeric_limits<std::int64_t>::max();
  bool goes_on = !condition.defined() || is_true(condition.to_host());
  NamedTensors inputs = operands.outer();
  const auto input = [&](std::size_t i) -> Tensor& { return inputs[std::string(body.graph.inputs[i].name)]; };
  for (std::size_t i = 0; i < body.carried; ++i) input(i + 2) = operands.at(i + 2);
  input(1) = Tensor::full(DType::boolean, {}, 1);
  const Device device = loaded_.device();
  std::vector<std::vector<Tensor>> scans(body.scans);
  for (std::int64_t trip = 0; trip < trips && goes_on; ++trip) {
    input(0) = Tensor::scalar(trip);
    const std::vector<Tensor>& results = runner.run(inputs, options);
    goes_on = is_true(results[0].to_host());
    for (std::size_t i = 0; i < body.carried; ++i) input(i + 2) = copy_of(results[i + 1], device);
    for (std::size_t i = 0; i < body.scans; ++i) {
      const Tensor& row = results[1 + body.carried + i];
      if (!scans[i].empty() && row.shape() != scans[i][0].shape()) {
        throw Error(fmt::format("{}: node '{}' (Loop): scan output {}: expected rows of one shape, got {} after {}", loaded_.file->name(),
                                node.name, i, row.shape().str(), scans[i][0].shape().str()));
      }
      scans[i].push_back(row.to_host());
    }
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    Tensor& result = values[std::string(node.outputs[i])];
    if (i < body.carried) {
      result = input(i + 2);
    } else {
      const std::vector<Tensor>& rows = scans.at(i - body.carried);
      result = rows.empty() ? empty_stack(body.graph.outputs[1 + i]) : stack(rows);
    }
  }
}

}  // namespace tenon::onnx
