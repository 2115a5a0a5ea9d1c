// SPDX-License-Identifier: Apache-2.0
// onnx/rules/positions.cpp - parts of tensors and indices.
#include "onnx/rules/positions.h"

#include <algorithm>

#include <tenon/graph.h>

#include "onnx/rules/dtypes.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {

Part::Part(const Shape& whole) : begins(whole.rank(), 0), sizes(whole.begin(), whole.end()), steps(whole.rank(), 1) {}

Value part_of(Value x, const Part& part) {
  const Shape shape(part.sizes);
  const bool forward = std::all_of(part.steps.begin(), part.steps.end(), [](std::int64_t step) { return step == 1; });
  if (shape == x.shape() && forward) return x;
  tenon_attributes_slice attributes{};
  std::fill(std::begin(attributes.steps), std::end(attributes.steps), 1);
  std::copy(part.begins.begin(), part.begins.end(), attributes.starts);
  std::copy(part.steps.begin(), part.steps.end(), attributes.steps);
  return x.graph().apply(TENON_OP_Slice, {x}, Attributes::of(attributes), {.name = {}, .shape = shape})[0];
}

Value with_part(Value x, const Part& part, Value elements) {
  const Shape shape = x.shape();
  // What surrounds the part along an axis is taken from x restricted to the part along the axes before.
  std::vector<Part> around;
  Part restricted(shape);
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    around.push_back(restricted);
    restricted.begins[i] = part.begins[i];
    restricted.sizes[i] = part.sizes[i];
  }
  Value y = elements;
  for (std::size_t i = shape.rank(); i-- > 0;) {
    const std::int64_t begin = part.begins[i], end = begin + part.sizes[i];
    std::vector<Value> pieces;
    const auto add_piece = [&](std::int64_t first, std::int64_t last) {
      if (first == last) return;
      around[i].begins[i] = first;
      around[i].sizes[i] = last - first;
      pieces.push_back(part_of(x, around[i]));
    };
    add_piece(0, begin);
    pieces.push_back(y);
    add_piece(end, shape[i]);
    if (pieces.size() > 1) y = ops::concat(pieces, static_cast<std::int64_t>(i));
  }
  return y;
}

std::int64_t product_of(const Node& node, const Shape& shape, std::size_t first, std::size_t last) {
  std::int64_t product = 1;
  for (std::size_t i = first; i < last; ++i) product = product_of(node, product, shape[i]);
  return product;
}

Value positions_along(Node& node, std::int64_t n, std::size_t axis, std::size_t rank, std::int64_t step) {
  check_listed(node, n);
  std::vector<std::int64_t> positions(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int64_t>(i) * step;
  std::vector<std::int64_t> sizes(rank, 1);
  sizes[axis] = n;
  return node.constant(Tensor::of(positions, Shape(sizes)));
}

Value from_begin(Node& node, Value indices, std::int64_t n) {
  const Value at = cast_to(indices, DType::i64);
  return ops::where(ops::less(at, node.scalar(DType::i64, 0)), ops::add(at, node.constant(Tensor::scalar(n))), at);
}

Value linear_indices(Node& node, Value indices, const std::vector<std::int64_t>& sizes) {
  const Shape shape = indices.shape();
  const Shape result(shape.dims().first(shape.rank() - 1));
  if (sizes.size() == 1) return ops::reshape(from_begin(node, indices, sizes[0]), result);
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size() - 1; i-- > 0;) strides[i] = product_of(node, strides[i + 1], sizes[i + 1]);
  const Value at = cast_to(indices, DType::i64);
  const Value from_end = ops::add(at, node.constant(Node::integers_tensor(sizes)));
  const Value resolved = ops::where(ops::less(at, node.scalar(DType::i64, 0)), from_end, at);
  return ops::reduce_sum(ops::mul(resolved, node.constant(Node::integers_tensor(strides))), {-1});
}

}  // namespace tenon::onnx
