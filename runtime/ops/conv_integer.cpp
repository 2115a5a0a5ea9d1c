// SPDX-License-Identifier: Apache-2.0
// ops/conv_integer.cpp - convolution of 8-bit integers.
#include "ops/integer_products.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(2, 4);
  const Shape y = integer_convolution_shape(at, 0, 1);
  if (at.has(2)) {
    at.expect_same_dtype(0, 2);
    expect_scalar(at, 2, "x_zero_point");
  }
  if (at.has(3)) {
    at.expect_same_dtype(1, 3);
    expect_per_line(at, 3, 1, at.shape(1)[0], "filter");
  }
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
