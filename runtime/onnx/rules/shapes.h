// SPDX-License-Identifier: Apache-2.0
// onnx/rules/shapes.h - shapes that a model states, and constants that follow from shapes.
#pragma once

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <tenon/functions.h>
#include <tenon/shape.h>
#include <tenon/tensor.h>

#include "onnx/node.h"

namespace tenon::onnx {

/// Larger results that a small expression gives are computed when the program runs.
inline constexpr std::int64_t max_constant_bytes = 64 << 10;
/// Of results that are made element by element while the model is imported.
inline constexpr std::int64_t max_listed_elements = std::int64_t{1} << 26;

/// a * b of sizes. Errors: a product that no shape can have.
inline std::int64_t product_of(const Node& node, std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) node.fail(fmt::format("expected sizes whose product is below 2^63, got {} and {}", a, b));
  return product;
}

/// The shape of these sizes. Errors: more than eight, a negative one, more than 2^62 elements.
inline Shape shape_of(const Node& node, std::span<const std::int64_t> sizes) {
  if (sizes.size() > Shape::max_rank)
    node.unsupported(fmt::format("expected a shape of at most {} dimensions, got {}", Shape::max_rank, sizes.size()));
  const bool fits = std::all_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size >= 0; });
  if (!fits) node.fail(fmt::format("expected sizes of 0 or more, got ({})", fmt::join(sizes, ",")));
  return Shape(sizes);
}

/// The shape of operand i, which is not needed in the graph. Errors: it is a sequence.
inline Shape tensor_shape(const Node& node, std::size_t i) {
  if (node.operand(i).kind != Operand::Kind::tensor) node.fail(fmt::format("operand {}: expected a tensor, got a sequence", i));
  return node.shape(i);
}

/// Errors: a result of so many elements is not made while the model is imported.
inline void check_listed(const Node& node, std::int64_t elements) {
  if (elements > max_listed_elements)
    node.unsupported(fmt::format("expected a result of at most {} elements, got more", max_listed_elements));
}

/// i64: first, first + 1, ..., `count` of them.
inline Tensor counting_tensor(const Node& node, std::int64_t first, std::int64_t count) {
  check_listed(node, count);
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return Node::integers_tensor(values);
}

/// A tensor with the only element of `element` everywhere.
inline Operand filled(Node& node, const Tensor& element, const Shape& shape) {
  const Tensor scalar = element.contiguous().reshape({});
  if (shape.count() <= max_constant_bytes / size_of(scalar.dtype())) return scalar.expand(shape).contiguous();
  return ops::expand(node.constant(scalar), shape);
}

/// Which elements of a matrix `diagonals` selects, relative to diagonal k.
enum class Diagonals { up_to, only, from };

/// bool (rows, columns): whether column - row is at most k, equals k, or is at least k.
inline Operand diagonals(Node& node, std::int64_t rows, std::int64_t columns, Diagonals which, std::int64_t k) {
  // Diagonals beyond these have no elements either; sums with them do not overflow.
  k = std::clamp(k, -rows, columns);
  if (columns == 0 || rows <= max_constant_bytes / columns) {
    Tensor selected = Tensor::empty(DType::boolean, {rows, columns});
    bool* element = selected.data<bool>();
    for (std::int64_t row = 0; row < rows && columns > 0; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const std::int64_t diagonal = column - row;
        *element++ = which == Diagonals::up_to ? diagonal <= k : which == Diagonals::only ? diagonal == k : diagonal >= k;
      }
    }
    return selected;
  }
  const Value place = node.constant(counting_tensor(node, 0, columns));
  const Value bound = node.constant(counting_tensor(node, k, rows).reshape({rows, 1}));
  switch (which) {
    case Diagonals::up_to:
      return ops::less_equal(place, bound);
    case Diagonals::only:
      return ops::equal(place, bound);
    default:
      return ops::greater_equal(place, bound);
  }
}

}  // namespace tenon::onnx
