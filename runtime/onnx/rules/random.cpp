// SPDX-License-Identifier: Apache-2.0
// onnx/rules/random.cpp - random tensors. Their elements are a function of key, stream and position (rules/random_key.h).
#include <fmt/core.h>

#include <cstdint>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules.h"
#include "onnx/rules/dtypes.h"
#include "onnx/rules/random_key.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

using Draw = Value (*)(Node& node, DType dtype, const Shape& shape);

Value uniform(Node& node, DType dtype, const Shape& shape) {
  return ops::random_uniform(random_key(node), dtype, shape, random_stream(node), node.number("low", 0), node.number("high", 1));
}

Value normal(Node& node, DType dtype, const Shape& shape) {
  return ops::random_normal(random_key(node), dtype, shape, random_stream(node), node.number("mean", 0), node.number("scale", 1));
}

/// Draws a tensor of the shape and dtype that attributes state.
template <Draw draw>
void random_tensor(Node& node) {
  if (!node.has("shape")) node.fail("expected the attribute 'shape', got none of this name");
  node.output(0, draw(node, node.element_type("dtype", DType::f32), shape_of(node, node.integers("shape"))));
}

/// Draws a tensor of the shape of the operand, whose elements are not read.
template <Draw draw>
void random_like(Node& node) {
  node.output(0, draw(node, node.element_type("dtype", node.dtype(0)), tensor_shape(node, 0)));
}

/// Draws and compares in at least f32: uniform numbers in f16 are too coarse for small probabilities.
DType drawing_dtype(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

void bernoulli(Node& node) {
  const Value p = node.input(0);
  const DType dtype = drawing_dtype(p.dtype());
  const Value u = ops::random_uniform(random_key(node), dtype, p.shape(), random_stream(node));
  node.output(0, cast_to(ops::less(u, cast_to(p, dtype)), node.element_type("dtype", p.dtype())));
}

/// Draws classes with probabilities softmax(x): the largest of x + g, with g = -log(-log u) (Gumbel), has this distribution.
void multinomial(Node& node) {
  const Value x = node.input(0);
  const Shape shape = x.shape();
  if (shape.rank() != 2) node.fail(fmt::format("expected log probabilities (batch, classes), got {}", shape.str()));
  const DType result = node.element_type("dtype", DType::i32);
  if (result != DType::i32 && result != DType::i64) node.fail(fmt::format("expected a dtype of i32 or i64, got {}", name_of(result)));
  const std::vector<std::int64_t> sizes = {shape[0], node.integer("sample_size", 1), shape[1]};
  const DType dtype = drawing_dtype(x.dtype());
  const Value u = ops::random_uniform(random_key(node), dtype, shape_of(node, sizes), random_stream(node));
  const Value gumbel = ops::neg(ops::log(ops::neg(ops::log(u))));
  const Value scores = ops::add(ops::reshape(cast_to(x, dtype), Shape{shape[0], 1, shape[1]}), gumbel);
  node.output(0, cast_to(ops::arg_max(scores, 2), result));
}

}  // namespace

const std::vector<Rule>& random_rules() {
  static const std::vector<Rule> rules = {
      {"Bernoulli", 15, bernoulli},
      {"Multinomial", 7, multinomial},
      {"RandomNormal", 1, random_tensor<normal>},
      {"RandomNormalLike", 1, random_like<normal>},
      {"RandomUniform", 1, random_tensor<uniform>},
      {"RandomUniformLike", 1, random_like<uniform>},
  };
  return rules;
}

}  // namespace tenon::onnx
