// SPDX-License-Identifier: Apache-2.0
// graph/recurrent.h - shared parts of the shape rules of rnn, gru and lstm.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/op.h"

namespace tenon::graph {

/// The sizes of one recurrent layer.
struct RecurrentSizes {
  std::int64_t steps, batch, features, directions, units;

  Shape sequence() const { return {steps, directions, batch, units}; }
  Shape state() const { return {directions, batch, units}; }
  /// Four values per unit for LSTM and GRU: GRU stores the state term of its candidate in addition to its three gates.
  Shape gates() const { return {steps, batch, directions, 4 * units}; }
};

/// Which of the attributes a cell reads; the others are set to 0.
struct RecurrentForm {
  std::int64_t gates;    ///< 1, 3 or 4
  std::size_t states;    ///< operands h0, c0 after b: 1 or 2
  bool activation;       ///< reads `activation`
  bool reset_placement;  ///< reads `linear_before_reset`
};

/// Checks and normalises the attributes, and checks operands x, w, r, b and states; x has index `first`.
RecurrentSizes check_recurrent(Inference& at, const RecurrentForm& form, std::size_t first);
/// Checks the gradients of the results, operands 0 .. count - 1: y (T, D, B, H), then states. At least one must be present.
void check_recurrent_gradients(Inference& at, const RecurrentSizes& sizes, std::size_t count);
/// Checks that operand i has the dtype of operand x and this shape.
void expect_recurrent(Inference& at, std::size_t i, std::size_t x, const char* name, const Shape& shape);
/// Results dx, dw, dr, db, and one per state; unused db and state gradients may be omitted.
void output_recurrent_gradients(Inference& at, const RecurrentSizes& sizes, const RecurrentForm& form, std::size_t first);

/// Flops of a layer whose operand i is x, followed by w and r: each step multiplies by all of w and r, `products` times, and has about ten
/// operations per gate and unit.
template <std::size_t i, std::int64_t products>
std::int64_t recurrent_flops(const Graph& graph, const NodeInfo& node) {
  const Shape &x = graph.info(node.inputs[i]).shape, &w = graph.info(node.inputs[i + 1]).shape, &r = graph.info(node.inputs[i + 2]).shape;
  return x[0] * x[1] * (2 * products * (w.count() + r.count()) + 10 * w[0] * w[1]);
}

/// Removes absent values at the end.
std::vector<Value> trimmed(std::vector<Value> operands);

}  // namespace tenon::graph
