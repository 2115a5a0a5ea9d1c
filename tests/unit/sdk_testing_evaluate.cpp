// SPDX-License-Identifier: Apache-2.0
// sdk_testing_evaluate.cpp - the results of a graph, computed node by node.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "sdk_testing.h"

namespace tenon::sdk_test {

Shape index_of(std::int64_t i, const Shape& shape) {
  Shape index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = i % shape[d];
    i /= shape[d];
  }
  return index;
}

namespace {

/// The element of a dense array of `shape` that broadcasts to `index`.
std::int64_t broadcast(const Shape& index, const Shape& shape) {
  std::int64_t i = 0;
  const std::size_t missing = index.size() - shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d) i = i * shape[d] + (shape[d] == 1 ? 0 : index[d + missing]);
  return i;
}

}  // namespace

std::vector<Floats> evaluate(const Net& net, const std::map<std::uint32_t, Floats>& bound) {
  std::vector<Floats> result(net.values.size());
  for (const auto& [v, data] : bound) result[v] = data;
  for (std::size_t v = 0; v < net.values.size(); ++v) {
    if (net.values[v].kind != TENON_VALUE_CONSTANT) continue;
    result[v].resize(static_cast<std::size_t>(net.values[v].count()));
    if (!result[v].empty()) std::memcpy(result[v].data(), net.values[v].bytes.data(), net.values[v].bytes.size());
  }
  for (const Net::Node& node : net.nodes) {
    const Net::Value& out = net.values[node.outputs[0]];
    const Shape& x_shape = net.values[node.inputs[0]].shape;
    const Floats& x = result[node.inputs[0]];
    const auto count = static_cast<std::size_t>(out.count());
    Floats y(count, 0.0f);
    const auto each = [&](auto f) {
      for (std::size_t i = 0; i < count; ++i) y[i] = f(i, index_of(static_cast<std::int64_t>(i), out.shape));
    };
    const auto operand = [&](std::size_t k, const Shape& index) {
      return result[node.inputs[k]][static_cast<std::size_t>(broadcast(index, net.values[node.inputs[k]].shape))];
    };
    switch (node.op) {
      case TENON_OP_Add:
        each([&](std::size_t, const Shape& index) { return operand(0, index) + operand(1, index); });
        break;
      case TENON_OP_Sub:
        each([&](std::size_t, const Shape& index) { return operand(0, index) - operand(1, index); });
        break;
      case TENON_OP_Mul:
        each([&](std::size_t, const Shape& index) { return operand(0, index) * operand(1, index); });
        break;
      case TENON_OP_Neg:
        each([&](std::size_t i, const Shape&) { return -x[i]; });
        break;
      case TENON_OP_Relu:
        each([&](std::size_t i, const Shape&) { return x[i] > 0 ? x[i] : 0.0f; });
        break;
      case TENON_OP_ReluGrad:
        each([&](std::size_t i, const Shape& index) { return operand(1, index) > 0 ? x[i] : 0.0f; });
        break;
      case TENON_OP_Sigmoid:
        each([&](std::size_t i, const Shape&) { return 1 / (1 + std::exp(-x[i])); });
        break;
      case TENON_OP_Tanh:
        each([&](std::size_t i, const Shape&) { return std::tanh(x[i]); });
        break;
      case TENON_OP_Reshape:
      case TENON_OP_Flatten:
        y = x;
        break;
      case TENON_OP_Transpose: {
        const auto& perm = *reinterpret_cast<const tenon_attributes_axes*>(node.attributes.data());
        each([&](std::size_t, const Shape& index) {
          Shape from(index.size());
          for (std::size_t d = 0; d < index.size(); ++d) from[static_cast<std::size_t>(perm.axes[d])] = index[d];
          return x[static_cast<std::size_t>(broadcast(from, x_shape))];
        });
        break;
      }
      case TENON_OP_Expand:
        each([&](std::size_t, const Shape& index) { return operand(0, index); });
        break;
      case TENON_OP_ReduceSum: {
        const auto& a = *reinterpret_cast<const tenon_attributes_axes*>(node.attributes.data());
        for (std::size_t i = 0; i < x.size(); ++i) {
          const Shape index = index_of(static_cast<std::int64_t>(i), x_shape);
          std::int64_t to = 0;
          for (std::size_t d = 0; d < index.size(); ++d) {
            if (std::find(a.axes, a.axes + a.count, static_cast<std::int64_t>(d)) == a.axes + a.count) to = to * x_shape[d] + index[d];
          }
          y[static_cast<std::size_t>(to)] += x[i];
        }
        break;
      }
      case TENON_OP_MatMul:
      case TENON_OP_Gemm: {
        const Floats& b = result[node.inputs[1]];
        const auto depth = static_cast<std::size_t>(x_shape[1]), n = static_cast<std::size_t>(out.shape[1]);
        each([&](std::size_t i, const Shape&) {
          float sum = 0;
          for (std::size_t k = 0; k < depth; ++k) sum += x[i / n * depth + k] * b[k * n + i % n];
          return sum;
        });
        break;
      }
      case TENON_OP_Softmax: {
        const auto n = static_cast<std::size_t>(x_shape.back());
        for (std::size_t first = 0; n > 0 && first < count; first += n) {
          const float peak =
              *std::max_element(x.begin() + static_cast<std::ptrdiff_t>(first), x.begin() + static_cast<std::ptrdiff_t>(first + n));
          float total = 0;
          for (std::size_t i = first; i < first + n; ++i) total += y[i] = std::exp(x[i] - peak);
          for (std::size_t i = first; i < first + n; ++i) y[i] /= total;
        }
        break;
      }
      default:
        FAIL("evaluate does not know op " << node.op);
    }
    result[node.outputs[0]] = std::move(y);
  }
  return result;
}

}  // namespace tenon::sdk_test
