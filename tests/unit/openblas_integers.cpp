// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers at sizes that the oracle is too slow for: blocks of rows, panels that are not full, several threads.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "openblas_conv.h"

namespace tenon::test {
namespace {

/// Elements of u8 or i8, of all values.
Tensor bytes(const Shape& shape, DType dtype, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> elements(static_cast<std::size_t>(shape.count()));
  for (std::int32_t& element : elements) element = static_cast<std::int32_t>(random() % 256) - (dtype == DType::i8 ? 128 : 0);
  return Tensor::of(elements, shape).to(dtype);
}

/// The elements as integers.
std::vector<std::int64_t> integers(const Tensor& tensor) {
  return tensor.to(DType::i64).to_vector<std::int64_t>();
}

struct IntegerProduct {
  std::int64_t m, k, n;
  DType a, b;
  bool one_zero_point = false;  ///< of a, and none of b
};

const IntegerProduct products[] = {
    {512, 512, 75, DType::u8, DType::i8},      {33, 1001, 400, DType::i8, DType::u8},    {700, 66, 40, DType::u8, DType::u8},
    {1, 2050, 333, DType::i8, DType::i8},      {129, 64, 1, DType::u8, DType::i8},       {5, 7, 31, DType::i8, DType::u8},
    {129, 70, 75, DType::u8, DType::i8, true}, {40, 64, 48, DType::i8, DType::i8, true},
};

/// The zero points of the rows of a and of the columns of b.
std::vector<std::int64_t> a_zero_points(const IntegerProduct& p) {
  return integers(p.one_zero_point ? Tensor::full(p.a, {p.m}, 7) : bytes({p.m}, p.a, 3));
}
std::vector<std::int64_t> b_zero_points(const IntegerProduct& p) {
  return integers(p.one_zero_point ? Tensor::full(p.b, {p.n}, 0) : bytes({p.n}, p.b, 4));
}

/// y = (a - a_zero_point) (b - b_zero_point), b an input or a parameter, which is packed ahead.
std::vector<std::int64_t> run(const IntegerProduct& p, std::uint32_t threads, bool is_parameter) {
  Config config = test_config("openblas:0");
  config.threads = threads;
  const Context context(config);
  Graph graph;
  const Value a = graph.input("a", p.a, {p.m, p.k});
  const Value b = is_parameter ? graph.parameter("b", p.b, {p.k, p.n}) : graph.input("b", p.b, {p.k, p.n});
  graph.output("y", p.one_zero_point
                        ? ops::matmul_integer(a, b, graph.constant(Tensor::full(p.a, {}, 7)))
                        : ops::matmul_integer(a, b, graph.constant(bytes({p.m}, p.a, 3)), graph.constant(bytes({p.n}, p.b, 4))));
  Program program(context, graph);
  std::vector<Tensor> operands{bytes({p.m, p.k}, p.a, 1)};
  const Tensor weights = bytes({p.k, p.n}, p.b, 2);
  if (is_parameter) {
    program.parameters()->set("b", weights);
  } else {
    operands.push_back(weights);
  }
  return integers(program.run(operands)[0].to_host());
}

/// activation(dequantize(a b) + bias), quantised to `y` if that is a type of 8 bits; dequantised values are 0.01 times the sums.
struct EpilogueCase {
  std::int64_t m, k, n;
  DType a, y;
  float y_scale;
  Value (*activation)(Value);
};

/// The bits of the results; without fusion each op is a node.
std::vector<std::int64_t> run(const EpilogueCase& c, std::uint32_t threads, Fusion fusion) {
  Config config = test_config("openblas:0");
  config.threads = threads;
  config.fusion = fusion;
  const Context context(config);
  Graph graph;
  const auto scalar = [&](DType dtype, double value) { return graph.constant(Tensor::full(dtype, {}, value)); };
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float unusual[] = {inf, -inf, nan, 1e30F, -1e30F, 3e6F, -3e6F, -0.0F};
  std::vector<float> bias;
  for (std::int64_t j = 0; j < c.n; ++j) bias.push_back(j % 9 == 8 ? unusual[j / 9 % 8] : static_cast<float>(j % 5) / 4 - 0.5F);
  const Value a = graph.input("a", c.a, {c.m, c.k}), b = graph.constant(bytes({c.k, c.n}, DType::i8, 2));
  const Value sums = ops::matmul_integer(a, b, graph.constant(Tensor::full(c.a, {}, 7)));
  Value y = ops::dequantize_linear(sums, scalar(DType::f32, 0.01 / static_cast<double>(c.k))) + graph.constant(Tensor::of(bias, {c.n}));
  y = c.activation(y);
  const bool is_quantised = c.y != DType::f32;
  graph.output("y", is_quantised ? ops::quantize_linear(y, scalar(DType::f32, c.y_scale), scalar(c.y, 3), c.y) : y);
  Program program(context, graph);
  const Tensor result = program.run({bytes({c.m, c.k}, c.a, 1)})[0].to_host();
  if (is_quantised) return integers(result);
  std::vector<std::int64_t> bits;
  for (const float x : result.to_vector<float>()) bits.push_back(std::isnan(x) ? -1 : std::bit_cast<std::int32_t>(x));
  return bits;
}

struct QuantizedSum {
  DType a, b, y;
  float a_scale, b_scale, y_scale;
  int a_zero, b_zero, y_zero;
  bool relu;
};

/// quantize(relu(dequantize(a) + dequantize(b))) of all pairs of bytes and some more.
std::vector<std::int64_t> run(const QuantizedSum& s, const char* device, const char* isa = "auto") {
  Config config = test_config(device);
  config.backends.options["openblas"]["isa"] = isa;
  const Context context(config);
  Graph graph;
  constexpr std::int64_t count = 256 * 256 + 37;
  const auto scalar = [&](DType dtype, double value) { return graph.constant(Tensor::full(dtype, {}, value)); };
  const Value a = graph.input("a", s.a, {count}), b = graph.input("b", s.b, {count});
  Value sum = ops::dequantize_linear(a, scalar(DType::f32, s.a_scale), scalar(s.a, s.a_zero)) +
              ops::dequantize_linear(b, scalar(DType::f32, s.b_scale), scalar(s.b, s.b_zero));
  if (s.relu) sum = ops::relu(sum);
  graph.output("y", ops::quantize_linear(sum, scalar(DType::f32, s.y_scale), scalar(s.y, s.y_zero), s.y));
  Program program(context, graph);
  std::vector<std::int32_t> all_a, all_b;
  for (std::int64_t i = 0; i < count; ++i) {
    all_a.push_back(static_cast<std::int32_t>(i % 256) - (s.a == DType::i8 ? 128 : 0));
    all_b.push_back(static_cast<std::int32_t>(i / 256 % 256) - (s.b == DType::i8 ? 128 : 0));
  }
  return integers(program.run({Tensor::of(all_a, {count}).to(s.a), Tensor::of(all_b, {count}).to(s.b)})[0].to_host());
}

}  // namespace

TEST_CASE("integer products: exact sums on any number of threads, of weights that are packed ahead or not") {
  for (const IntegerProduct& p : products) {
    CAPTURE(p.m);
    CAPTURE(p.k);
    CAPTURE(p.n);
    const std::vector<std::int64_t> a = integers(bytes({p.m, p.k}, p.a, 1)), b = integers(bytes({p.k, p.n}, p.b, 2));
    const std::vector<std::int64_t> a_zero_point = a_zero_points(p), b_zero_point = b_zero_points(p);
    std::vector<std::int64_t> expected(static_cast<std::size_t>(p.m * p.n));
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t l = 0; l < p.k; ++l) {
        const std::int64_t left = a[static_cast<std::size_t>(i * p.k + l)] - a_zero_point[static_cast<std::size_t>(i)];
        for (std::int64_t j = 0; j < p.n; ++j) {
          const std::int64_t right = b[static_cast<std::size_t>(l * p.n + j)] - b_zero_point[static_cast<std::size_t>(j)];
          expected[static_cast<std::size_t>(i * p.n + j)] += left * right;
        }
      }
    }
    for (const std::uint32_t threads : {1u, 2u, 5u}) {
      CHECK(run(p, threads, false) == expected);
      CHECK(run(p, threads, true) == expected);
    }
  }
}

TEST_CASE(
    "integer products: dequantised, with bias and activation, and quantised, the same bits as node by node, on any number of threads") {
  constexpr auto identity = [](Value x) { return x; };
  constexpr auto relu = [](Value x) { return ops::relu(x); };
  constexpr auto gelu = [](Value x) { return ops::gelu(x); };
  constexpr EpilogueCase cases[] = {
      {129, 64, 75, DType::u8, DType::u8, 0.02F, gelu},     {129, 64, 75, DType::i8, DType::i8, 0.02F, gelu},
      {64, 384, 64, DType::u8, DType::f32, 1.0F, gelu},     {300, 100, 64, DType::u8, DType::u8, 0.03F, relu},
      {13, 100, 40, DType::i8, DType::i8, 0.01F, identity}, {40, 64, 16, DType::u8, DType::i8, 1e-32F, identity},
      {1, 64, 500, DType::u8, DType::u8, 0.25F, identity},  {257, 33, 130, DType::i8, DType::f32, 1.0F, identity},
      {40, 64, 72, DType::u8, DType::u8, 1e-9F, identity},
  };
  for (const EpilogueCase& c : cases) {
    CAPTURE(c.m);
    CAPTURE(c.k);
    CAPTURE(c.n);
    const std::vector<std::int64_t> expected = run(c, 1, Fusion::off);
    for (const std::uint32_t threads : {1u, 2u, 3u}) CHECK(run(c, threads, Fusion::full) == expected);
  }
}

TEST_CASE("integer convolutions: the same sums on any number of threads as products of the image's windows") {
  struct Shapes {
    std::int64_t channels, groups, kernel;
  };
  for (const Shapes& shapes : {Shapes{24, 1, 3}, {24, 2, 3}, {24, 24, 3}, {3, 1, 7}}) {
    const std::int64_t channels = shapes.channels, groups = shapes.groups, kernel = shapes.kernel;
    CAPTURE(channels);
    CAPTURE(groups);
    std::vector<std::vector<std::int64_t>> results;
    for (const std::uint32_t threads : {1u, 3u}) {
      Config config = test_config("openblas:0");
      config.threads = threads;
      const Context context(config);
      Graph graph;
      const Value x = graph.input("x", DType::u8, {2, channels, 40, 33}), zero_point = graph.constant(bytes({}, DType::u8, 2));
      const Tensor filters = bytes({24, channels / groups, kernel, kernel}, DType::i8, 3);
      ops::ConvOptions options;
      options.padding = {{kernel / 2, kernel / 2}, {kernel / 2, kernel / 2}};
      options.groups = groups;
      const Value y = ops::conv_integer(x, graph.constant(filters), zero_point, graph.constant(bytes({24}, DType::i8, 4)), options);
      graph.output("y", y);
      // As floats, which are exact here.
      const auto centred = [&](Value q, Value zero) { return ops::sub(ops::cast(q, DType::f64), ops::cast(zero, DType::f64)); };
      const Value w_zero_points = graph.constant(bytes({24}, DType::i8, 4).reshape({24, 1, 1, 1}));
      graph.output("floats", ops::conv(centred(x, zero_point), centred(graph.constant(filters), w_zero_points), {}, options));
      Program program(context, graph);
      const std::vector<Tensor> outputs = program.run({bytes({2, channels, 40, 33}, DType::u8, 1)});
      for (const Tensor& output : outputs) results.push_back(integers(output.to_host()));
    }
    for (std::size_t i = 1; i < results.size(); ++i) CHECK(results[i] == results[0]);
  }
}

TEST_CASE("requantised convolutions: the bytes of the sums on any number of threads, as QuantizeLinear makes them") {
  struct Shapes {
    std::int64_t channels, filters, kernel, stride, groups;
    double w_zero_point = 0;
    std::int64_t height = 21, width = 34;
  };
  for (const Shapes& s : {Shapes{64, 75, 1, 1, 1},
                          {96, 40, 3, 1, 1},
                          {128, 40, 3, 1, 1},
                          {64, 64, 3, 1, 1, 5},
                          {256, 128, 3, 1, 1},
                          {128, 320, 3, 1, 1, 0, 9, 14},  // few rows: lines
                          {64, 96, 3, 1, 1, 5, 30, 17},
                          {128, 320, 3, 1, 1, 0, 9, 13},  // lines too short, shared panels
                          {128, 520, 3, 1, 1, 0, 6, 14},  // too few rows for lines, shared panels
                          {128, 64, 5, 2, 2},
                          {64, 64, 3, 2, 1},
                          {3, 64, 7, 2, 1},
                          {3, 64, 7, 1, 1},
                          {3, 40, 3, 1, 1, 5},
                          {80, 80, 3, 1, 80},
                          {24, 24, 3, 1, 24},
                          {80, 80, 3, 2, 80},
                          {80, 80, 5, 1, 80},
                          {48, 96, 3, 1, 3}}) {
    for (const DType dtype : {DType::u8, DType::i8}) {
      CAPTURE(s.channels);
      CAPTURE(s.kernel);
      CAPTURE(s.stride);
      CAPTURE(s.groups);
      CAPTURE(s.width);
      CAPTURE(name_of(dtype));
      std::vector<std::vector<std::int64_t>> results;
      for (const std::uint32_t threads : {1u, 3u}) {
        Config config = test_config("openblas:0");
        config.threads = threads;
        const Context context(config);
        Graph graph;
        const Value x = graph.input("x", dtype, {2, s.channels, s.height, s.width}), zero_point = graph.constant(bytes({}, dtype, 2));
        const Value w = graph.constant(bytes({s.filters, s.channels / s.groups, s.kernel, s.kernel}, DType::i8, 3));
        ops::ConvOptions options;
        options.padding = {{s.kernel / 2, s.kernel / 2}, {s.kernel / 2, s.kernel / 2}};
        options.strides = {s.stride, s.stride};
        options.groups = s.groups;
        // Scales that are powers of two: the factor is exact, and the sums that follow are those of the fused node.
        const Value one = graph.constant(Tensor::scalar(1.0F)), w_zero_point = graph.constant(Tensor::full(DType::i8, {}, s.w_zero_point));
        const double terms = static_cast<double>(s.channels / s.groups * s.kernel * s.kernel);
        const auto y_scale = static_cast<float>(std::exp2(std::round(std::log2(std::sqrt(terms) * 120))));
        const Value by = graph.constant(Tensor::scalar(y_scale)), y_zero_point = graph.constant(Tensor::full(DType::u8, {}, 120));
        graph.output("y", ops::qlinear_conv({x, one, zero_point}, {w, one, w_zero_point}, by, y_zero_point, {}, options));
        const Value sums = ops::cast(ops::conv_integer(x, w, zero_point, w_zero_point, options), DType::f32);
        graph.output("expected", ops::quantize_linear(sums, by, y_zero_point));
        Program program(context, graph);
        for (const Tensor& output : program.run({bytes({2, s.channels, s.height, s.width}, dtype, 1)}))
          results.push_back(integers(output.to_host()));
      }
      for (std::size_t i = 1; i < results.size(); ++i) CHECK(results[i] == results[0]);
    }
  }
}

TEST_CASE("elementwise groups of one operand of 8 bits: the same results as for the oracle, from tables of 256") {
  for (const DType dtype : {DType::u8, DType::i8}) {
    for (const std::int64_t n : {5, 4095, 5000, 200001}) {
      CAPTURE(n);
      Graph graph;
      const Value x = graph.input("x", dtype, {n});
      const Value scale = graph.constant(Tensor::scalar(0.25F)), zero = graph.constant(Tensor::full(dtype, {}, 20));
      const Value floats = ops::dequantize_linear(x, scale, zero);
      const Value square = ops::mul(ops::relu(floats), floats);
      graph.output("bytes", ops::quantize_linear(square, graph.constant(Tensor::scalar(3.0F)), zero, dtype));
      const Value more = ops::dequantize_linear(graph.input("z", dtype, {n}), scale, zero);
      graph.output("floats", ops::neg(ops::relu(more)));
      std::vector<std::vector<double>> results;
      for (const char* device : {"openblas:0", "reference:0"}) {
        const Context context(test_config(device));
        Program program(context, graph);
        for (const Tensor& y : program.run({bytes({n}, dtype, 1), bytes({n}, dtype, 2)}))
          results.push_back(y.to_host().to(DType::f64).to_vector<double>());
      }
      CHECK(results[0] == results[2]);
      CHECK(results[1] == results[3]);
    }
  }
}

TEST_CASE("block quantised products: those of the expanded weights, with few and many rows, on any number of threads") {
  for (const std::int64_t rows : {1, 3, 8, 9, 70}) {
    for (const std::int64_t bits : {4, 8}) {
      CAPTURE(rows);
      CAPTURE(bits);
      const std::int64_t k = 2600, n = 130, block_size = 32, blocks = (k + block_size - 1) / block_size,
                         row_bytes = blocks * block_size * bits / 8;
      const Tensor packed = bytes({n, blocks, block_size * bits / 8}, DType::u8, 1),
                   zeros = bytes({n, (blocks * bits + 7) / 8}, DType::u8, 2);
      const std::vector<float> scales = numbers({n, blocks}, 3), a = numbers({rows, k}, 4), bias = numbers({n}, 5);
      const auto element = [&](const Tensor& list, std::int64_t row, std::int64_t row_size, std::int64_t i) {
        const auto* const from = list.data<std::uint8_t>() + row * row_size;
        return bits == 8 ? int{from[i]} : from[i / 2] >> (i % 2 * 4) & 15;
      };
      for (const std::uint32_t threads : {1u, 3u}) {
        Config config = test_config("openblas:0");
        config.threads = threads;
        const Context context(config);
        Graph graph;
        const ops::BlockQuantized w{graph.parameter("w", DType::u8, packed.shape()), graph.parameter("scales", DType::f32, {n, blocks}),
                                    graph.parameter("zeros", DType::u8, zeros.shape()), bits, block_size};
        graph.output("y", ops::matmul_nbits(graph.input("a", DType::f32, {rows, k}), w, graph.parameter("bias", DType::f32, {n})));
        Program program(context, graph);
        program.parameters()->set("w", packed);
        program.parameters()->set("scales", Tensor::of(scales, {n, blocks}));
        program.parameters()->set("zeros", zeros);
        program.parameters()->set("bias", Tensor::of(bias, {n}));
        const std::vector<float> y = program.run({Tensor::of(a, {rows, k})})[0].to_host().to_vector<float>();
        double worst = 0;  // in units of the rounding of one term of the largest sum
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t j = 0; j < n; ++j) {
            Sum sum;
            for (std::int64_t i = 0; i < k; ++i) {
              const int q = element(packed, j, row_bytes, i) - element(zeros, j, (blocks * bits + 7) / 8, i / block_size);
              sum.add(a[static_cast<std::size_t>(row * k + i)],
                      static_cast<float>(q) * scales[static_cast<std::size_t>(j * blocks + i / block_size)]);
            }
            const double expected = sum.value + double{bias[static_cast<std::size_t>(j)]};
            worst = std::max(worst, std::fabs(double{y[static_cast<std::size_t>(row * n + j)]} - expected) / (sum.magnitude * 0x1p-24));
          }
        }
        CHECK(worst < 60);  // about the root of k
      }
    }
  }
}

TEST_CASE("integer ops: the quantised sum of two quantised operands is that of the reference, for all pairs of bytes") {
  const float nan = std::nanf("");
  const QuantizedSum sums[] = {
      {DType::u8, DType::u8, DType::u8, 0.02F, 0.031F, 0.04F, 0, 117, 3, true},
      {DType::u8, DType::i8, DType::i8, 0.5F, 0.25F, 0.5F, 10, -3, 0, false},  // every second sum is a tie
      {DType::i8, DType::i8, DType::u8, 1.0F / 3, 1.0F / 7, 1.0F / 21, 0, 0, 128, false},
      {DType::u8, DType::u8, DType::u8, 0.0112233F, 0.0353535F, 0.0314159F, 128, 3, 119, true},
      {DType::i8, DType::u8, DType::i8, 0.0519F, 0.0271F, 0.0617F, -5, 200, 17, false},
      {DType::i8, DType::i8, DType::i8, 0.00719F, 0.0271F, 0.0271F, 0, 0, -128, true},
      {DType::u8, DType::u8, DType::i8, 0.1F, 0.3F, 0.2F, 1, 2, 3, false},      // ties before or after what is rounded
      {DType::u8, DType::u8, DType::u8, 30, 30, 0.9F, 255, 255, 200, false},    // few results that do not saturate
      {DType::u8, DType::u8, DType::u8, 1, 1e-3F, 1e-4F, 100, 100, 100, true},  // quotients beyond 2^13
      {DType::u8, DType::i8, DType::u8, 1e-30F, 1e-32F, 1e-31F, 1, 2, 3, false},
      {DType::u8, DType::u8, DType::u8, 1, 1, 1, 255, 255, 255, false},
      {DType::i8, DType::u8, DType::i8, 1e-3F, 2e-3F, 1e-9F, 1, 2, -5, true},  // quotients beyond 2^21
      {DType::u8, DType::u8, DType::u8, 1e30F, 1e30F, 1e29F, 0, 0, 0, false},
      {DType::u8, DType::u8, DType::u8, nan, 1, 1, 0, 0, 9, true},
      {DType::u8, DType::u8, DType::i8, 1, 1, 1e-40F, 4, 4, 9, false},
  };
  for (const QuantizedSum& sum : sums) {
    CAPTURE(sum.y_scale);
    const std::vector<std::int64_t> expected = run(sum, "reference:0");
    for (const char* isa : {"auto", "avx2", "sse4"}) {
      CAPTURE(isa);
      CHECK(run(sum, "openblas:0", isa) == expected);
    }
  }
}

}  // namespace tenon::test
