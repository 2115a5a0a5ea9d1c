// SPDX-License-Identifier: Apache-2.0
// onnx/rules/positions.h - positions in tensors: parts along the axes, and indices that are computed in the graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tenon/functions.h>
#include <tenon/shape.h>

#include "onnx/node.h"

namespace tenon::onnx {

/// Elements begin, begin + step, ... of each axis of a tensor, `sizes` of them; all inside.
struct Part {
  std::vector<std::int64_t> begins, sizes, steps;

  /// All of a tensor.
  explicit Part(const Shape& whole);
};

/// The part of x; x itself if that is all of it.
Value part_of(Value x, const Part& part);
/// x with `elements` in the place of a part with steps of 1.
Value with_part(Value x, const Part& part, Value elements);

/// The product of the sizes [first, last) of a shape. Errors: more than a dimension can have, which another size of 0 may hide.
std::int64_t product_of(const Node& node, const Shape& shape, std::size_t first, std::size_t last);

/// i64 constant 0, step, 2 step, ... along `axis` of `rank` dimensions, n of them; the other dimensions have size 1.
Value positions_along(Node& node, std::int64_t n, std::size_t axis, std::size_t rank, std::int64_t step = 1);

/// Indices of an axis of n elements as i64, negative ones counted from the end.
Value from_begin(Node& node, Value indices, std::int64_t n);
/// The index of x[indices[..., 0], indices[..., 1], ...] among the elements of x (sizes), in row-major order, as i64 in the shape of
/// `indices` without its last dimension, which counts the sizes.
Value linear_indices(Node& node, Value indices, const std::vector<std::int64_t>& sizes);

}  // namespace tenon::onnx
