// SPDX-License-Identifier: Apache-2.0
#include "small_graph.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::conformance {
namespace {

/// The element of x that broadcasting pairs with element i of a result of `shape`.
double broadcast_at(const Array& x, const Dims& shape, std::int64_t i) {
  std::int64_t index = 0, stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; i /= shape[d]) {
    const std::size_t missing = shape.size() - x.shape().size();
    if (d < missing) break;
    const std::int64_t size = x.shape()[d - missing];
    if (size != 1) index += i % shape[d] * stride;
    stride *= size;
  }
  return x.at(index);
}

/// The element of x that becomes element i of its transposition, of `shape`.
double transposed_at(const Array& x, const Dims& shape, const tenon_attributes_axes& permutation, std::int64_t i) {
  const Dims strides = dense_strides(x.shape());
  std::int64_t index = 0;
  for (std::size_t d = shape.size(); d-- > 0; i /= shape[d]) index += i % shape[d] * strides[static_cast<std::size_t>(permutation.axes[d])];
  return x.at(index);
}

double product_at(const Array& a, const Array& b, std::int64_t i) {
  const std::int64_t inner = a.shape().back(), columns = b.shape().back();
  double sum = 0;
  for (std::int64_t k = 0; k < inner; ++k) sum += a.at(i / columns * inner + k) * b.at(k * columns + i % columns);
  return sum;
}

}  // namespace

void GraphBuilder::transpose(std::uint32_t x, const Dims& permutation, std::uint32_t y) {
  tenon_attributes_axes attributes{.struct_size = sizeof attributes, .count = static_cast<std::uint32_t>(permutation.size())};
  std::copy(permutation.begin(), permutation.end(), attributes.axes);
  net.node(TENON_OP_Transpose, line_of(TENON_OP_Transpose).version, &attributes, {x}, {y});
}

void GraphBuilder::node(tenon_op op, std::vector<std::uint32_t> inputs, std::uint32_t y) {
  net.node(op, line_of(op).version, &no_attributes, std::move(inputs), {y});
}

Array GraphBuilder::numbers(Dims shape) {
  Array array(TENON_DTYPE_F32, std::move(shape));
  for (std::int64_t i = 0; i < array.count(); ++i) array.set(i, static_cast<double>(random_.integer(-4, 5)));
  return array;
}

std::vector<Array> reference_outputs(const Net& net) {
  std::vector<Array> arrays;
  for (const Net::Value& value : net.values) {
    const bool given = value.kind != TENON_VALUE_OUTPUT && value.kind != TENON_VALUE_INTERNAL;
    arrays.push_back(given ? value.array : Array(value.dtype, value.shape));
  }
  for (const Net::Node& node : net.nodes) {
    Array& y = arrays[node.outputs[0]];
    const Array &a = arrays[node.inputs[0]], &b = arrays[node.inputs.back()];
    const auto element = [&](std::int64_t i) {
      switch (node.op) {
        case TENON_OP_Relu:
          return std::max(0.0, a.at(i));
        case TENON_OP_Add:
          return broadcast_at(a, y.shape(), i) + broadcast_at(b, y.shape(), i);
        case TENON_OP_Transpose:
          return transposed_at(a, y.shape(), *reinterpret_cast<const tenon_attributes_axes*>(node.attributes.data()), i);
        default:
          return product_at(a, b, i);
      }
    };
    for (std::int64_t i = 0; i < y.count(); ++i) y.set(i, element(i));
  }
  std::vector<Array> outputs;
  for (std::size_t v = 0; v < arrays.size(); ++v) {
    if (net.values[v].kind == TENON_VALUE_OUTPUT) outputs.push_back(std::move(arrays[v]));
  }
  return outputs;
}

bool is_served(const CaseContext& context, const Net& net) {
  const bool single = (context.device.device_info().flags & TENON_DEVICE_SINGLE_NODE_PLANS) != 0;
  return (!single || net.nodes.size() == 1) && std::all_of(net.nodes.begin(), net.nodes.end(), [&](const Net::Node& node) {
           return (context.device.capability(node.op, node.version) & TENON_DTYPE_BIT(TENON_DTYPE_F32)) != 0;
         });
}

void expect_exact(const std::vector<Array>& expected, const Outcome& outcome, const std::string& where) {
  if (!outcome.ok()) fail(fmt::format("{}: execution failed with {}: {}", where, status_name(outcome.status), outcome.text));
  if (!outcome.damage.empty()) fail(fmt::format("{}: the execution {}", where, outcome.damage));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::string wrong = compare(expected[i], outcome.outputs[i], {});
    if (!wrong.empty()) fail(fmt::format("{}: output {}: {}; sums of small integers are exact", where, i, wrong));
  }
}

}  // namespace tenon::conformance
