// SPDX-License-Identifier: Apache-2.0
// tenon/shape.h - the dimensions of a tensor.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include <tenon/api.h>

namespace tenon {

/// Up to eight dimensions, outermost first, each >= 0; rank 0 is a scalar. A value type that does
/// not allocate.
/// Errors   more than eight dimensions, a negative one, or a product above 2^62.
/// Threads  those of a built-in type.
class TENON_API Shape {
 public:
  static constexpr std::size_t max_rank = 8;  ///< as TENON_MAX_RANK

  /// The shape of a scalar.
  Shape() = default;
  /// From sizes: Shape{2, 3}.
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  /// From sizes, one per dimension.
  explicit Shape(std::span<const std::int64_t> dims);

  /// Number of dimensions.
  std::size_t rank() const { return rank_; }
  /// Size of dimension i < rank().
  std::int64_t operator[](std::size_t i) const { return dims_[i]; }
  /// Changes one size.
  void set(std::size_t i, std::int64_t size);
  /// Adds an innermost dimension.
  void push_back(std::int64_t size);
  /// The shape of `count` elements of this shape: (count, sizes...).
  Shape with_batch(std::int64_t count) const;
  /// Number of elements: the product of the sizes, 1 for a scalar.
  std::int64_t count() const;
  const std::int64_t* data() const { return dims_.data(); }   ///< the sizes
  const std::int64_t* begin() const { return dims_.data(); }  ///< the first size
  /// past the last size
  const std::int64_t* end() const { return dims_.data() + rank_; }
  std::span<const std::int64_t> dims() const { return {dims_.data(), rank_}; }  ///< the sizes
  /// same rank and sizes
  bool operator==(const Shape& other) const;
  /// "(8,10)", "()".
  std::string str() const;

 private:
  std::array<std::int64_t, max_rank> dims_{};
  std::size_t rank_ = 0;
};

/// Row-major strides in elements.
TENON_API std::array<std::int64_t, Shape::max_rank> dense_strides(const Shape& shape);

/// The NumPy broadcast of two shapes. Errors: different sizes of which neither is 1; the text names
/// both.
TENON_API Shape broadcast(const Shape& a, const Shape& b);

/// Maps -rank <= axis < rank to 0 <= axis < rank. Errors: an axis out of range; the text starts
/// with `what`.
TENON_API std::int64_t resolve_axis(std::int64_t axis, std::size_t rank, const std::string& what);

}  // namespace tenon
