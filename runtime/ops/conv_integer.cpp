// SPDX-License-Identifier: Apache-2.0
// ops/conv_integer.cpp - convolution of 8-bit integers.
#include "ops/window.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(2, 4);
  auto attributes = at.attributes.as<tenon_attributes_conv>();
  for (std::size_t i : {0u, 1u}) {
    if (at.dtype(i) != DType::i8 && at.dtype(i) != DType::u8) at.fail(fmt::format("expected integers of i8 or u8, got {}", at.str(i)));
  }
  const Shape &x = at.shape(0), &w = at.shape(1);
  const std::size_t dims = expect_image(at, 0);
  if (w.rank() != x.rank()) at.fail(fmt::format("expected a kernel of {} dimensions for {}, got {}", x.rank(), at.str(0), at.str(1)));
  if (w.count() == 0) at.fail(fmt::format("expected a kernel with elements, got {}", at.str(1)));
  for (std::size_t i = 1; i < x.rank(); ++i) {
    if (x[i] == 0) at.fail(fmt::format("expected an image with channels and elements, got {}", at.str(0)));
    if (i > 1 && w[i] > max_window) {
      at.fail(fmt::format("expected a kernel of at most {} in each dimension, got {}", max_window, at.str(1)));
    }
  }
  const std::int64_t groups = attributes.groups;
  if (groups < 1) at.fail(fmt::format("expected 1 or more groups, got {}", groups));
  if (x[1] % groups != 0) at.fail(fmt::format("{} groups do not divide the {} channels of {}", groups, x[1], at.str(0)));
  if (w[0] % groups != 0) at.fail(fmt::format("{} groups do not divide the {} filters of {}", groups, w[0], at.str(1)));
  if (w[1] != x[1] / groups) {
    at.fail(fmt::format("expected filters over {} channels, {} of {} in {} group{}, got {}", x[1] / groups, x[1], at.str(0), groups,
                        groups == 1 ? "" : "s", at.str(1)));
  }
  normalise_spatial(at, attributes, dims);
  if (at.has(2)) {
    at.expect_same_dtype(0, 2);
    if (at.shape(2).rank() != 0) at.fail(fmt::format("expected x_zero_point to be a scalar, got {}", at.str(2)));
  }
  if (at.has(3)) {
    at.expect_same_dtype(1, 3);
    if (at.shape(3).rank() != 0 && at.shape(3) != Shape{w[0]}) {
      at.fail(fmt::format("expected w_zero_point to be a scalar or ({}), one for each filter of {}, got {}", w[0], at.str(1), at.str(3)));
    }
  }
  Shape y{x[0], w[0]};
  for (std::size_t i = 0; i < dims; ++i) y.push_back(expect_windows(at, window_axis(x, w[i + 2], attributes, i), i));
  at.attributes = Attributes::of(attributes);
  at.output(DType::i32, y);
}

std::int64_t flops(const Graph& graph, const NodeInfo& node) {
  return convolution_flops(graph, node.outputs[0], node.inputs[1]);
}

}  // namespace

extern const OpRules rules_conv_integer;
const OpRules rules_conv_integer{
    "Conv of x - x_zero_point and w - w_zero_point as exact sums in i32, modulo 2^32; the padding is 0, as if x had x_zero_point there. "
    "w_zero_point is a scalar or has one element for each filter; absent ones are 0.",
    infer, PrecisionClass::fp32, flops};

}  // namespace graph

namespace ops {

Value conv_integer(Value x, Value w, Value x_zero_point, Value w_zero_point, const ConvOptions& options) {
  const Value image = options.channels_last ? to_channels_first(x) : x;
  const Shape filters = w.shape();
  const tenon_attributes_conv attributes =
      conv_attributes("conv_integer", image.shape(), filters.dims().subspan(std::min<std::size_t>(2, filters.rank())), options);
  std::vector<Value> operands{image, w};
  if (x_zero_point.present() || w_zero_point.present()) operands.push_back(x_zero_point);
  if (w_zero_point.present()) operands.push_back(w_zero_point);
  const Value y = graph::apply_op(TENON_OP_ConvInteger, operands, Attributes::of(attributes));
  return options.channels_last ? to_channels_last(y) : y;
}

}  // namespace ops
}  // namespace tenon
