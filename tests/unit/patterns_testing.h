// SPDX-License-Identifier: Apache-2.0
// patterns_testing.h - helpers of the tests of expressions that become ops.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "graph/passes.h"
#include "graph/patterns/recognize.h"
#include "graph_testing.h"

namespace tenon::test {

inline const Context& context() {
  static const Context on_reference{test_config()};
  return on_reference;
}

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// Elements of an input or parameter: the same for the same name. Variances and divisors are positive.
inline Tensor elements_of(const ValueInfo& value) {
  double seed = 0;
  for (const char c : value.name) seed = seed * 1.3 + c;
  const bool positive = value.name == "variance" || value.name == "divisor";
  std::vector<double> elements(static_cast<std::size_t>(value.shape.count()));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const double wave = std::sin(static_cast<double>(i) * 1.7 + seed);
    elements[i] = value.dtype == DType::boolean ? (i % 3 != 1 ? 1 : 0) : positive ? 1.5 + wave : wave + 0.1;
  }
  return Tensor::of(elements, value.shape).to(value.dtype);
}

inline std::vector<Tensor> results_of(const Graph& graph) {
  Program program(context(), graph);
  std::vector<Tensor> inputs;
  for (const ValueInfo& value : graph.values()) {
    if (value.kind == ValueKind::input) inputs.push_back(elements_of(value));
    if (value.kind == ValueKind::parameter && program.parameters()->has(value.name)) {
      program.parameters()->set(value.name, elements_of(value));
    }
  }
  std::vector<Tensor> results;
  for (const Tensor& result : program.run(inputs)) results.push_back(result.to_host());
  return results;
}

/// With the gradients of the sum of squares of all outputs.
inline Graph with_gradients(Graph graph) {
  std::vector<Value> sources;
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    const ValueInfo& info = graph.info(v);
    const bool is_bound = info.kind == ValueKind::input || info.kind == ValueKind::parameter;
    if (is_bound && is_floating(info.dtype)) sources.emplace_back(&graph, v);
  }
  Value loss;
  for (const GraphOutput& output : std::vector<GraphOutput>(graph.outputs())) {
    const Value part = ops::reduce_sum(ops::square(Value(&graph, output.value)));
    loss = loss.present() ? ops::add(loss, part) : part;
  }
  const std::vector<Value> slopes = gradients(loss, sources);
  for (std::size_t i = 0; i < slopes.size(); ++i) graph.output("d " + sources[i].name(), slopes[i]);
  return graph;
}

/// Gradients are sums of terms of different signs, some of which cancel: their rounding errors are relative to the largest results.
inline void check_close(const std::vector<Tensor>& expected, const std::vector<Tensor>& got, double tolerance) {
  REQUIRE(expected.size() == got.size());
  double largest = 1;
  for (const Tensor& tensor : expected) {
    const Tensor host = tensor.to_host().to(DType::f64);
    for (const double element : host.to_vector<double>())
      largest = std::isfinite(element) ? std::max(largest, std::fabs(element)) : largest;
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(all_close(got[i], expected[i], tolerance, tolerance * largest));
  }
}

/// What a pass over a graph has found; checks that results and gradients stay what they are.
struct Recognition {
  Graph graph;
  std::string found;  ///< "Gelu 1"
  std::string ops;
};
inline Recognition recognition_of(const Graph& before) {
  graph::PatternCounts counts;
  Graph after = graph::recognize_patterns(before, &counts);
  check_close(results_of(before), results_of(after), 1e-5);
  check_close(results_of(with_gradients(before)), results_of(with_gradients(after)), 1e-4);
  std::string ops = ops_of(after);
  return {std::move(after), graph::str(counts).substr(std::string("recognized: ").size()), std::move(ops)};
}

/// Builds the output y of a graph.
using Build = std::function<Value(Graph&)>;

inline Recognition recognition_of(const Build& build) {
  Graph graph;
  graph.output("y", build(graph));
  return recognition_of(graph);
}

inline std::string found_in(const Build& build) {
  return recognition_of(build).found;
}

/// The same for a function of x f32(2,3,8).
using Function = std::function<Value(Value)>;
inline Build of_x(const Function& f) {
  return [f](Graph& g) { return f(g.input("x", DType::f32, {2, 3, 8})); };
}

inline Value parameter(Graph& g, const std::string& name, const Shape& shape) {
  return g.parameter(name, DType::f32, shape);
}

inline Value exactly(Value x, double number) {
  return x.graph().constant(Tensor::scalar(static_cast<float>(number)));
}

inline Value deviation_from_mean(Value x, const std::vector<std::int64_t>& axes) {
  return x - ops::reduce_mean(x, axes, true);
}

/// Layer norm as PyTorch writes it.
inline Value normalised(Value x, const std::vector<std::int64_t>& axes) {
  const Value d = deviation_from_mean(x, axes);
  return d / ops::sqrt(ops::reduce_mean(ops::pow(d, 2), axes, true) + 1e-5);
}

}  // namespace tenon::test
