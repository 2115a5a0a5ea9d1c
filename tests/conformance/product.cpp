// SPDX-License-Identifier: Apache-2.0
#include "product.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace tenon::conformance {
namespace {

Array numbers(tenon_dtype dtype, const Dims& shape, Random& random) {
  Array array(dtype, shape);
  for (std::int64_t i = 0; i < array.count(); ++i) array.set(i, random.uniform(-2, 2));
  return array;
}

Array numbers_from(tenon_dtype dtype, const Dims& shape) {
  Array array(dtype, shape);
  for (std::int64_t i = 0; i < array.count(); ++i) array.set(i, static_cast<double>(i % 9 - 4) / 4);
  return array;
}

struct Activation {
  tenon_op op;  ///< TENON_OP_NONE: none
  AttributeBytes attributes;
};

std::vector<Activation> activations() {
  tenon_attributes_clip bounds{};
  bounds.low = -0.75;
  bounds.high = 0.5;
  std::vector<Activation> list;
  for (const tenon_op op : {TENON_OP_NONE, TENON_OP_Relu, TENON_OP_Sigmoid, TENON_OP_Tanh, TENON_OP_Silu}) {
    list.push_back({op, {}});
  }
  list.push_back({TENON_OP_Clip, bounds});
  list.push_back({TENON_OP_Gelu, tenon_attributes_gelu{}});
  return list;
}

/// `reshapes`: residual and activation come after a reshape of the product, and before one back.
struct Epilogue {
  bool bias, residual, reshapes;
  Activation activation;
};

/// The layer as one graph.
Net net_of_layer(const Layer& layer, tenon_dtype dtype, const Array& a, const Array& b, const Array& bias, const Array& residual,
                 const Epilogue& epilogue) {
  const tenon_attributes_none none{sizeof none, 0};
  Net net;
  const std::uint32_t in_a = net.input(a), in_b = net.input(b, {}, TENON_VALUE_PARAMETER);
  std::uint32_t value = 0;
  Dims shape = layer.y;
  const auto next = [&](bool last) { return value = last ? net.output(dtype, shape) : net.internal(dtype, shape); };
  const bool activates = epilogue.activation.op != TENON_OP_NONE, reshapes = epilogue.reshapes;
  const OpLine& product = line_of(layer.op);
  std::vector<std::uint32_t> operands{in_a, in_b};
  if (layer.op == TENON_OP_Gemm) operands.push_back(layer.adds ? net.input(residual) : TENON_NO_INDEX);
  const std::uint32_t first = next(!epilogue.bias && !epilogue.residual && !activates && !reshapes);
  net.node(product.op, product.version, layer.attributes.data(), operands, {first});
  const auto apply = [&](tenon_op op, const void* attributes, std::vector<std::uint32_t> others, bool last) {
    others.insert(others.begin(), value);
    net.node(op, line_of(op).version, attributes, others, {next(last)});
  };
  const auto reshape = [&](const Dims& to, bool last) {
    shape = to;
    apply(TENON_OP_Reshape, &none, {}, last);
  };
  if (epilogue.bias)
    apply(TENON_OP_Add, &none, {net.input(bias, {}, TENON_VALUE_PARAMETER)}, !epilogue.residual && !activates && !reshapes);
  if (reshapes) reshape({count_of(layer.y)}, false);
  if (epilogue.residual) {
    Array addend(dtype, shape);
    for (std::int64_t i = 0; i < addend.count(); ++i) addend.set(i, residual.at(i));
    apply(TENON_OP_Add, &none, {net.input(addend)}, !activates && !reshapes);
  }
  if (activates) apply(epilogue.activation.op, epilogue.activation.attributes.data(), {}, !reshapes);
  if (reshapes) reshape(layer.y, true);
  return net;
}

/// relu_grad(activation(a b + bias), r), where some elements of r are negative, 0 or NaN.
Net net_of_relu_grad(const Layer& layer, tenon_dtype dtype, const Array& a, const Array& b, const Array& bias, bool with_bias,
                     tenon_op activation) {
  const tenon_attributes_none none{sizeof none, 0};
  const auto append = [&](Net& net, tenon_op op, std::vector<std::uint32_t> operands, std::uint32_t result) {
    net.node(op, line_of(op).version, &none, std::move(operands), {result});
    return result;
  };
  Array relu_result(dtype, layer.y);
  for (std::int64_t i = 0; i < relu_result.count(); ++i) {
    relu_result.set(i, i % 7 == 5 ? std::nan("") : static_cast<double>(i % 5 - 2));
  }
  Net net;
  std::vector<std::uint32_t> operands{net.input(a), net.input(b, {}, TENON_VALUE_PARAMETER)};
  if (layer.op == TENON_OP_Gemm) operands.push_back(layer.adds ? net.input(numbers_from(dtype, layer.y)) : TENON_NO_INDEX);
  std::uint32_t value = net.internal(dtype, layer.y);
  net.node(layer.op, line_of(layer.op).version, layer.attributes.data(), operands, {value});
  if (with_bias) value = append(net, TENON_OP_Add, {value, net.input(bias, {}, TENON_VALUE_PARAMETER)}, net.internal(dtype, layer.y));
  if (activation != TENON_OP_NONE) value = append(net, activation, {value}, net.internal(dtype, layer.y));
  append(net, TENON_OP_ReluGrad, {value, net.input(relu_result)}, net.output(dtype, layer.y));
  return net;
}

}  // namespace

Bound product_bound(std::int64_t k, tenon_dtype dtype) {
  const auto terms = static_cast<double>(k);
  return {2 * epsilon(dtype), epsilon(dtype) * std::sqrt(terms) * 4 * terms};
}

void check_fused_epilogue(CaseContext& context, tenon_dtype dtype, const Layer& layer) {
  Random random(seed_for(context.seed, fmt::format("fused epilogue {} {}", layer.op, dtype)));
  const Array a = numbers(dtype, layer.a, random), b = numbers(dtype, layer.b, random), bias = numbers(dtype, {layer.y.back()}, random),
              residual = numbers(dtype, layer.y, random);
  for (const unsigned parts : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const bool with_bias = (parts & 1) != 0, with_residual = (parts & 2) != 0, reshapes = (parts & 4) != 0;
    for (const Activation& activation : activations()) {
      const Net net = net_of_layer(layer, dtype, a, b, bias, residual, {with_bias, with_residual, reshapes, activation});
      const auto apart = context.run(net, {.fusion = TENON_FUSION_OFF});
      const auto together = context.run(net, {.fusion = TENON_FUSION_FULL});
      // The activations are no steeper than 1.2; theirs and the addends' own error is within 8 epsilon.
      Bound bound = product_bound(layer.k, dtype).times(2.4);
      bound.absolute += 8 * epsilon(dtype);
      const std::string wrong = compare(apart[0], together[0], bound);
      if (!wrong.empty()) {
        throw Failure(fmt::format("fused {} of a {}, b {}{}{}{}{}: {}, expected the result of separate kernels", line_of(layer.op).stem,
                                  str(layer.a), str(layer.b), with_bias ? " + bias" : "", reshapes ? " + reshape" : "",
                                  with_residual ? " + residual" : "",
                                  activation.op == TENON_OP_NONE ? "" : std::string(" + ") + line_of(activation.op).stem, wrong));
      }
    }
  }
  for (const bool with_bias : {false, true}) {
    for (const tenon_op activation : {TENON_OP_NONE, TENON_OP_Relu, TENON_OP_Tanh}) {
      const Net net = net_of_relu_grad(layer, dtype, a, b, bias, with_bias, activation);
      const auto apart = context.run(net, {.fusion = TENON_FUSION_OFF});
      const auto together = context.run(net, {.fusion = TENON_FUSION_FULL});
      Bound bound = product_bound(layer.k, dtype).times(2.4);
      bound.absolute += 8 * epsilon(dtype);
      const std::string wrong = compare(apart[0], together[0], bound);
      if (wrong.empty()) continue;
      throw Failure(fmt::format("{} of a {}, b {}{}{} with the gradient of a relu: {}, expected the result of separate kernels",
                                line_of(layer.op).stem, str(layer.a), str(layer.b), with_bias ? " + bias" : "",
                                activation == TENON_OP_NONE ? "" : std::string(" + ") + line_of(activation).stem, wrong));
    }
  }
}

}  // namespace tenon::conformance
