// SPDX-License-Identifier: Apache-2.0
// Nets of dequantisation, ops of floats and quantisation become ops of integers.
#include <doctest/doctest.h>

#include <algorithm>

#include "graph/passes.h"
#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Net {
  Graph g;

  Value number(float value) { return g.constant(Tensor::scalar(value)); }
  Value zero(int value, DType dtype = DType::u8) { return g.constant(Tensor::full(dtype, {}, value)); }
  Value list(const std::vector<float>& values) { return g.constant(Tensor::of(values, {static_cast<std::int64_t>(values.size())})); }
  /// An input of bytes, dequantised.
  Value bytes(const char* name, const Shape& shape, float scale = 0.5F, int zero_point = 7) {
    return ops::dequantize_linear(g.input(name, DType::u8, shape), number(scale), zero(zero_point));
  }
  /// A parameter of i8 with a scale for each of the lines of dimension `axis`, dequantised.
  Value weights(const char* name, const Shape& shape, std::size_t axis) {
    std::vector<float> scales(static_cast<std::size_t>(shape[axis]), 0.25F);
    Shape spread{shape[axis]};
    for (std::size_t i = axis + 1; i < shape.rank(); ++i) spread.push_back(1);
    return ops::dequantize_linear(g.parameter(name, DType::i8, shape), ops::reshape(list(scales), spread));
  }
  /// A bias whose scale is 0.5 times that of `weights`.
  Value bias(std::int64_t filters, float scale = 0.125F) {
    return ops::dequantize_linear(g.parameter("bias", DType::i32, {filters}),
                                  list(std::vector<float>(static_cast<std::size_t>(filters), scale)));
  }
  Value quantized(Value x, float scale = 2, int zero_point = 0) { return ops::quantize_linear(x, number(scale), zero(zero_point)); }
  /// The ops that are left, but for those that depend on parameters and constants only.
  std::string left(Value y) {
    g.output("y", y);
    const Graph after = graph::hoist(graph::fuse_quantized(g)).main;
    std::vector<bool> fixed = graph::fixed_values(after, {});
    std::string text;
    for (const NodeInfo& node : after.nodes()) {
      const bool all = std::ranges::all_of(node.inputs, [&](ValueId v) { return v == no_id || fixed[v]; });
      for (const ValueId v : node.outputs) {
        if (v != no_id) fixed[v] = all;
      }
      if (!all) {
        text += (text.empty() ? "" : " ") + std::string(op_name(node.op));
      }
    }
    return text;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Net, "integer ops: a convolution between dequantisation and quantisation is one node") {
  const Value y = ops::conv(bytes("x", {2, 3, 8, 8}), weights("w", {4, 3, 3, 3}, 0), bias(4));
  CHECK(left(quantized(y)) == "QLinearConv");
}

TEST_CASE_FIXTURE(Net, "integer ops: an activation that saturation implies is not computed") {
  const Value y = ops::conv(bytes("x", {2, 3, 8, 8}), weights("w", {4, 3, 3, 3}, 0));
  CHECK(left(quantized(ops::relu(y))) == "QLinearConv");
}

TEST_CASE_FIXTURE(Net, "integer ops: bounds beyond the range of the result are saturation too") {
  const Value y = ops::conv(bytes("x", {2, 3, 8, 8}), weights("w", {4, 3, 3, 3}, 0));
  CHECK(left(quantized(ops::clip(y, 0, 6), 6.0F / 255)) == "QLinearConv");
}

TEST_CASE_FIXTURE(Net, "integer ops: an activation that changes results is computed") {
  const Value y = ops::conv(bytes("x", {2, 3, 8, 8}), weights("w", {4, 3, 3, 3}, 0));
  CHECK(left(quantized(ops::relu(y), 2, 3)) == "DequantizeLinear Conv Relu QuantizeLinear");
}

TEST_CASE_FIXTURE(Net, "integer ops: bounds within the range of the result are computed") {
  const Value y = ops::conv(bytes("x", {2, 3, 8, 8}), weights("w", {4, 3, 3, 3}, 0));
  CHECK(left(quantized(ops::clip(y, 0, 6), 7.0F / 255)) == "DequantizeLinear Conv Clip QuantizeLinear");
}

TEST_CASE_FIXTURE(Net, "integer ops: a convolution whose floats are read elsewhere is computed in floats") {
  const Value y = ops::conv(bytes("x", {2, 3, 8, 8}), weights("w", {4, 3, 3, 3}, 0));
  g.output("floats", y);
  CHECK(left(quantized(y)) == "DequantizeLinear Conv QuantizeLinear");
}

TEST_CASE_FIXTURE(Net, "integer ops: a bias in another scale is rounded to that of the products") {
  const Value y = ops::conv(bytes("x", {2, 3, 8, 8}), weights("w", {4, 3, 3, 3}, 0), bias(4, 0.25F));
  CHECK(left(quantized(y)) == "QLinearConv");
}

TEST_CASE_FIXTURE(Net, "integer ops: a bias of floats is rounded to the scale of the products") {
  const Value y = ops::conv(bytes("x", {2, 3, 8, 8}), weights("w", {4, 3, 3, 3}, 0), g.parameter("b", DType::f32, {4}));
  CHECK(left(quantized(y)) == "QLinearConv");
}

TEST_CASE_FIXTURE(Net, "integer ops: a bias that is computed in each run keeps the floats") {
  const Value b = ops::exp(g.input("b", DType::f32, {4}));
  const Value y = ops::conv(bytes("x", {2, 3, 8, 8}), weights("w", {4, 3, 3, 3}, 0), b);
  CHECK(left(quantized(y)) == "Exp DequantizeLinear Conv QuantizeLinear");
}

TEST_CASE_FIXTURE(Net, "integer ops: weights with a scale for each input channel keep the floats") {
  const Value y = ops::conv(bytes("x", {2, 4, 8, 8}), weights("w", {4, 4, 3, 3}, 1));
  CHECK(left(quantized(y)) == "DequantizeLinear Conv QuantizeLinear");
}

TEST_CASE_FIXTURE(Net, "integer ops: matrix products with a scale for each column") {
  CHECK(left(quantized(ops::matmul(bytes("x", {2, 5, 3}), weights("w", {3, 4}, 1)))) == "QLinearMatMul");
}

TEST_CASE_FIXTURE(Net, "integer ops: a product that nothing quantises is dequantised") {
  CHECK(left(ops::matmul(bytes("x", {2, 5, 3}), weights("w", {3, 4}, 1))) == "MatMulInteger DequantizeLinear");
}

TEST_CASE_FIXTURE(Net, "integer ops: Gemm with a bias is a convolution of images of one pixel") {
  const Value y = ops::gemm(bytes("x", {5, 3}), weights("w", {4, 3}, 0), bias(4), {.trans_b = true});
  CHECK(left(quantized(y)) == "Reshape QLinearConv Reshape");
}

TEST_CASE_FIXTURE(Net, "integer ops: Gemm that nothing quantises adds its bias to the sums") {
  const Value y = ops::gemm(bytes("x", {5, 3}), weights("w", {4, 3}, 0), bias(4), {.trans_b = true});
  CHECK(left(y) == "MatMulInteger Add DequantizeLinear");
}

TEST_CASE_FIXTURE(Net, "integer ops: what only moves elements moves the integers") {
  const Value x = bytes("x", {2, 3, 8, 8});
  const Value y = ops::transpose(ops::reshape(ops::max_pool(x, {2, 2}), Shape{2, 48}));
  CHECK(left(quantized(y, 0.5F, 7)) == "MaxPool Reshape Transpose");
}

TEST_CASE_FIXTURE(Net, "integer ops: movement before other parameters ends in floats") {
  const Value y = ops::transpose(bytes("x", {2, 3}));
  CHECK(left(quantized(y, 0.5F, 8)) == "Transpose DequantizeLinear QuantizeLinear");
}

TEST_CASE_FIXTURE(Net, "integer ops: parts with equal parameters are joined as integers") {
  const std::vector<Value> parts{bytes("a", {2, 3}), bytes("b", {2, 4})};
  CHECK(left(quantized(ops::concat(parts, 1), 0.5F, 7)) == "Concat");
}

TEST_CASE_FIXTURE(Net, "integer ops: parts with other parameters are joined as floats") {
  const std::vector<Value> parts{bytes("a", {2, 3}), bytes("b", {2, 4}, 0.25F)};
  CHECK(left(quantized(ops::concat(parts, 1), 0.5F, 7)) == "DequantizeLinear DequantizeLinear Concat QuantizeLinear");
}

TEST_CASE_FIXTURE(Net, "integer ops: a quantisation that stays an output of the graph is computed") {
  const Value q = quantized(bytes("x", {2, 3}), 0.5F, 7);
  CHECK(left(q) == "DequantizeLinear QuantizeLinear");
}

TEST_CASE("integer ops: the results are those of the floats, where these are exact") {
  // Scales are powers of two, so that every product and sum of floats is exact.
  Net net;
  const Value x = net.bytes("x", {1, 3, 9, 9}), w = net.weights("w", {5, 3, 3, 3}, 0);
  const Value hidden = ops::dequantize_linear(net.quantized(ops::relu(ops::conv(x, w, net.bias(5, 0.5F))), 8), net.number(8), net.zero(0));
  const Value flat = ops::reshape(ops::max_pool(hidden, {3, 3}), Shape{1, 5 * 4});
  const Value again = ops::dequantize_linear(ops::quantize_linear(flat, net.number(8), net.zero(0)), net.number(8), net.zero(0));
  net.g.output("y", ops::quantize_linear(ops::matmul(again, net.weights("v", {20, 6}, 1)), net.number(32), net.zero(128)));
  net.g.output("floats", ops::matmul(again, net.weights("u", {20, 6}, 1)));

  const auto fill = [](DType dtype, const Shape& shape, int seed) {
    std::vector<std::int32_t> elements(static_cast<std::size_t>(shape.count()));
    for (std::size_t i = 0; i < elements.size(); ++i)
      elements[i] = static_cast<int>(i * 37 + static_cast<std::size_t>(seed) * 11) % 120 - 40;
    return Tensor::of(elements, shape).to(dtype);
  };
  std::vector<std::vector<double>> results;
  for (const bool optimize : {false, true}) {
    const Context context(test_config("reference:0"));
    ProgramOptions options;
    options.optimize = optimize;
    Program program(context, net.g, options);
    program.parameters()->set("w", fill(DType::i8, {5, 3, 3, 3}, 1));
    program.parameters()->set("v", fill(DType::i8, {20, 6}, 2));
    program.parameters()->set("u", fill(DType::i8, {20, 6}, 3));
    program.parameters()->set("bias", fill(DType::i32, {5}, 4));
    const std::vector<Tensor> outputs = program.run({fill(DType::i32, {1, 3, 9, 9}, 5).to(DType::u8)});
    for (const Tensor& output : outputs) results.push_back(output.to_host().to(DType::f64).to_vector<double>());
  }
  CHECK(results[0] == results[2]);
  CHECK(results[1] == results[3]);
}
