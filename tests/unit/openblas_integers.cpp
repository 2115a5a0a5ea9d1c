// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers at sizes that the oracle is too slow for: blocks of rows, panels that are not full, several threads.
#include <cstdint>
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
};

const IntegerProduct products[] = {
    {512, 512, 75, DType::u8, DType::i8}, {33, 1001, 400, DType::i8, DType::u8}, {700, 66, 40, DType::u8, DType::u8},
    {1, 2050, 333, DType::i8, DType::i8}, {129, 64, 1, DType::u8, DType::i8},    {5, 7, 31, DType::i8, DType::u8},
};

/// y = (a - a_zero_point) (b - b_zero_point), b an input or a parameter, which is packed ahead.
std::vector<std::int64_t> run(const IntegerProduct& p, std::uint32_t threads, bool is_parameter) {
  Config config = test_config("openblas:0");
  config.threads = threads;
  const Context context(config);
  Graph graph;
  const Value a = graph.input("a", p.a, {p.m, p.k});
  const Value b = is_parameter ? graph.parameter("b", p.b, {p.k, p.n}) : graph.input("b", p.b, {p.k, p.n});
  graph.output("y", ops::matmul_integer(a, b, graph.constant(bytes({p.m}, p.a, 3)), graph.constant(bytes({p.n}, p.b, 4))));
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

}  // namespace

TEST_CASE("integer products: exact sums on any number of threads, of weights that are packed ahead or not") {
  for (const IntegerProduct& p : products) {
    CAPTURE(p.m);
    CAPTURE(p.k);
    CAPTURE(p.n);
    const std::vector<std::int64_t> a = integers(bytes({p.m, p.k}, p.a, 1)), b = integers(bytes({p.k, p.n}, p.b, 2));
    const std::vector<std::int64_t> a_zero_point = integers(bytes({p.m}, p.a, 3)), b_zero_point = integers(bytes({p.n}, p.b, 4));
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

TEST_CASE("integer convolutions: the same sums on any number of threads as products of the image's windows") {
  for (const std::int64_t groups : {1, 2, 24}) {
    CAPTURE(groups);
    std::vector<std::vector<std::int64_t>> results;
    for (const std::uint32_t threads : {1u, 3u}) {
      Config config = test_config("openblas:0");
      config.threads = threads;
      const Context context(config);
      Graph graph;
      const Value x = graph.input("x", DType::u8, {2, 24, 40, 33}), zero_point = graph.constant(bytes({}, DType::u8, 2));
      const Tensor filters = bytes({24, 24 / groups, 3, 3}, DType::i8, 3);
      ops::ConvOptions options;
      options.padding = {{1, 1}, {1, 1}};
      options.groups = groups;
      const Value y = ops::conv_integer(x, graph.constant(filters), zero_point, graph.constant(bytes({24}, DType::i8, 4)), options);
      graph.output("y", y);
      // As floats, which are exact here.
      const auto centred = [&](Value q, Value zero) { return ops::sub(ops::cast(q, DType::f64), ops::cast(zero, DType::f64)); };
      const Value w_zero_points = graph.constant(bytes({24}, DType::i8, 4).reshape({24, 1, 1, 1}));
      graph.output("floats", ops::conv(centred(x, zero_point), centred(graph.constant(filters), w_zero_points), {}, options));
      Program program(context, graph);
      const std::vector<Tensor> outputs = program.run({bytes({2, 24, 40, 33}, DType::u8, 1)});
      for (const Tensor& output : outputs) results.push_back(integers(output.to_host()));
    }
    for (std::size_t i = 1; i < results.size(); ++i) CHECK(results[i] == results[0]);
  }
}

}  // namespace tenon::test
