// SPDX-License-Identifier: Apache-2.0
// ops_testing.h - runs functions of values on the backends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "testing.h"

namespace tenon::test {

inline constexpr const char* devices[] = {"reference:0", "openblas:0"};

/// A tensor whose element i is f(i).
template <class F>
Tensor generated(const Shape& shape, F f) {
  std::vector<double> values(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = f(static_cast<int>(i));
  return Tensor::of(values, shape);
}

/// The elements of an f32 or f64 tensor.
inline std::vector<double> doubles(const Tensor& t) {
  if (t.dtype() == DType::f64) return t.to_host().to_vector<double>();
  const std::vector<float> values = floats(t);
  return {values.begin(), values.end()};
}

using Function = std::function<Value(const std::vector<Value>&)>;
using Functions = std::function<std::vector<Value>(const std::vector<Value>&)>;

inline std::vector<Tensor> results_of(const std::vector<Tensor>& inputs, const Functions& functions,
                                      const std::string& device = "reference:0") {
  const Context context(test_config(device));
  Graph graph;
  std::vector<Value> operands;
  for (const Tensor& t : inputs) operands.push_back(graph.input("x" + std::to_string(operands.size()), t.dtype(), t.shape()));
  for (const Value y : functions(operands)) graph.output("y" + std::to_string(graph.outputs().size()), y);
  return Program(context, graph).run(inputs);
}

inline std::vector<double> result_of(const std::vector<Tensor>& inputs, const Function& function,
                                     const std::string& device = "reference:0") {
  return doubles(results_of(
      inputs, [&](const auto& operands) { return std::vector{function(operands)}; }, device)[0]);
}

}  // namespace tenon::test
