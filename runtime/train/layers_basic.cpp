// SPDX-License-Identifier: Apache-2.0
// Layers for samples of any shape, and layers that contain other layers.
#include <fmt/core.h>

#include "train/layers.h"

namespace tenon::train {
namespace {

using Kind = LayerDefinition::Kind;

Value flatten(LayerBuild& build, const LayerDefinition&, Value x) {
  build.features_last = false;
  return ops::flatten(x, 1);
}

Value reshape(LayerBuild& build, const LayerDefinition& layer, Value x) {
  build.features_last = false;
  std::vector<std::int64_t> dims{x.shape()[0]};
  dims.insert(dims.end(), layer.shape.begin(), layer.shape.end());
  return ops::reshape(x, std::span<const std::int64_t>(dims));
}

Value dense(LayerBuild& build, const LayerDefinition& layer, Value x) {
  const Shape shape = x.shape();
  const std::size_t rank = shape.rank();
  if (rank < 2) layer.fail(fmt::format("'{}' expects (batch, ..., features), got {}", build.name(), shape.str()));
  const std::int64_t features = shape[rank - 1];
  if (features == 0) layer.fail(fmt::format("'{}' expects at least 1 feature, got {}", build.name(), shape.str()));
  // Every position of a sample is a row of one matrix product.
  const std::int64_t rows = product(shape.dims().subspan(1, rank - 2));
  if (rank > 2) x = ops::reshape(x, {shape[0] * rows, features});
  Value y = ops::matmul(x, build.kernel(layer, {features, layer.units}, {.fan_in = features}));
  build.row().flops = 2 * rows * features * layer.units;
  if (layer.bias) {
    y = ops::add(y, build.parameter(layer, "bias", {layer.units}, layer.bias_initializer, {.fan_in = features}));
    build.row().flops += rows * layer.units;
  }
  build.features_last = true;
  if (rank == 2) return build.activate(layer, y);
  Shape result = shape;
  result.set(rank - 1, layer.units);
  // A loss expects the scores before a softmax in the shape of the output.
  return build.activate(layer, ops::reshape(y, result));
}

Value dropout(LayerBuild& build, const LayerDefinition& layer, Value x) {
  return build.dropout(x, layer.dropout_p);
}

Value activation(LayerBuild& build, const LayerDefinition& layer, Value x) {
  return build.activate(layer, x);
}

Value embedding(LayerBuild& build, const LayerDefinition& layer, Value x) {
  if (is_floating(x.dtype())) {
    layer.fail(fmt::format("'{}' expects integers, got {}{}; put the embedding first; only flatten may precede it", build.name(),
                           name_of(x.dtype()), x.shape().str()));
  }
  if (x.dtype() != DType::i32 && x.dtype() != DType::i64) x = ops::cast(x, DType::i64);
  build.features_last = true;
  const Value table = build.parameter(layer, "embeddings", {layer.rows, layer.dim}, layer.embedding_initializer, {.fan_in = layer.rows});
  return ops::embedding(table, x);
}

Value residual(LayerBuild& build, const LayerDefinition& layer, Value x) {
  const std::vector<Value> sides = build.run_inside(layer.parts, x);
  if (!(sides[0].shape() == sides[1].shape())) {
    layer.fail(fmt::format("'{}' adds body {} and shortcut {}: expected the same shape", build.name(), sides[0].shape().str(),
                           sides[1].shape().str()));
  }
  build.row().flops = sides[0].shape().count() / std::max<std::int64_t>(1, sides[0].shape()[0]);
  return build.activate(layer, ops::add(sides[0], sides[1]));
}

Value branches(LayerBuild& build, const LayerDefinition& layer, Value x) {
  const std::vector<Value> parts = build.run_inside(layer.parts, x);
  const std::size_t axis = build.features_last ? parts[0].shape().rank() - 1 : 1;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    Shape expected = parts[0].shape();
    const Shape got = parts[i].shape();
    if (expected.rank() == got.rank() && axis < got.rank()) expected.set(axis, got[axis]);
    if (!(expected == got)) {
      layer.fail(
          fmt::format("'{}' concatenates its branches along axis {}: expected equal shapes except for that axis, got {} for branch 0 "
                      "and {} for branch {}",
                      build.name(), axis, parts[0].shape().str(), got.str(), i));
    }
  }
  return parts.size() == 1 ? parts[0] : ops::concat(parts, static_cast<std::int64_t>(axis));
}

const LayerRule rules[] = {
    {Kind::flatten, "flatten", "Flatten", flatten},
    {Kind::reshape, "reshape", "Reshape", reshape},
    {Kind::dense, "dense", "Dense", dense},
    {Kind::dropout, "dropout", "Dropout", dropout},
    {Kind::activation, "activation", "Activation", activation},
    {Kind::embedding, "embedding", "Embedding", embedding},
    {Kind::residual, "residual", "Residual", residual},
    {Kind::branches, "branches", "Branches", branches},
};

}  // namespace

std::span<const LayerRule> basic_layers() {
  return rules;
}

}  // namespace tenon::train
