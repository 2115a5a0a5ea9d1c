// SPDX-License-Identifier: Apache-2.0
// Products with weights that were packed ahead or are read once, at sizes that the oracle is too slow for: blocks of rows, panels that are
// not full, batches that are or are not one product, and vectors.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "openblas_conv.h"

namespace tenon::test {
namespace {

/// y = relu(a b + bias), where b (k, n) is a parameter.
struct PackedProduct {
  const char* label;
  Shape a;                ///< (..., m, k)
  std::int64_t n;         ///< columns of b
  bool is_packed = true;  ///< whether b is
  bool is_gemm = false;   ///< by Gemm with the transpose of b, else by MatMul
  bool has_gaps = false;  ///< rows of a are parts of rows of another tensor

  std::int64_t k() const { return a[a.rank() - 1]; }
  std::int64_t rows() const { return a.count() / k(); }
};

const PackedProduct products[] = {
    {"rows that do not fill a tile, panels that are not full", {37, 70}, 101},
    {"more panels than tasks need", {20, 33}, 400},
    {"few panels: blocks of rows", {300, 90}, 40},
    {"long sums, in pieces", {19, 1500}, 72},
    {"half a panel", {50, 64}, 16},
    {"less than half a panel", {50, 64}, 15, false},
    {"few rows", {3, 64}, 96, false},
    {"a batch that is one product", {3, 5, 7, 40}, 65},
    {"a batch of vectors", {12, 1, 40}, 65},
    {"a batch with gaps between the rows", {6, 9, 40}, 65, true, false, true},
    {"a batch of products with one row, with gaps", {8, 1, 40}, 65, true, false, true},
    {"one column of weights for each row of b", {60, 1}, 33},
    {"gemm: the transpose of b", {45, 77}, 130, true, true},
    {"gemm: few rows", {2, 77}, 130, false, true},
    {"gemm: one row, and sums and columns that are not multiples", {1, 1077}, 301, false, true},
    {"gemm: one row, short sums", {1, 133}, 301, false, true},
    {"gemm: one row of more bytes than half of L1", {1, 7003}, 150, false, true},
    {"one column", {301, 1077}, 1, false},
    {"gemm: rows with gaps", {45, 77}, 130, true, true, true},
};

struct Result {
  std::vector<float> y;
  std::uint64_t packed_bytes = 0;
};

Tensor operand(const Shape& shape, std::uint32_t seed, DType dtype) {
  return Tensor::of(numbers(shape, seed), shape).to(dtype);
}

Result run(const PackedProduct& p, std::uint32_t threads, DType dtype = DType::f32, const std::string& memory = "normal") {
  Config config = test_config("openblas:0");
  config.threads = threads;
  config.backends.options["openblas"]["memory"] = memory;
  const Context context(config);
  Graph graph;
  Shape wide(std::span(p.a.begin(), p.a.rank() - 1));
  wide.push_back(p.k() + (p.has_gaps ? 3 : 0));
  const auto last = static_cast<std::int64_t>(p.a.rank()) - 1;
  Value a = graph.input("a", dtype, wide);
  if (p.has_gaps) a = ops::slice(a, last, 2, 2 + p.k());
  const Value b = graph.parameter("b", dtype, p.is_gemm ? Shape{p.n, p.k()} : Shape{p.k(), p.n});
  const Value bias = graph.constant(operand({p.n}, 3, dtype));
  const Value product = p.is_gemm ? ops::gemm(a, b, bias, {.trans_b = true}) : ops::add(ops::matmul(a, b), bias);
  graph.output("y", ops::relu(product));
  Program program(context, graph);
  program.parameters()->set("b", operand(p.is_gemm ? Shape{p.n, p.k()} : Shape{p.k(), p.n}, 2, dtype));
  const std::vector<Tensor> results = program.run({operand(wide, 1, dtype)});
  return {floats(results[0].to_host().to(DType::f32)), program.memory()[0].packed_parameters_size_bytes()};
}

/// The number of elements of y that are not the sum of all terms.
std::int64_t count_wrong(const PackedProduct& p, const std::vector<float>& y) {
  const std::int64_t gap = p.has_gaps ? 3 : 0, first = p.has_gaps ? 2 : 0;
  const std::vector<float> a = numbers({p.rows(), p.k() + gap}, 1), b = numbers({p.k(), p.n}, 2), bias = numbers({p.n}, 3);
  std::int64_t wrong = 0;
  for (std::int64_t row = 0; row < p.rows(); ++row) {
    for (std::int64_t column = 0; column < p.n; ++column) {
      Sum sum;
      for (std::int64_t i = 0; i < p.k(); ++i) {
        sum.add(a[static_cast<std::size_t>(row * (p.k() + gap) + first + i)],
                b[static_cast<std::size_t>(p.is_gemm ? column * p.k() + i : i * p.n + column)]);
      }
      sum.add(bias[static_cast<std::size_t>(column)], 1);
      const double got = double{y[static_cast<std::size_t>(row * p.n + column)]};
      // a chain of k terms errs by at most k rounding errors of the sum of magnitudes
      const double bound = static_cast<double>(p.k() + 2) * 6e-8 * sum.magnitude;
      if (!(std::fabs(got - std::max(sum.value, 0.0)) <= bound)) ++wrong;
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("packed products: every term once, and weights are packed from four rows and half a panel on") {
  for (const PackedProduct& p : products) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      CAPTURE(p.label);
      CAPTURE(name_of(dtype));
      const Result result = run(p, 2, dtype);
      REQUIRE(static_cast<std::int64_t>(result.y.size()) == p.rows() * p.n);
      CHECK(count_wrong(p, result.y) == 0);
      const std::int64_t columns = 128 / size_of(dtype);  // of a panel
      const bool is_packed = p.is_packed || (dtype == DType::f64 && p.rows() >= 4 && p.n >= columns / 2);
      CHECK(result.packed_bytes == static_cast<std::uint64_t>(is_packed ? (p.n + columns - 1) / columns * 128 * p.k() : 0));
    }
  }
}

TEST_CASE("products with packed weights or with a vector: the same bits on any number of threads") {
  for (const PackedProduct& p : products) {
    if (!p.is_packed && p.rows() != 1 && p.n != 1) continue;
    CAPTURE(p.label);
    const Result one = run(p, 1);
    for (const std::uint32_t threads : {2u, 5u}) CHECK(same_bits(run(p, threads).y, one.y));
  }
}

TEST_CASE("packed products: memory small packs nothing that takes more bytes than the weights") {
  CHECK(run(products[0], 2, DType::f32, "small").packed_bytes == 0);
  const PackedProduct full{"full panels", {37, 70}, 96};
  CHECK(run(full, 2, DType::f32, "small").packed_bytes == 96 * 70 * sizeof(float));
}

}  // namespace tenon::test
