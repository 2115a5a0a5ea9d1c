// SPDX-License-Identifier: Apache-2.0
// Products in FP8 (`backends.options.cuda.fp8`): programs and training with them. GPUs that cannot compute in FP8 pass, too.
#include <cmath>
#include <string>
#include <vector>

#include "gpu_testing.h"

namespace tenon {
namespace {

using test::floats;
using test::gpu_config;
using test::largest_difference;

Config fp8_config(const std::string& fp8, const std::string& device = "cuda:0") {
  Config config = gpu_config(device);
  config.backends.options["cuda"] = {{"fp8", fp8}, {"products", "library"}};
  return config;
}

/// Integers of at most 4, which E4M3 has.
Tensor integers(const Shape& shape, int seed) {
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(seed)) * (i + 3) % 9) - 4;
  return Tensor::of<float>(values, shape);
}

enum class Weights { input, parameter, constant };

/// A product, with a function of both factors, on both devices.
template <class Multiply>
void compare(const Shape& a_shape, const Shape& b_shape, Weights weights, const Multiply& multiply, bool with_infinity = false) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    std::vector<std::vector<float>> results;
    for (const char* const device : {"reference:0", "cuda:0"}) {
      const Context context(fp8_config("all", device));
      Tensor a = integers(a_shape, 1);
      if (with_infinity) {
        std::vector<float> values = floats(a);
        values[5] = INFINITY;
        values[100] = NAN;
        a = Tensor::of<float>(values, a_shape);
      }
      const Tensor b = integers(b_shape, 2);
      Graph graph;
      const Value x = graph.input("a", DType::f32, a_shape);
      const Value w = weights == Weights::input       ? graph.input("b", DType::f32, b_shape)
                      : weights == Weights::parameter ? graph.parameter("b", DType::f32, b_shape)
                                                      : graph.constant(b);
      graph.output("y", ops::cast(multiply(ops::cast(x, dtype), ops::cast(w, dtype)), DType::f32));
      Program program(context, graph, {.device = device});
      if (weights == Weights::parameter) program.parameters()->set("b", b);
      std::vector<Tensor> inputs{a};
      if (weights == Weights::input) inputs.push_back(b);
      for (int run = 0; run < 3; ++run) results.push_back(floats(program.run(inputs)[0]));
      if (weights != Weights::parameter) continue;
      program.parameters()->set("b", integers(b_shape, 6));
      results.push_back(floats(program.run(inputs)[0]));
    }
    const std::size_t half = results.size() / 2;
    for (std::size_t i = 0; i < half; ++i) {
      CAPTURE(i);
      REQUIRE(results[i].size() == results[half + i].size());
      bool same = true;
      for (std::size_t e = 0; e < results[i].size(); ++e) {
        const float x = results[i][e], y = results[half + i][e];
        same = same && (x == y || (std::isnan(x) && std::isnan(y)));
      }
      CHECK(same);
    }
  }
}

TEST_CASE("gpu fp8: Gemm of numbers that E4M3 has is exact, for all transposes and kinds of weights") {
  for (int variant = 0; variant < 4; ++variant) {
    CAPTURE(variant);
    const bool trans_a = (variant & 1) != 0, trans_b = (variant & 2) != 0;
    for (const Weights weights : {Weights::input, Weights::parameter, Weights::constant}) {
      for (const bool with_infinity : {false, true}) {
        compare(
            trans_a ? Shape{32, 20} : Shape{20, 32}, trans_b ? Shape{48, 32} : Shape{32, 48}, weights,
            [&](Value a, Value b) { return ops::gemm(a, b, {}, {.trans_a = trans_a, .trans_b = trans_b, .alpha = 0.5}); }, with_infinity);
      }
    }
  }
}

TEST_CASE("gpu fp8: Gemm with addends, in FP8 or not by their shape, residuals and activations") {
  for (const Shape& addend : {Shape{48}, Shape{20, 1}, Shape{20, 48}, Shape{1, 1}}) {
    for (const double beta : {1.0, -2.0}) {
      CAPTURE(beta);
      compare({20, 32}, {32, 48}, Weights::parameter, [&](Value a, Value b) {
        const Value c = ops::cast(a.graph().constant(integers(addend, 3)), a.dtype());
        const Value residual = ops::cast(a.graph().constant(integers({20, 48}, 4)), a.dtype());
        return ops::relu(ops::gemm(a, b, c, {.beta = beta}) + residual);
      });
    }
  }
}

TEST_CASE("gpu fp8: weights that do not change are packed, as codes and elements") {
  for (const char* const fp8 : {"off", "all"}) {
    const Context context(fp8_config(fp8));
    Graph graph;
    const Value x = graph.input("x", DType::bf16, {4, 64, 128}), w = graph.parameter("w", DType::bf16, {128, 64});
    graph.output("y", ops::matmul(x, w));
    Program program(context, graph, {.device = "cuda:0"});
    const auto packed = program.memory()[0].packed_parameters;
    const DeviceInfo device = context.device("cuda:0").info();
    const bool has_fp8 = device.compute_major * 10 + device.compute_minor >= 89;
    REQUIRE(packed.size() == (has_fp8 && fp8 == std::string("all") ? 1 : 0));
    if (!packed.empty()) CHECK(packed.at("w") >= 3 * 128 * 64);
  }
}

TEST_CASE("gpu fp8: products with addends that are copied into the result's layout are not in FP8, and pack nothing") {
  const Context context(fp8_config("all"));
  for (const auto& [addend, factor] : {std::pair{Shape{64, 1}, 1.0}, std::pair{Shape{64}, -2.0}}) {
    const double beta = factor;
    CAPTURE(beta);
    Graph graph;
    const Value x = graph.input("x", DType::bf16, {64, 128}), w = graph.parameter("w", DType::bf16, {128, 64});
    graph.output("y", ops::gemm(x, w, graph.input("c", DType::bf16, addend), {.beta = beta}));
    CHECK(Program(context, graph, {.device = "cuda:0"}).memory()[0].packed_parameters.empty());
  }
}

TEST_CASE("gpu fp8: a square weight is packed once as it is, once transposed") {
  std::vector<std::vector<float>> results;
  for (const char* const device : {"reference:0", "cuda:0"}) {
    const Context context(fp8_config("all", device));
    Graph graph;
    const Value x = ops::cast(graph.input("x", DType::f32, {20, 32}), DType::bf16);
    const Value w = ops::cast(graph.constant(integers({32, 32}, 2)), DType::bf16);
    graph.output("plain", ops::cast(ops::gemm(x, w), DType::f32));
    graph.output("transposed", ops::cast(ops::gemm(x, w, {}, {.trans_b = true}), DType::f32));
    graph.output("matmul", ops::cast(ops::matmul(x, ops::transpose(w, {1, 0})), DType::f32));
    Program program(context, graph, {.device = device});
    for (const Tensor& y : program.run(std::vector{integers({20, 32}, 1)})) results.push_back(floats(y));
  }
  for (std::size_t i = 0; i < 3; ++i) CHECK(results[i] == results[3 + i]);
  CHECK(results[0] != results[1]);
  CHECK(results[1] == results[2]);
}

TEST_CASE("gpu fp8: MatMul of batches, of views and of vectors") {
  const auto plain = [](Value a, Value b) { return ops::matmul(a, b); };
  for (const Weights weights : {Weights::input, Weights::parameter}) {
    compare({2, 3, 20, 32}, {32, 16}, weights, plain);
    compare({3, 20, 32}, {3, 32, 16}, weights, plain);
    compare({1, 20, 32}, {3, 32, 16}, weights, plain);
    compare({2, 1, 20, 32}, {1, 3, 32, 16}, weights, plain);
    compare({2, 20, 32}, {16, 32}, weights, [](Value a, Value b) { return ops::relu(ops::matmul(a, ops::transpose(b, {1, 0}))); });
    compare({20, 32}, {2, 32, 16}, weights, [](Value a, Value b) { return ops::matmul(ops::expand(a, {2, 20, 32}), b); });
    compare({32, 160}, {32, 16}, weights, [](Value a, Value b) { return ops::matmul(ops::transpose(a, {1, 0}), b); });
    compare({48, 32}, {32}, weights, plain);
    compare({160}, {160, 16}, weights, plain);
    compare({20, 24}, {24, 16}, weights, plain);  // not in FP8: 24 is no multiple of 16
  }
}

TEST_CASE("gpu fp8: a net trains in mixed precision as without it, up to rounding") {
  const auto train = [](const char* fp8, Precision precision) {
    Config config = fp8_config(fp8);
    config.precision = precision;
    OptimizerDefinition adam;
    adam.kind = OptimizerDefinition::Kind::adam;
    adam.learning_rate = 0.002;
    return test::losses_of(config,
                           {layers::Flatten{}, layers::Dense{64, Activation::relu}, layers::Dense{32, Activation::relu},
                            layers::Dense{10, Activation::softmax}},
                           adam, 12, 16);
  };
  for (const Precision precision : {Precision::mixed_bfloat16, Precision::mixed_float16}) {
    const std::vector<double> wide = train("off", precision), fp8 = train("all", precision);
    MESSAGE("largest difference of the loss over 12 steps: ", largest_difference(wide, fp8));
    CHECK(largest_difference(wide, fp8) < 0.1);
    CHECK(train("all", precision) == fp8);
  }
  CHECK(train("off", Precision::float32) == train("all", Precision::float32));
}

}  // namespace
}  // namespace tenon
