// SPDX-License-Identifier: Apache-2.0
// The option `isa` of one instance of the backend, and the programs of another one: packed weights and scratch memory are as the program
// planned them, whatever instructions its kernels may use since.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "openblas_conv.h"

namespace tenon::test {
namespace {

/// A graph with one input of f32, and parameters whose elements depend on their shapes only.
struct Net {
  const char* name;
  Shape x;
  std::function<Value(Graph&, Value)> build;
  double tolerance;  ///< of a result in units of the largest one; 0: results are equal
};

Config config_of(const char* isa) {
  Config config = test_config("openblas:0");
  config.backends.options["openblas"]["isa"] = isa;
  return config;
}

Tensor floats(const Shape& shape, std::uint32_t seed) {
  return Tensor::of(numbers(shape, seed), shape);
}

Tensor bytes(const Shape& shape, DType dtype, int low, int high) {
  std::vector<std::int32_t> elements(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = low + static_cast<int>(i * 37 % static_cast<std::size_t>(high - low));
  return Tensor::of(elements, shape).to(dtype);
}

/// y = quantised convolution of quantised x, as floats.
Value quantized_conv(Graph& graph, Value x, const Shape& filters) {
  const auto scalar = [&](DType dtype, double value) { return graph.constant(Tensor::full(dtype, {}, value)); };
  const Value scale = scalar(DType::f32, 0.02), zero_point = scalar(DType::u8, 128);
  const Value q = ops::quantize_linear(x, scale, zero_point);
  const Value w = graph.constant(bytes(filters, DType::i8, -100, 100));
  ops::ConvOptions options;
  options.padding = {{filters[2] / 2, filters[2] / 2}, {filters[3] / 2, filters[3] / 2}};
  options.groups = x.shape()[1] / filters[1];
  const Value y_zero_point = scalar(DType::u8, 100);
  const Value y =
      ops::qlinear_conv({q, scale, zero_point}, {w, scale, scalar(DType::i8, 3)}, scalar(DType::f32, 1.0), y_zero_point, {}, options);
  return ops::cast(y, DType::f32);
}

/// y = x w of 4 bits.
Value quantized_matmul(Graph& graph, Value x) {
  const std::int64_t k = 256, n = 70, block_size = 32, blocks = k / block_size;
  const ops::BlockQuantized w{
      graph.constant(bytes({n, blocks, block_size / 2}, DType::u8, 0, 255)), graph.constant(floats({n, blocks}, 2)), {}, 4, block_size};
  return ops::matmul_nbits(x, w);
}

Value conv(Graph& graph, Value x, const Shape& filters, DType dtype) {
  ops::ConvOptions options;
  options.padding = {{filters[2] / 2, filters[2] / 2}, {filters[3] / 2, filters[3] / 2}};
  const Value y = ops::conv(ops::cast(x, dtype), graph.constant(floats(filters, 3).to(dtype)), {}, options);
  return ops::cast(y, DType::f32);
}

const Net nets[] = {
    {"a product with 20 rows and weights of 4 bits", {20, 256}, quantized_matmul, 1e-5},
    {"a quantised convolution of wide lines",
     {1, 64, 6, 40},
     [](Graph& g, Value x) {
       return quantized_conv(g, x, {40, 64, 3, 3});
     },
     0},
    {"a quantised depthwise convolution",
     {1, 80, 9, 9},
     [](Graph& g, Value x) {
       return quantized_conv(g, x, {80, 1, 3, 3});
     },
     0},
    {"a convolution of f32",
     {1, 64, 14, 14},
     [](Graph& g, Value x) {
       return conv(g, x, {64, 64, 3, 3}, DType::f32);
     },
     1e-5},
    {"a convolution of bf16",
     {1, 64, 14, 34},
     [](Graph& g, Value x) {
       return conv(g, x, {64, 64, 3, 3}, DType::bf16);
     },
     2e-2},
    {"a product of bf16",
     {65, 130},
     [](Graph& g, Value x) {
       return ops::cast(ops::matmul(ops::cast(x, DType::bf16), g.constant(floats({130, 65}, 4).to(DType::bf16))), DType::f32);
     },
     2e-2},
    {"a product of f32", {130, 130}, [](Graph&, Value x) { return ops::matmul(x, x); }, 1e-5},
};

}  // namespace

TEST_CASE("instruction sets: a program gives its results after another instance of the backend has changed the instructions") {
  for (const Net& net : nets) {
    for (const char* first : {"auto", "avx512", "avx2", "sse4"}) {
      for (const char* second : {"auto", "avx2", "sse4"}) {
        CAPTURE(net.name);
        CAPTURE(first);
        CAPTURE(second);
        const Context context(config_of(first));
        Graph graph;
        const Value x = graph.input("x", DType::f32, net.x);
        graph.output("y", net.build(graph, x));
        Program program(context, graph);
        const std::vector<Tensor> operands{floats(net.x, 1)};
        const std::vector<float> expected = program.run(operands)[0].to_host().to_vector<float>();
        const Context other(config_of(second));
        const std::vector<float> y = program.run(operands)[0].to_host().to_vector<float>();
        double largest = 0, error = 0;
        for (std::size_t i = 0; i < y.size(); ++i) {
          largest = std::max(largest, std::fabs(double{expected[i]}));
          error = std::max(error, std::fabs(double{y[i]} - expected[i]));
        }
        CHECK(error <= net.tolerance * largest);
      }
    }
  }
}

}  // namespace tenon::test
