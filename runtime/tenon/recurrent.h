// SPDX-License-Identifier: Apache-2.0
// tenon/recurrent.h - converts weights of recurrent layers between other libraries and rnn, gru and
// lstm of tenon/functions.h.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/api.h>
#include <tenon/tensor.h>

namespace tenon {

/// Kinds of recurrent layer, with 1, 3 and 4 gates.
enum class RecurrentCell : std::uint8_t { rnn, gru, lstm };

/// The order of a layer's gates in a library, as consecutive blocks of H rows. c is the cell
/// candidate (PyTorch's g); h is the state candidate (PyTorch's n).
///
///          onnx      torch     keras     cudnn
///   lstm   i o f c   i f c o   i f c o   i f c o
///   gru    z r h     r z h     z r h     r z h
enum class GateOrder : std::uint8_t { onnx, torch, keras, cudnn };

/// A copy of x in host memory with the gates along `axis` reordered. Errors: a size that is not
/// divisible by the number of gates.
TENON_API Tensor reorder_gates(const Tensor& x, std::int64_t axis, RecurrentCell cell,
                               GateOrder from, GateOrder to);

/// Weights for rnn, gru and lstm: w (D, G H, I), r (D, G H, H), b (D, 2 G H) or undefined, gates in
/// ONNX's order.
struct RecurrentWeights {
  Tensor w, r, b;
};

/// One direction of torch.nn.RNN, GRU or LSTM: weight_ih (G H, I), weight_hh (G H, H), biases (G H)
/// or undefined, gates in PyTorch's order. cuDNN's individual matrices and biases have the same
/// layout. GRU is computed with linear_before_reset.
struct TorchWeights {
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
};
/// One direction of keras.layers.SimpleRNN, GRU or LSTM: kernel (I, G H), recurrent_kernel (H, G
/// H), bias (G H), (2, G H) of a GRU with reset_after, or undefined; gates in Keras's order.
/// reset_after is linear_before_reset; a GRU with a bias (G H) is without it.
struct KerasWeights {
  Tensor kernel, recurrent_kernel, bias;
};

/// `directions` holds forward and backward, or one. Errors of all four: shapes and dtypes that do
/// not match, by name.
TENON_API RecurrentWeights from_torch(RecurrentCell cell,
                                      const std::vector<TorchWeights>& directions);
TENON_API RecurrentWeights from_keras(RecurrentCell cell,
                                      const std::vector<KerasWeights>& directions);
TENON_API std::vector<TorchWeights> to_torch(RecurrentCell cell, const RecurrentWeights& weights);
/// A GRU has a bias (2, G H), the others have the sum of both biases. Errors: biases to add that
/// are not f32 or f64.
TENON_API std::vector<KerasWeights> to_keras(RecurrentCell cell, const RecurrentWeights& weights);

}  // namespace tenon
