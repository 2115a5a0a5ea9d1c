// SPDX-License-Identifier: Apache-2.0
// ops/im2col.cpp - sliding windows as columns, and the reverse.
#include "ops/window.h"

#include "text/counted.h"

namespace tenon {
namespace graph {
namespace {

/// Checks the attributes for an image of this shape and returns the shape of its columns.
Shape columns_of(const Inference& at, tenon_attributes_window& attributes, const Shape& image) {
  if (attributes.ceil_mode != 0 || attributes.count_include_pad != 0) {
    at.fail(
        fmt::format("expected ceil_mode and count_include_pad of 0, got {} and {}", attributes.ceil_mode, attributes.count_include_pad));
  }
  const std::size_t dims = image.rank() - 2;
  normalise_spatial(at, attributes, dims);
  std::int64_t taps = 1, windows = 1;
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t count = expect_windows(at, window_axis(image, attributes.kernel[i], attributes, i), i);
    if (__builtin_mul_overflow(taps, attributes.kernel[i], &taps) || __builtin_mul_overflow(windows, count, &windows)) {
      at.fail(fmt::format("the number of windows or taps of image {} overflows 64 bits", image.str()));
    }
  }
  std::int64_t rows = 0;
  if (__builtin_mul_overflow(taps, image[1], &rows)) at.fail(fmt::format("the number of taps of image {} overflows 64 bits", image.str()));
  return {image[0], rows, windows};
}

void infer_im2col(Inference& at) {
  at.expect_inputs(1, 1);
  at.expect_number(0);
  auto attributes = at.attributes.as<tenon_attributes_window>();
  expect_image(at, 0);
  const Shape y = columns_of(at, attributes, at.shape(0));
  at.attributes = Attributes::of(attributes);
  at.output(at.dtype(0), y);
}

void infer_col2im(Inference& at) {
  at.expect_inputs(1, 1);
  at.expect_number(0);
  auto attributes = at.attributes.as<tenon_attributes_window>();
  const Shape& y = expect_given_shape(at);
  if (y.rank() < 3 || y.rank() > 2 + max_spatial) {
    at.fail(fmt::format("expected the shape of an image (N, C, L) or (N, C, H, W), got {}", y.str()));
  }
  const Shape columns = columns_of(at, attributes, y);
  if (columns != at.shape(0)) at.fail(fmt::format("expected columns {1} for an image {0}, got {2}", y.str(), columns.str(), at.str(0)));
  at.attributes = Attributes::of(attributes);
  at.output(at.dtype(0), y);
}

/// Each op is the transpose of the other.
template <tenon_op other>
void gradient(Gradient& at) {
  at.set(0, apply_op(other, {at.dy()}, at.attributes, {.name = {}, .shape = at.input(0).shape()}));
}

}  // namespace

extern const OpRules rules_im2col, rules_col2im;
const OpRules rules_im2col{
    "y[n, (c, k...), (i...)] = x[n, c, i strides + k dilations - pads_before], zeros outside of x: (N, C, d...) to (N, C * product of "
    "kernel, windows), row-major within the parentheses.",
    infer_im2col, PrecisionClass::inherits, per_element<0>, gradient<TENON_OP_Col2Im>};
const OpRules rules_col2im{
    "The transpose of Im2Col: each element of y, of the given shape, is the sum of the elements of x that Im2Col copies from it.",
    infer_col2im, PrecisionClass::inherits, per_element<1>, gradient<TENON_OP_Im2Col>};

}  // namespace graph

namespace ops {
namespace {

tenon_attributes_window window_attributes(const char* what, const Shape& image, const std::vector<std::int64_t>& kernel,
                                          const WindowOptions& options) {
  if (options.ceil_mode) throw Error(fmt::format("{} of x {}: ceil_mode is for pools", what, image.str()));
  tenon_attributes_window attributes{};
  set_spatial(attributes, what, image, kernel, options);
  return attributes;
}

}  // namespace

Value im2col(Value x, const std::vector<std::int64_t>& kernel, const WindowOptions& options) {
  const Value image = options.channels_last ? to_channels_first(x) : x;
  const Value y = graph::apply_op(TENON_OP_Im2Col, {image}, Attributes::of(window_attributes("im2col", image.shape(), kernel, options)));
  return options.channels_last ? to_channels_last(y) : y;
}

Value col2im(Value columns, const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& kernel, const WindowOptions& options) {
  const Value in = options.channels_last ? to_channels_first(columns) : columns;
  const Shape shape = in.shape();
  const auto fail = [&](const std::string& text) {
    throw Error(fmt::format("col2im of '{}' {}: {}", columns.name(), columns.shape().str(), text));
  };
  if (shape.rank() != 3) fail("expected columns (N, C * product of kernel, windows)");
  if (sizes.size() != kernel.size())
    fail(fmt::format("expected {}, one per dimension of the kernel, got {}", counted(kernel.size(), "size"), sizes.size()));
  std::int64_t taps = 1;
  for (const std::int64_t size : kernel) {
    if (size < 1 || __builtin_mul_overflow(taps, size, &taps))
      fail(fmt::format("expected a kernel of 1 or more in each dimension, got {}", size));
  }
  if (shape[1] % taps != 0) fail(fmt::format("a kernel of {} does not divide the {}", counted(taps, "element"), counted(shape[1], "row")));
  Shape image{shape[0], shape[1] / taps};
  for (const std::int64_t size : sizes) image.push_back(size);
  const Value y = graph::apply_op(TENON_OP_Col2Im, {in}, Attributes::of(window_attributes("col2im", image, kernel, options)),
                                  {.name = {}, .shape = image});
  return options.channels_last ? to_channels_last(y) : y;
}

}  // namespace ops
}  // namespace tenon
