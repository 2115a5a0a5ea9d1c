// SPDX-License-Identifier: Apache-2.0
// ops/integer_products.h - the shape rules that products and convolutions of 8-bit integers share.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

#include <tenon/error.h>

#include "graph/op.h"
#include "ops/window.h"

namespace tenon::graph {

/// Checks that operand i is of i8 or u8.
inline void expect_bytes(const Inference& at, std::size_t i) {
  if (at.dtype(i) != DType::i8 && at.dtype(i) != DType::u8) at.fail(fmt::format("expected integers of i8 or u8, got {}", at.str(i)));
}

/// Checks that operand i is a scalar.
inline void expect_scalar(const Inference& at, std::size_t i, const char* what) {
  if (at.shape(i).rank() != 0) at.fail(fmt::format("expected {} to be a scalar, got {}", what, at.str(i)));
}

/// Checks that operand i, a scale or a zero point, is a scalar or has one element for each of the `count` lines of operand `of`.
inline void expect_per_line(const Inference& at, std::size_t i, std::size_t of, std::int64_t count, const char* lines) {
  const Shape& shape = at.shape(i);
  if (shape.rank() != 0 && shape != Shape{count}) {
    at.fail(fmt::format("expected a scalar or ({}), one for each {} of {}, got {}", count, lines, at.str(of), at.str(i)));
  }
}

/// Checks operands scale and scale + 1 of a requantised product: the scale of f32 and the zero point, of the dtype of operand `of`. Both
/// are scalars, or may have one element for each of `count` lines unless `lines` is NULL.
inline void expect_quantization(const Inference& at, std::size_t scale, std::size_t of, std::int64_t count = 0,
                                const char* lines = nullptr) {
  if (at.dtype(scale) != DType::f32) at.fail(fmt::format("expected a scale of f32, got {}", at.str(scale)));
  at.expect_same_dtype(of, scale + 1);
  for (const std::size_t i : {scale, scale + 1}) {
    if (lines == nullptr) {
      expect_scalar(at, i, "scale and zero point");
    } else {
      expect_per_line(at, i, of, count, lines);
    }
  }
}

/// Checks the scale and the zero point of the result; returns its dtype, which is that of the zero point.
inline DType expect_result_quantization(const Inference& at, std::size_t scale) {
  expect_bytes(at, scale + 1);
  expect_quantization(at, scale, scale + 1);
  return at.dtype(scale + 1);
}

/// The shape of the product of the stacks of matrices of 8-bit integers a and b. Errors: other dtypes, shapes that do not match.
inline Shape integer_product_shape(const Inference& at, std::size_t left, std::size_t right) {
  for (const std::size_t i : {left, right}) {
    expect_bytes(at, i);
    if (at.shape(i).rank() == 0) at.fail(fmt::format("expected a vector, a matrix or a batch of them, got {}", at.str(i)));
  }
  const Shape &a = at.shape(left), &b = at.shape(right);
  if (a[a.rank() - 1] != b[b.rank() == 1 ? 0 : b.rank() - 2]) {
    at.fail(fmt::format("expected equal inner sizes, got {}, {}", at.str(left), at.str(right)));
  }
  const auto batch_of = [](const Shape& x) { return x.rank() < 2 ? Shape{} : Shape(x.dims().first(x.rank() - 2)); };
  Shape y;
  try {
    y = tenon::broadcast(batch_of(a), batch_of(b));
  } catch (const Error&) {
    at.fail(fmt::format("the batch dimensions do not broadcast: {}, {}", at.str(left), at.str(right)));
  }
  if (a.rank() > 1) y.push_back(a[a.rank() - 2]);
  if (b.rank() > 1) y.push_back(b[b.rank() - 1]);
  return y;
}

/// The shape of the convolution of the images x with the filters w, both 8-bit integers; checks and completes the attributes. Errors: other
/// dtypes, shapes and attributes that do not match.
inline Shape integer_convolution_shape(Inference& at, std::size_t image, std::size_t filters) {
  auto attributes = at.attributes.as<tenon_attributes_conv>();
  expect_bytes(at, image);
  expect_bytes(at, filters);
  const Shape &x = at.shape(image), &w = at.shape(filters);
  check_convolution(at, attributes, x, w, {at.str(image), at.str(filters)});
  at.attributes = Attributes::of(attributes);
  return convolution_shape(at, attributes, x, w);
}

}  // namespace tenon::graph
