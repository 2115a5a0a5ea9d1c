// SPDX-License-Identifier: Apache-2.0
// ops/conv.cpp - convolution and its two gradients. Each of the three is bilinear in its operands, and its gradients are the other two.
#include "ops/window.h"

namespace tenon {
namespace graph {
namespace {

void infer_conv(Inference& at) {
  at.expect_inputs(2, 3);
  auto attributes = at.attributes.as<tenon_attributes_conv>();
  at.expect_same_dtype(0, 1);
  at.expect_floating(0);
  const Shape &x = at.shape(0), &w = at.shape(1);
  check_convolution(at, attributes, x, w, {at.str(0), at.str(1)});
  if (at.has(2)) {
    at.expect_same_dtype(0, 2);
    if (at.shape(2) != Shape{w[0]})
      at.fail(fmt::format("expected b of ({}), one for each filter of {}, got {}", w[0], at.str(1), at.str(2)));
  }
  at.attributes = Attributes::of(attributes);
  at.output(at.dtype(0), convolution_shape(at, attributes, x, w));
}

/// dy, w -> dx of the given shape
void infer_input_grad(Inference& at) {
  at.expect_inputs(2, 2);
  auto attributes = at.attributes.as<tenon_attributes_conv>();
  at.expect_same_dtype(0, 1);
  at.expect_floating(0);
  const Shape &dy = at.shape(0), &w = at.shape(1), &dx = expect_given_shape(at);
  check_convolution(at, attributes, dx, w, {"the given shape " + dx.str(), at.str(1)});
  if (convolution_shape(at, attributes, dx, w) != dy) {
    at.fail(fmt::format("an image of the given shape {} has a result of {}, expected that of {}", dx.str(),
                        convolution_shape(at, attributes, dx, w).str(), at.str(0)));
  }
  at.attributes = Attributes::of(attributes);
  at.output(at.dtype(0), dx);
}

/// dy, x -> dw of the given shape
void infer_weight_grad(Inference& at) {
  at.expect_inputs(2, 2);
  auto attributes = at.attributes.as<tenon_attributes_conv>();
  at.expect_same_dtype(0, 1);
  at.expect_floating(0);
  const Shape &dy = at.shape(0), &x = at.shape(1), &dw = expect_given_shape(at);
  check_convolution(at, attributes, x, dw, {at.str(1), "the given shape " + dw.str()});
  if (convolution_shape(at, attributes, x, dw) != dy) {
    at.fail(fmt::format("{} and filters of the given shape {} have a result of {}, expected that of {}", at.str(1), dw.str(),
                        convolution_shape(at, attributes, x, dw).str(), at.str(0)));
  }
  at.attributes = Attributes::of(attributes);
  at.output(at.dtype(0), dw);
}

std::vector<std::int64_t> all_but_channels(const Shape& image) {
  std::vector<std::int64_t> axes{0};
  for (std::size_t i = 2; i < image.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

void conv_gradient(Gradient& at) {
  const auto& attributes = at.attributes.as<tenon_attributes_conv>();
  const Value x = at.input(0), w = at.input(1);
  if (at.needs(0)) at.set(0, ops::conv_input_grad(at.dy(), w, x.shape(), attributes));
  if (at.needs(1)) at.set(1, ops::conv_weight_grad(at.dy(), x, w.shape(), attributes));
  if (at.needs(2)) at.set(2, ops::reduce_sum(at.dy(), all_but_channels(at.dy().shape())));
}

/// dx(dy, w): the gradient of dx takes the place of the image.
void input_grad_gradient(Gradient& at) {
  const Value dy = at.input(0), w = at.input(1);
  if (at.needs(0)) at.set(0, apply_op(TENON_OP_Conv, {at.dy(), w}, at.attributes));
  if (at.needs(1)) at.set(1, ops::conv_weight_grad(dy, at.dy(), w.shape(), at.attributes.as<tenon_attributes_conv>()));
}

/// dw(dy, x): the gradient of dw takes the place of the filters.
void weight_grad_gradient(Gradient& at) {
  const Value dy = at.input(0), x = at.input(1);
  if (at.needs(0)) at.set(0, apply_op(TENON_OP_Conv, {x, at.dy()}, at.attributes));
  if (at.needs(1)) at.set(1, ops::conv_input_grad(dy, at.dy(), x.shape(), at.attributes.as<tenon_attributes_conv>()));
}

std::int64_t conv_flops(const Graph& graph, const NodeInfo& node) {
  return convolution_flops(graph, node.outputs[0], node.inputs[1]);
}
std::int64_t input_grad_flops(const Graph& graph, const NodeInfo& node) {
  return convolution_flops(graph, node.inputs[0], node.inputs[1]);
}
std::int64_t weight_grad_flops(const Graph& graph, const NodeInfo& node) {
  return convolution_flops(graph, node.inputs[0], node.outputs[0]);
}

}  // namespace

extern const OpRules rules_conv, rules_conv_input_grad, rules_conv_weight_grad;
const OpRules rules_conv{
    "Cross-correlation: y[n, o, i...] = b[o] + sum over c, k... of x[n, c, i strides + k dilations - pads_before] w[o, c, k...], zeros "
    "outside of x. x (N, C, d...), w (O, C / groups, k...), b (O); each group of filters reads one group of channels.",
    infer_conv, PrecisionClass::low_precision, conv_flops, conv_gradient};
const OpRules rules_conv_input_grad{"dx of Conv for filters w and an image of the given shape. Linear in dy and in w.", infer_input_grad,
                                    PrecisionClass::low_precision, input_grad_flops, input_grad_gradient};
const OpRules rules_conv_weight_grad{"dw of Conv for an image x and filters of the given shape. Linear in dy and in x.", infer_weight_grad,
                                     PrecisionClass::low_precision, weight_grad_flops, weight_grad_gradient};

}  // namespace graph

namespace ops {

Value conv(Value x, Value w, Value b, const ConvOptions& options) {
  const Value image = options.channels_last ? to_channels_first(x) : x;
  const Shape filters = w.shape();
  const tenon_attributes_conv attributes =
      conv_attributes("conv", image.shape(), filters.dims().subspan(std::min<std::size_t>(2, filters.rank())), options);
  std::vector<Value> operands{image, w};
  if (b.present()) operands.push_back(b);
  const Value y = graph::apply_op(TENON_OP_Conv, operands, Attributes::of(attributes));
  return options.channels_last ? to_channels_last(y) : y;
}

Value conv1d(Value x, Value w, Value b, const ConvOptions& options) {
  const Shape shape = x.shape(), filters = w.shape();
  if (filters.rank() != 3 || (shape.rank() != 3 && shape.rank() != 4)) {
    throw Error(fmt::format("conv1d: expected x (N, C, L) or (N, C, 1, L) and w (O, C / groups, K), got '{}' {} and '{}' {}", x.name(),
                            shape.str(), w.name(), filters.str()));
  }
  if (shape.rank() == 3) return conv(x, w, b, options);
  const std::size_t height = options.channels_last ? 1 : 2;
  if (shape[height] != 1) {
    throw Error(
        fmt::format("conv1d: expected an x of four dimensions to have height 1, got {} of '{}' {}", shape[height], x.name(), shape.str()));
  }
  ConvOptions flat = options;
  if (!flat.strides.empty()) flat.strides.insert(flat.strides.begin(), 1);
  if (!flat.dilations.empty()) flat.dilations.insert(flat.dilations.begin(), 1);
  if (!flat.padding.empty()) flat.padding.insert(flat.padding.begin(), {0, 0});
  return conv(x, reshape(w, Shape{filters[0], filters[1], 1, filters[2]}), b, flat);
}

Value conv2d(Value x, Value w, Value b, const ConvOptions& options) {
  if (x.shape().rank() != 4 || w.shape().rank() != 4) {
    throw Error(fmt::format("conv2d: expected x (N, C, H, W) and w (O, C / groups, Kh, Kw), got '{}' {} and '{}' {}", x.name(),
                            x.shape().str(), w.name(), w.shape().str()));
  }
  return conv(x, w, b, options);
}

Value conv_input_grad(Value dy, Value w, const Shape& x_shape, const tenon_attributes_conv& attributes) {
  return graph::apply_op(TENON_OP_ConvInputGrad, {dy, w}, Attributes::of(attributes), {.name = {}, .shape = x_shape});
}

Value conv_weight_grad(Value dy, Value x, const Shape& w_shape, const tenon_attributes_conv& attributes) {
  return graph::apply_op(TENON_OP_ConvWeightGrad, {dy, x}, Attributes::of(attributes), {.name = {}, .shape = w_shape});
}

}  // namespace ops
}  // namespace tenon
