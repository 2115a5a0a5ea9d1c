// graph/recurrent.h - what the shape rules of rnn, gru and lstm share.
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
  /// Four numbers of every unit, whatever the cell: GRU keeps what its candidate sees of the state beside its three gates.
  Shape gates() const { return {steps, batch, directions, 4 * units}; }
};

/// Which of the attributes a cell reads; the others are set to 0.
struct RecurrentForm {
  std::int64_t gates;    ///< 1, 3 or 4
  std::size_t states;    ///< operands h0, c0 behind b: 1 or 2
  bool activation;       ///< reads `activation`
  bool reset_placement;  ///< reads `linear_before_reset`
};

/// Checks and normalises the attributes, and operands x, w, r, b and states, of which x has number `first`.
RecurrentSizes check_recurrent(Inference& at, const RecurrentForm& form, std::size_t first);
/// Checks the gradients of the results, operands 0 .. count - 1: y (T, D, B, H), then states. One at least has to be there.
void check_recurrent_gradients(Inference& at, const RecurrentSizes& sizes, std::size_t count);
/// Operand i is of x's dtype (operand x) and of this shape.
void want_recurrent(Inference& at, std::size_t i, std::size_t x, const char* name, const Shape& shape);
/// dx, dw, dr, db, and one for each state; db and those of states may be left out where nobody reads them.
void output_recurrent_gradients(Inference& at, const RecurrentSizes& sizes, const RecurrentForm& form, std::size_t first);

/// Without the absent ones at the end.
std::vector<Value> trimmed(std::vector<Value> operands);

}  // namespace tenon::graph
