// SPDX-License-Identifier: Apache-2.0
// Layers for samples of any shape.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "layers/rule.h"

namespace tenon::layers {
namespace {

Value build_flatten(LayerBuilder& builder, const Flatten&, Value x) {
  builder.features_last = false;
  return ops::flatten(x, 1);
}

void read_reshape(LayerKeys& keys, Reshape& out_layer) {
  const yaml::Value shape = keys.require_value("shape", "a list of sizes without the batch axis; one may be -1");
  for (const yaml::Value& size : shape.items("a list of sizes")) out_layer.shape.push_back(size.as_integer({-1, 1 << 30}));
  constexpr std::size_t max_dims = 7;  // the batch axis is the eighth
  if (out_layer.shape.size() > max_dims) {
    shape.fail(fmt::format("has {} dimensions; expected at most {}", out_layer.shape.size(), max_dims));
  }
}

Value build_reshape(LayerBuilder& builder, const Reshape& layer, Value x) {
  builder.features_last = false;
  std::vector<std::int64_t> dims{x.shape()[0]};
  dims.insert(dims.end(), layer.shape.begin(), layer.shape.end());
  return ops::reshape(x, std::span<const std::int64_t>(dims));
}

void read_permute(LayerKeys& keys, Permute& out_layer) {
  const char* const expected = "the axes of a sample in their new order, counted from 1, as in [2, 1]";
  for (const yaml::Value& axis : keys.require_value("order", expected).items(expected)) out_layer.order.push_back(axis.as_integer({1, 7}));
}

Value build_permute(LayerBuilder& builder, const Permute& layer, Value x) {
  const std::size_t axes = x.shape().rank() - 1;
  std::vector<std::int64_t> sorted = layer.order, order{0};
  std::ranges::sort(sorted);
  bool permutes = sorted.size() == axes;
  for (std::size_t i = 0; permutes && i < axes; ++i) permutes = sorted[i] == static_cast<std::int64_t>(i) + 1;
  if (!permutes) {
    builder.fail(fmt::format("expects each axis of a sample once, 1 to {} in any order for {}, got [{}]", axes, x.shape().str(),
                             fmt::join(layer.order, ", ")));
  }
  order.insert(order.end(), layer.order.begin(), layer.order.end());
  // The features are the last axis or the channels the first of a sample, whichever they were before.
  const std::int64_t features = builder.features_last ? static_cast<std::int64_t>(axes) : 1;
  builder.features_last = axes > 1 && layer.order.back() == features;
  return ops::transpose(x, order);
}

void read_dense(LayerKeys& keys, Dense& out_layer) {
  out_layer.units = keys.count("units");
  out_layer.activation = keys.activation();
  out_layer.weights = keys.weights();
  out_layer.tied = keys.get("tied", "");
}

/// The matrix (features, units) of the layer: its own, or the table of the embedding to which it is tied.
Value kernel_of(LayerBuilder& builder, const Dense& layer, std::int64_t features) {
  if (layer.tied.empty()) return builder.kernel(layer.weights, {features, layer.units}, {.fan_in = features});
  const Value table = builder.parameter_of(layer.tied, "embeddings", "tied");
  const Shape expected{layer.units, features};
  if (!(table.shape() == expected)) {
    builder.fail(
        fmt::format("is tied to '{}', expected a table {} (units, features), got {}", layer.tied, expected.str(), table.shape().str()));
  }
  return ops::transpose(table, {1, 0});
}

Value build_dense(LayerBuilder& builder, const Dense& layer, Value x) {
  const Shape shape = x.shape();
  const std::size_t rank = shape.rank();
  builder.expect_positive("units", layer.units);
  if (rank < 2) builder.fail(fmt::format("expects (batch, ..., features), got {}", shape.str()));
  const std::int64_t features = shape[rank - 1];
  if (features == 0) builder.fail(fmt::format("expects at least 1 feature, got {}", shape.str()));
  // Every position of a sample is a row of one matrix product.
  const std::int64_t rows = product(shape.dims().subspan(1, rank - 2));
  if (rank > 2) x = ops::reshape(x, {shape[0] * rows, features});
  Value y = ops::matmul(x, kernel_of(builder, layer, features));
  builder.row().flops = 2 * rows * features * layer.units;
  if (const Value bias = builder.bias(layer.weights, {layer.units}, {.fan_in = features}); bias.present()) {
    y = ops::add(y, bias);
    builder.row().flops += rows * layer.units;
  }
  builder.features_last = true;
  if (rank == 2) return builder.activate(layer.activation, y);
  Shape result = shape;
  result.set(rank - 1, layer.units);
  // A loss expects the scores before a softmax in the shape of the output.
  return builder.activate(layer.activation, ops::reshape(y, result));
}

void read_dropout(LayerKeys& keys, Dropout& out_layer) {
  out_layer.p = keys.require<double>("p", "a number in [0, 1)", {.lowest = 0, .highest = 1, .below_highest = true});
}

Value build_dropout(LayerBuilder& builder, const Dropout& layer, Value x) {
  return builder.dropout(x, layer.p);
}

void read_embedding(LayerKeys& keys, Embedding& out_layer) {
  out_layer.rows = keys.require<std::int64_t>("rows", "an integer of at least 1", {1, std::int64_t{1} << 40});
  out_layer.dim = keys.count("dim");
  keys.initializer("initializer", out_layer.initializer);
  out_layer.padding_index = keys.get_optional<std::int64_t>("padding_index", {0, std::int64_t{1} << 40});
}

Value build_embedding(LayerBuilder& builder, const Embedding& layer, Value x) {
  builder.expect_positive("rows", layer.rows);
  builder.expect_positive("dim", layer.dim);
  if (is_floating(x.dtype())) {
    builder.fail(fmt::format("expects integers, got {}{}; put the embedding first; only flatten may precede it", name_of(x.dtype()),
                             x.shape().str()));
  }
  if (x.dtype() != DType::i32 && x.dtype() != DType::i64) x = ops::cast(x, DType::i64);
  builder.features_last = true;
  if (layer.padding_index && x.shape().rank() == 2) {
    const Value padding = builder.graph().constant(x.dtype() == DType::i32 ? Tensor::scalar(static_cast<std::int32_t>(*layer.padding_index))
                                                                           : Tensor::scalar(*layer.padding_index));
    builder.set_real_steps(ops::not_equal(x, padding));
  }
  return ops::embedding(builder.parameter("embeddings", {layer.rows, layer.dim}, *layer.initializer, {.fan_in = layer.rows}), x);
}

}  // namespace

TENON_LAYER(Flatten, "flatten", nullptr, build_flatten);
TENON_LAYER(Reshape, "reshape", read_reshape, build_reshape);
TENON_LAYER(Permute, "permute", read_permute, build_permute);
TENON_LAYER(Dense, "dense", read_dense, build_dense, &Dense::units, step_by_step);
TENON_LAYER(Dropout, "dropout", read_dropout, build_dropout, nullptr, step_by_step);
TENON_LAYER(Embedding, "embedding", read_embedding, build_embedding, &Embedding::dim, step_by_step);

}  // namespace tenon::layers
