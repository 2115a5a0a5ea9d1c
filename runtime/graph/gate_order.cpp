// SPDX-License-Identifier: Apache-2.0
// graph/gate_order.cpp - converts weights of recurrent layers to and from PyTorch and Keras.
#include <tenon/recurrent.h>

#include <fmt/format.h>

#include <array>

namespace tenon {
namespace {

std::int64_t gate_count(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
}
const char* name_of(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? "lstm" : cell == RecurrentCell::gru ? "gru" : "rnn";
}

/// The positions of the gates in `order`, listed in ONNX's order: LSTM i o f c, GRU z r h.
std::array<std::int64_t, 4> gate_positions(RecurrentCell cell, GateOrder order) {
  if (cell == RecurrentCell::lstm)
    return order == GateOrder::onnx ? std::array<std::int64_t, 4>{0, 1, 2, 3} : std::array<std::int64_t, 4>{0, 3, 1, 2};
  const bool reset_first = cell == RecurrentCell::gru && (order == GateOrder::torch || order == GateOrder::cudnn);
  return reset_first ? std::array<std::int64_t, 4>{1, 0, 2, 3} : std::array<std::int64_t, 4>{0, 1, 2, 3};
}

void expect_shape(const char* layer, const char* name, const Tensor& x, const Shape& shape, DType dtype) {
  if (x.defined() && x.shape() == shape && x.dtype() == dtype) return;
  throw Error(fmt::format("{}: expected {} {}{}, got {}", layer, name, tenon::name_of(dtype), shape.str(), x.defined() ? x.str() : "none"));
}

void expect_directions(const char* layer, std::size_t count) {
  if (count != 1 && count != 2) throw Error(fmt::format("{}: expected 1 or 2 directions, got {}", layer, count));
}

/// x[d] = part
void put(Tensor& x, std::size_t d, const Tensor& part) {
  Tensor place = x.select(0, static_cast<std::int64_t>(d));
  place.copy_from(part);
}
/// x[d, half] = part, for the two halves of a bias
void put_half(Tensor& b, std::size_t d, std::int64_t half, const Tensor& part) {
  Tensor place = b.select(0, static_cast<std::int64_t>(d)).narrow(0, half * part.count(), part.count());
  place.copy_from(part);
}
Tensor half_of(const Tensor& b, std::size_t d, std::int64_t half) {
  const Tensor own = b.select(0, static_cast<std::int64_t>(d));
  return own.narrow(0, half * (own.count() / 2), own.count() / 2);
}

struct Sizes {
  std::int64_t directions, rows, features, units;
};

/// The sizes of the weights, validated.
Sizes sizes_of(RecurrentCell cell, const RecurrentWeights& weights) {
  const char* const layer = name_of(cell);
  if (!weights.w.defined() || weights.w.shape().rank() != 3 || !weights.r.defined() || weights.r.shape().rank() != 3)
    throw Error(fmt::format("{}: expected w (D, G H, I) and r (D, G H, H)", layer));
  const Shape& r = weights.r.shape();
  const Sizes sizes{r[0], gate_count(cell) * r[2], weights.w.shape()[2], r[2]};
  expect_directions(layer, static_cast<std::size_t>(sizes.directions));
  expect_shape(layer, "w", weights.w, {sizes.directions, sizes.rows, sizes.features}, weights.w.dtype());
  expect_shape(layer, "r", weights.r, {sizes.directions, sizes.rows, sizes.units}, weights.w.dtype());
  if (weights.b.defined()) expect_shape(layer, "b", weights.b, {sizes.directions, 2 * sizes.rows}, weights.w.dtype());
  return sizes;
}

RecurrentWeights empty_weights(const Sizes& sizes, DType dtype, bool bias) {
  RecurrentWeights weights{Tensor::empty(dtype, {sizes.directions, sizes.rows, sizes.features}),
                           Tensor::empty(dtype, {sizes.directions, sizes.rows, sizes.units}),
                           {}};
  if (bias) weights.b = Tensor::zeros(dtype, {sizes.directions, 2 * sizes.rows});
  return weights;
}

template <class T>
Tensor sum_of(const Tensor& a, const Tensor& b) {
  std::vector<T> sum = a.to_vector<T>();
  const std::vector<T> other = b.to_vector<T>();
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
  return Tensor::of(sum, a.shape());
}
Tensor sum_of(const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::f64) return sum_of<double>(a, b);
  if (a.dtype() == DType::f32) return sum_of<float>(a, b);
  throw Error(fmt::format("to_keras: expected biases of f32 or f64, got {}", tenon::name_of(a.dtype())));
}

}  // namespace

Tensor reorder_gates(const Tensor& x, std::int64_t axis, RecurrentCell cell, GateOrder from, GateOrder to) {
  const std::int64_t rank = static_cast<std::int64_t>(x.shape().rank()), gates = gate_count(cell);
  if (axis < -rank || axis >= rank) throw Error(fmt::format("reorder_gates: axis {} is out of range for {}", axis, x.str()));
  if (axis < 0) axis += rank;
  const std::int64_t size = x.shape()[static_cast<std::size_t>(axis)];
  if (size % gates != 0)
    throw Error(
        fmt::format("reorder_gates: expected a multiple of the {} gates of {} on axis {}, got {}", gates, name_of(cell), axis, x.str()));
  const Tensor host = x.to_host();
  Tensor y = Tensor::empty(x.dtype(), x.shape());
  const auto source = gate_positions(cell, from), target = gate_positions(cell, to);
  const std::int64_t units = size / gates;
  for (std::size_t g = 0; g < static_cast<std::size_t>(gates); ++g) {
    Tensor place = y.narrow(axis, target[g] * units, units);
    place.copy_from(host.narrow(axis, source[g] * units, units));
  }
  return y;
}

RecurrentWeights from_torch(RecurrentCell cell, const std::vector<TorchWeights>& directions) {
  expect_directions("from_torch", directions.size());
  const TorchWeights& first = directions[0];
  if (!first.weight_ih.defined() || first.weight_ih.shape().rank() != 2 || !first.weight_hh.defined() ||
      first.weight_hh.shape().rank() != 2)
    throw Error("from_torch: expected weight_ih (G H, I) and weight_hh (G H, H)");
  const std::int64_t units = first.weight_hh.shape()[1];
  const Sizes sizes{static_cast<std::int64_t>(directions.size()), gate_count(cell) * units, first.weight_ih.shape()[1], units};
  const DType dtype = first.weight_ih.dtype();
  const bool bias = first.bias_ih.defined();
  RecurrentWeights weights = empty_weights(sizes, dtype, bias);
  const auto ordered = [&](const Tensor& x) { return reorder_gates(x, 0, cell, GateOrder::torch, GateOrder::onnx); };
  for (std::size_t d = 0; d < directions.size(); ++d) {
    const TorchWeights& from = directions[d];
    expect_shape("from_torch", "weight_ih", from.weight_ih, {sizes.rows, sizes.features}, dtype);
    expect_shape("from_torch", "weight_hh", from.weight_hh, {sizes.rows, units}, dtype);
    put(weights.w, d, ordered(from.weight_ih));
    put(weights.r, d, ordered(from.weight_hh));
    if (!bias) continue;
    expect_shape("from_torch", "bias_ih", from.bias_ih, {sizes.rows}, dtype);
    expect_shape("from_torch", "bias_hh", from.bias_hh, {sizes.rows}, dtype);
    put_half(weights.b, d, 0, ordered(from.bias_ih));
    put_half(weights.b, d, 1, ordered(from.bias_hh));
  }
  return weights;
}

std::vector<TorchWeights> to_torch(RecurrentCell cell, const RecurrentWeights& weights) {
  const Sizes sizes = sizes_of(cell, weights);
  const auto ordered = [&](const Tensor& x) { return reorder_gates(x, 0, cell, GateOrder::onnx, GateOrder::torch); };
  std::vector<TorchWeights> directions(static_cast<std::size_t>(sizes.directions));
  for (std::size_t d = 0; d < directions.size(); ++d) {
    directions[d].weight_ih = ordered(weights.w.select(0, static_cast<std::int64_t>(d)));
    directions[d].weight_hh = ordered(weights.r.select(0, static_cast<std::int64_t>(d)));
    if (!weights.b.defined()) continue;
    directions[d].bias_ih = ordered(half_of(weights.b, d, 0));
    directions[d].bias_hh = ordered(half_of(weights.b, d, 1));
  }
  return directions;
}

RecurrentWeights from_keras(RecurrentCell cell, const std::vector<KerasWeights>& directions) {
  expect_directions("from_keras", directions.size());
  const KerasWeights& first = directions[0];
  if (!first.kernel.defined() || first.kernel.shape().rank() != 2 || !first.recurrent_kernel.defined() ||
      first.recurrent_kernel.shape().rank() != 2)
    throw Error("from_keras: expected kernel (I, G H) and recurrent_kernel (H, G H)");
  const std::int64_t units = first.recurrent_kernel.shape()[0];
  const Sizes sizes{static_cast<std::int64_t>(directions.size()), gate_count(cell) * units, first.kernel.shape()[0], units};
  const DType dtype = first.kernel.dtype();
  const bool bias = first.bias.defined();
  RecurrentWeights weights = empty_weights(sizes, dtype, bias);
  const auto ordered = [&](const Tensor& x) { return reorder_gates(x, 0, cell, GateOrder::keras, GateOrder::onnx); };
  for (std::size_t d = 0; d < directions.size(); ++d) {
    const KerasWeights& from = directions[d];
    expect_shape("from_keras", "kernel", from.kernel, {sizes.features, sizes.rows}, dtype);
    expect_shape("from_keras", "recurrent_kernel", from.recurrent_kernel, {units, sizes.rows}, dtype);
    put(weights.w, d, ordered(from.kernel.transpose(0, 1)));
    put(weights.r, d, ordered(from.recurrent_kernel.transpose(0, 1)));
    if (!bias) continue;
    if (cell == RecurrentCell::gru && from.bias.shape().rank() == 2) {
      expect_shape("from_keras", "bias", from.bias, {2, sizes.rows}, dtype);
      for (const std::int64_t half : {0, 1}) put_half(weights.b, d, half, ordered(from.bias.select(0, half)));
    } else {
      expect_shape("from_keras", "bias", from.bias, {sizes.rows}, dtype);
      put_half(weights.b, d, 0, ordered(from.bias));
    }
  }
  return weights;
}

std::vector<KerasWeights> to_keras(RecurrentCell cell, const RecurrentWeights& weights) {
  const Sizes sizes = sizes_of(cell, weights);
  const auto ordered = [&](const Tensor& x) { return reorder_gates(x, 0, cell, GateOrder::onnx, GateOrder::keras); };
  std::vector<KerasWeights> directions(static_cast<std::size_t>(sizes.directions));
  for (std::size_t d = 0; d < directions.size(); ++d) {
    directions[d].kernel = ordered(weights.w.select(0, static_cast<std::int64_t>(d))).transpose(0, 1).contiguous();
    directions[d].recurrent_kernel = ordered(weights.r.select(0, static_cast<std::int64_t>(d))).transpose(0, 1).contiguous();
    if (!weights.b.defined()) continue;
    const Tensor halves[] = {ordered(half_of(weights.b, d, 0)), ordered(half_of(weights.b, d, 1))};
    if (cell != RecurrentCell::gru) {
      directions[d].bias = sum_of(halves[0], halves[1]);
      continue;
    }
    directions[d].bias = Tensor::empty(weights.w.dtype(), {2, sizes.rows});
    for (const std::size_t half : {std::size_t{0}, std::size_t{1}}) put(directions[d].bias, half, halves[half]);
  }
  return directions;
}

}  // namespace tenon
