// SPDX-License-Identifier: Apache-2.0
// small_graph.h - graphs of the most common ops on small integers, whose sums are exact in f32, and their results.
#pragma once

#include <string>
#include <vector>

#include "core.h"

namespace tenon::conformance {

/// Builds a graph whose operands are integers from -4 to 4.
class GraphBuilder {
 public:
  /// `weights`: the kind of weight(), TENON_VALUE_*.
  explicit GraphBuilder(std::uint32_t weights, std::uint64_t seed = 17) : weights_(weights), random_(seed) {}
  std::uint32_t input(Dims shape) { return net.input(numbers(std::move(shape)), {}, TENON_VALUE_INPUT); }
  std::uint32_t weight(Dims shape) { return net.input(numbers(std::move(shape)), {}, weights_); }
  std::uint32_t output(Dims shape) { return net.output(TENON_DTYPE_F32, std::move(shape)); }
  std::uint32_t internal(Dims shape) { return net.internal(TENON_DTYPE_F32, std::move(shape)); }
  void relu(std::uint32_t x, std::uint32_t y) { node(TENON_OP_Relu, {x}, y); }
  void add(std::uint32_t a, std::uint32_t b, std::uint32_t y) { node(TENON_OP_Add, {a, b}, y); }
  void product(std::uint32_t a, std::uint32_t b, std::uint32_t y) { node(TENON_OP_MatMul, {a, b}, y); }
  void transpose(std::uint32_t x, const Dims& permutation, std::uint32_t y);
  Net net;

 private:
  void node(tenon_op op, std::vector<std::uint32_t> inputs, std::uint32_t y);
  Array numbers(Dims shape);
  std::uint32_t weights_;
  Random random_;
};

/// The outputs of a graph of these four ops.
std::vector<Array> reference_outputs(const Net& net);
/// Whether the capability table has all ops of the graph in f32, and plans may have as many nodes.
bool is_served(const CaseContext& context, const Net& net);
void expect_exact(const std::vector<Array>& expected, const Outcome& outcome, const std::string& where);

}  // namespace tenon::conformance
