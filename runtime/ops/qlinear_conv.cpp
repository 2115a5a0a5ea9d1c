// SPDX-License-Identifier: Apache-2.0
// ops/qlinear_conv.cpp - convolution of 8-bit integers, requantised.
#include <tenon/functions.h>

#include "graph/op.h"
#include "ops/integer_products.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(8, 9);
  const Shape y = integer_convolution_shape(at, 0, 3);
  const std::int64_t filters = at.shape(3)[0];
  expect_quantization(at, 1, 0);
  expect_quantization(at, 4, 3, filters, "filter");
  if (at.has(8) && (at.dtype(8) != DType::i32 || at.shape(8) != Shape{filters})) {
    at.fail(fmt::format("expected a bias i32({}), one element for each filter of {}, got {}", filters, at.str(3), at.str(8)));
  }
  at.output(expect_result_quantization(at, 6), y);
}

std::int64_t flops(const Graph& graph, const NodeInfo& node) {
  return convolution_flops(graph, node.outputs[0], node.inputs[3]);
}

}  // namespace

extern const OpRules rules_qlinear_conv;
const OpRules rules_qlinear_conv{
    "y = saturate(round(f32(sum + bias) factor) + y_zero_point), ties to even, of the sums of ConvInteger, with factor = x_scale w_scale / "
    "y_scale; products and quotient are rounded to f32, and NaN, as of 0 times an infinite factor, becomes 0. w_scale and w_zero_point are "
    "scalars or have one element for each filter.",
    infer, PrecisionClass::fp32, flops};

}  // namespace graph

namespace ops {

Value qlinear_conv(const Quantized& x, const Quantized& w, Value y_scale, Value y_zero_point, Value bias, const ConvOptions& options) {
  const Value image = options.channels_last ? to_channels_first(x.q) : x.q;
  const Shape filters = w.q.shape();
  const tenon_attributes_conv attributes =
      conv_attributes("qlinear_conv", image.shape(), filters.dims().subspan(std::min<std::size_t>(2, filters.rank())), options);
  std::vector<Value> operands{image, x.scale, x.zero_point, w.q, w.scale, w.zero_point, y_scale, y_zero_point};
  if (bias.present()) operands.push_back(bias);
  const Value y = graph::apply_op(TENON_OP_QLinearConv, operands, Attributes::of(attributes));
  return options.channels_last ? to_channels_last(y) : y;
}

}  // namespace ops
}  // namespace tenon
