// tenon/recurrent.h - weights of recurrent layers as other libraries keep them, and as rnn, gru and lstm of tenon/functions.h take them.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

/// The kinds of recurrent layer: 1, 3 and 4 gates.
enum class RecurrentCell : std::uint8_t { rnn, gru, lstm };

/// How a library orders the gates of a layer, as blocks of H rows one after the other. c is the candidate of the cell, PyTorch's g; h is
/// that of the state, PyTorch's n.
///
///          onnx      torch     keras     cudnn
///   lstm   i o f c   i f c o   i f c o   i f c o
///   gru    z r h     r z h     z r h     r z h
enum class GateOrder : std::uint8_t { onnx, torch, keras, cudnn };

/// A copy of x in host memory whose gates along `axis` are in another order. Errors: a size that the gates do not divide.
Tensor reorder_gates(const Tensor& x, std::int64_t axis, RecurrentCell cell, GateOrder from, GateOrder to);

/// What rnn, gru and lstm take: w (D, G H, I), r (D, G H, H), b (D, 2 G H) or undefined, gates in ONNX's order.
struct RecurrentWeights {
  Tensor w, r, b;
};

/// One direction of torch.nn.RNN, GRU or LSTM: weight_ih (G H, I), weight_hh (G H, H), biases (G H) or undefined, gates in PyTorch's order.
/// cuDNN's matrices and biases, taken one by one, are the same ones. GRU is computed with linear_before_reset.
struct TorchWeights {
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
};
/// One direction of keras.layers.SimpleRNN, GRU or LSTM: kernel (I, G H), recurrent_kernel (H, G H), bias (G H), (2, G H) of a GRU with
/// reset_after, or undefined; gates in Keras's order. reset_after is linear_before_reset; a GRU with a bias (G H) has neither.
struct KerasWeights {
  Tensor kernel, recurrent_kernel, bias;
};

/// Directions forward and backward, or one. Errors of all: shapes and dtypes that do not fit each other, by name.
RecurrentWeights from_torch(RecurrentCell cell, const std::vector<TorchWeights>& directions);
RecurrentWeights from_keras(RecurrentCell cell, const std::vector<KerasWeights>& directions);
std::vector<TorchWeights> to_torch(RecurrentCell cell, const RecurrentWeights& weights);
/// A GRU gets a bias (2, G H), the others the sum of the two. Errors: biases to add of other than f32 and f64.
std::vector<KerasWeights> to_keras(RecurrentCell cell, const RecurrentWeights& weights);

}  // namespace tenon
