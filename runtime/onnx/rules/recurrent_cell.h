// SPDX-License-Identifier: Apache-2.0
// onnx/rules/recurrent_cell.h - one direction of an RNN, GRU or LSTM, by its kernel or step by step.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <tenon/functions.h>
#include <tenon/graph.h>

#include "onnx/node.h"
#include "onnx/rules/recurrent.h"

namespace tenon::onnx {

/// An activation of a recurrent node.
struct CellActivation {
  struct Kind;
  const Kind* kind;
  double alpha, beta;
  Value operator()(Value x) const;
  bool is(std::string_view name) const;  ///< in lower case
};

/// What the attributes of a recurrent node say about one direction.
struct CellOptions {
  RecurrentCell cell = RecurrentCell::rnn;
  std::vector<CellActivation> activations = {};  ///< RNN f; GRU f, g; LSTM f, g, h
  std::optional<double> clip = {};               ///< bound of what f and g are applied to
  bool input_forget = false;                     ///< LSTM: the forget gate is 1 - the input gate
  bool linear_before_reset = false;              ///< GRU
};

/// Gates of a cell: RNN 1, GRU 3, LSTM 4.
std::int64_t gates_of(RecurrentCell cell);
/// The options of each direction, from the node's attributes. Errors: an unknown activation, or too few of them; a clip that is not
/// positive.
std::vector<CellOptions> cell_options(Node& node, RecurrentCell cell, std::size_t directions);

/// True if the kernel of the cell computes it.
bool has_kernel(const CellOptions& options, const RecurrentOperands& operands);
/// The kernel with all directions.
ops::RecurrentResult run_kernel(const CellOptions& options, const RecurrentOperands& operands, ops::Direction direction);

/// Results of one direction: y (T, B, H) and the states (B, H) after the last step; cells (T, B, H) of an LSTM.
struct UnrolledCell {
  Value y, h, c, cells;
};
/// Applies the cell step by step, forward. The operands are those of one direction, in their shapes with D = 1; T >= 1.
UnrolledCell unroll_cell(Node& node, const CellOptions& options, const RecurrentOperands& operands);

}  // namespace tenon::onnx
