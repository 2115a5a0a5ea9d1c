// SPDX-License-Identifier: Apache-2.0
#include <tenon/definition.h>

#include <tenon/error.h>

namespace tenon {

void LayerDefinition::fail(const std::string& reason) const {
  throw Error((where.empty() ? "layer " + (name.empty() ? std::string(name_of(kind)) : name) : where) + ": " + reason);
}

bool takes_alpha(Activation activation) {
  return activation == Activation::leaky_relu || activation == Activation::elu;
}

namespace layers {

LayerDefinition flatten() {
  return {};
}

LayerDefinition reshape(std::vector<std::int64_t> shape) {
  LayerDefinition layer;
  layer.kind = LayerDefinition::Kind::reshape;
  layer.shape = std::move(shape);
  return layer;
}

LayerDefinition dense(std::int64_t units, Activation activation, bool bias) {
  LayerDefinition layer;
  layer.kind = LayerDefinition::Kind::dense;
  layer.units = units;
  layer.activation = activation;
  layer.bias = bias;
  if (units < 1) layer.fail("units is " + std::to_string(units) + ", expected at least 1");
  return layer;
}

LayerDefinition dropout(double p) {
  LayerDefinition layer;
  layer.kind = LayerDefinition::Kind::dropout;
  layer.dropout_p = p;
  if (!(p >= 0 && p < 1)) layer.fail("p is " + std::to_string(p) + ", expected 0 <= p < 1");
  return layer;
}

LayerDefinition activation(Activation activation, std::optional<double> alpha) {
  LayerDefinition layer;
  layer.kind = LayerDefinition::Kind::activation;
  layer.activation = activation;
  layer.alpha = alpha;
  if (alpha && !takes_alpha(activation)) layer.fail(std::string(name_of(activation)) + " takes no alpha; leaky_relu and elu do");
  return layer;
}

LayerDefinition embedding(std::int64_t rows, std::int64_t dim) {
  LayerDefinition layer;
  layer.kind = LayerDefinition::Kind::embedding;
  layer.rows = rows;
  layer.dim = dim;
  if (rows < 1) layer.fail("rows is " + std::to_string(rows) + ", expected at least 1");
  if (dim < 1) layer.fail("dim is " + std::to_string(dim) + ", expected at least 1");
  return layer;
}

namespace {

using Kind = LayerDefinition::Kind;

LayerDefinition window(Kind kind, std::size_t dims, std::int64_t size, std::int64_t strides, std::int64_t padding) {
  LayerDefinition layer;
  layer.kind = kind;
  layer.window.size.assign(dims, size);
  if (strides != 0) layer.window.strides.assign(dims, strides);
  if (padding != 0) layer.window.padding.assign(dims, {padding, padding});
  return layer;
}

LayerDefinition convolution(Kind kind, std::size_t dims, std::int64_t filters, std::int64_t size, std::int64_t strides,
                            std::int64_t padding) {
  LayerDefinition layer = window(kind, dims, size, strides, padding);
  layer.units = filters;
  if (filters < 1) layer.fail("filters is " + std::to_string(filters) + ", expected at least 1");
  return layer;
}

LayerDefinition recurrent(Kind kind, std::int64_t units, bool return_sequences) {
  LayerDefinition layer;
  layer.kind = kind;
  layer.units = units;
  layer.sequence.return_sequences = return_sequences;
  if (units < 1) layer.fail("units is " + std::to_string(units) + ", expected at least 1");
  return layer;
}

LayerDefinition norm(Kind kind, double epsilon) {
  LayerDefinition layer;
  layer.kind = kind;
  layer.norm.epsilon = epsilon;
  return layer;
}

}  // namespace

LayerDefinition conv1d(std::int64_t filters, std::int64_t kernel_size, std::int64_t strides, std::int64_t padding) {
  return convolution(Kind::conv1d, 1, filters, kernel_size, strides, padding);
}
LayerDefinition conv2d(std::int64_t filters, std::int64_t kernel_size, std::int64_t strides, std::int64_t padding) {
  return convolution(Kind::conv2d, 2, filters, kernel_size, strides, padding);
}
LayerDefinition max_pool2d(std::int64_t pool_size, std::int64_t strides, std::int64_t padding) {
  return window(Kind::max_pool2d, 2, pool_size, strides, padding);
}
LayerDefinition average_pool2d(std::int64_t pool_size, std::int64_t strides, std::int64_t padding) {
  return window(Kind::average_pool2d, 2, pool_size, strides, padding);
}
LayerDefinition global_average_pool() {
  LayerDefinition layer;
  layer.kind = Kind::global_average_pool;
  return layer;
}
LayerDefinition batch_norm(double momentum, double epsilon) {
  LayerDefinition layer = norm(Kind::batch_norm, epsilon);
  layer.norm.momentum = momentum;
  return layer;
}
LayerDefinition layer_norm(double epsilon) {
  return norm(Kind::layer_norm, epsilon);
}
LayerDefinition lstm(std::int64_t units, bool return_sequences) {
  return recurrent(Kind::lstm, units, return_sequences);
}
LayerDefinition gru(std::int64_t units, bool return_sequences) {
  return recurrent(Kind::gru, units, return_sequences);
}
LayerDefinition rnn(std::int64_t units, bool return_sequences) {
  return recurrent(Kind::rnn, units, return_sequences);
}
LayerDefinition residual(std::vector<LayerDefinition> body, std::vector<LayerDefinition> shortcut, Activation activation) {
  LayerDefinition layer;
  layer.kind = Kind::residual;
  layer.parts = {std::move(body), std::move(shortcut)};
  layer.activation = activation;
  return layer;
}
LayerDefinition branches(std::vector<std::vector<LayerDefinition>> parts) {
  LayerDefinition layer;
  layer.kind = Kind::branches;
  layer.parts = std::move(parts);
  if (layer.parts.empty()) layer.fail("expected at least one branch");
  return layer;
}

}  // namespace layers
}  // namespace tenon
