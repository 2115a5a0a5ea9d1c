// SPDX-License-Identifier: Apache-2.0
// onnx/rules/recurrent.h - RNN, GRU and LSTM nodes of any domain: operands as values, attributes from the node.
#pragma once

#include <cstdint>

#include <tenon/graph.h>

#include "onnx/node.h"

namespace tenon::onnx {

/// The cell of a recurrent node.
enum class RecurrentCell : std::uint8_t { rnn, gru, lstm };

/// Operands of a recurrent node other than sequence_lens, in the shapes of ONNX: D directions, G gates (RNN 1, GRU 3, LSTM 4).
struct RecurrentOperands {
  Value x;          ///< (T, B, I), or (B, T, I) with layout=1
  Value w;          ///< (D, G H, I)
  Value r;          ///< (D, G H, H)
  Value b;          ///< (D, 2 G H), may be absent
  Value h0, c0;     ///< (D, B, H), or (B, D, H) with layout=1; may be absent
  Value peepholes;  ///< LSTM: (D, 3 H) for i, o, f; may be absent
};

/// Sets the results Y, Y_h and, of an LSTM, Y_c of a node. The node gives the attributes (direction, activations, activation_alpha,
/// activation_beta, clip, input_forget, layout, linear_before_reset) and operand 4, sequence_lens, which may be absent.
/// Errors  operands that do not fit each other; an unknown activation; more steps than are unrolled where a cell has no kernel.
void apply_recurrent(Node& node, RecurrentCell cell, const RecurrentOperands& operands);

}  // namespace tenon::onnx
