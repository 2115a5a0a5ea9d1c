// SPDX-License-Identifier: Apache-2.0
// recurrence.h - helpers that the families of rnn, gru and lstm share.
#pragma once

#include <string>
#include <vector>

#include "op_family.h"

namespace tenon::conformance {

/// One layer, and which operands and results a node has.
struct RecurrentForm {
  std::int64_t steps = 3, batch = 2, features = 3, units = 4;
  std::uint32_t direction = TENON_DIRECTION_FORWARD;
  bool bias = true;
  bool states = true;  ///< h0, and c0 of lstm
  /// Bit i: result i is present; for a gradient op, operand i, the gradient of that result, is present.
  unsigned results = 0b1;
  unsigned variant = 0;  ///< rnn: activation; gru: linear_before_reset

  std::int64_t directions() const { return direction == TENON_DIRECTION_BOTH ? 2 : 1; }
  Dims sequence() const { return {steps, directions(), batch, units}; }
  Dims state() const { return {directions(), batch, units}; }
  Dims kept_gates() const { return {steps, batch, directions(), 4 * units}; }
};

/// Numbers up to 1 for a sequence, a state or its gradient.
Values recurrent_number(const RecurrentForm& form);
/// x, w, r, b, h0 and, with two states, c0.
std::vector<OperandSpec> recurrent_operands(const RecurrentForm& form, std::int64_t gates, std::int64_t states);
/// dx, dw, dr, db, dh0 and, with two states, dc0; those of absent operands are omitted.
std::vector<ResultSpec> recurrent_gradients(const RecurrentForm& form, std::int64_t gates, std::int64_t states);
/// "both,no_bias,no_states,results=6".
std::string recurrent_label(const RecurrentForm& form, const std::string& variant = {});

/// Forms that cover every code path: lengths, batches and units around vector and tile sizes, both ways of splitting the work, operands
/// present and absent, all of the results in `all_results` and each one separately.
std::vector<RecurrentForm> recurrent_forms(unsigned all_results, std::int64_t gates);

Bound recurrent_error(const Variant& variant, tenon_dtype dtype);
inline constexpr Tolerance recurrent_bound{
    "A step's sums round by root(I + H) epsilon of numbers of about 1; no slope of what follows is above 1. What a state is off by comes "
    "back "
    "at the next step through weights whose norm is about 1, and a cell adds up its own: no more than T steps' worth in all. In 16 "
    "bits, states are rounded at each step.",
    recurrent_error};
inline constexpr const char* recurrent_gradient_reason =
    "The gradients of the gates are a few units large and off by what their products round, root(G H) epsilon; dw, dr and db add up T B of "
    "them, which rounds by epsilon times the partial sums.";
/// x is operand `x` of the variant.
Bound recurrent_gradient_bound(const Variant& variant, std::size_t x, tenon_dtype dtype);

}  // namespace tenon::conformance
