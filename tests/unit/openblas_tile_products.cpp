// SPDX-License-Identifier: Apache-2.0
// Products of matrices of which none was packed ahead, at the sizes that the backend multiplies by its own tiles: blocks of rows, panels
// that are not full, sums in pieces, transposes of both, addends and batches.
#include <cmath>
#include <cstring>
#include <optional>

#include "openblas_conv.h"

namespace tenon::test {
namespace {

struct TileProduct {
  const char* label;
  std::int64_t m, k, n;
  bool transposed = false;        ///< b is the transpose of its tensor
  std::optional<Shape> addend{};  ///< its shape, added by Gemm
  std::int64_t batch = 1;
  bool a_transposed = false;  ///< a is the transpose of its tensor
};

const TileProduct products[] = {
    {"rows that do not fill a tile, panels that are not full", 37, 150, 133},
    {"the fewest rows, columns and terms", 16, 128, 128},
    {"several blocks of rows", 400, 130, 160},
    {"sums in pieces", 45, 1700, 130},
    {"the transpose of b", 50, 70, 141, true},
    {"a matrix is added", 33, 140, 150, false, Shape{33, 150}},
    {"a row is added", 33, 140, 150, true, Shape{150}},
    {"a column is added", 33, 140, 150, false, Shape{33, 1}},
    {"a batch", 20, 129, 131, false, std::nullopt, 7},
    {"the transpose of a, a gradient of weights", 300, 100, 133, false, std::nullopt, 1, true},
    {"the transpose of a: sums in pieces", 45, 1700, 130, false, std::nullopt, 1, true},
    {"both transposes", 50, 70, 141, true, std::nullopt, 1, true},
    {"few columns of the transpose of a, and a row is added", 16, 64, 64, false, Shape{64}, 1, true},
    {"more rows than stay in L2", 900, 200, 96},
    {"one tile of rows: nothing is packed", 16, 300, 160},
    {"short sums: blocks of rows that pack b once", 850, 100, 150, false, std::nullopt, 1, true},
    {"a batch of blocks of rows", 420, 70, 101, false, std::nullopt, 3},
    {"sums in one piece of more rows than a call has", 260, 700, 140},
};

std::vector<float> run(const TileProduct& p, std::uint32_t threads, DType dtype, const std::string& isa = "auto") {
  Config config = test_config("openblas:0");
  config.threads = threads;
  config.backends.options["openblas"]["isa"] = isa;
  const Context context(config);
  Shape a_shape = p.a_transposed ? Shape{p.k, p.m} : Shape{p.m, p.k}, b_shape = p.transposed ? Shape{p.n, p.k} : Shape{p.k, p.n};
  if (p.batch > 1) {
    a_shape = Shape{p.batch, p.m, p.k};
    b_shape = Shape{p.batch, p.k, p.n};
  }
  Graph graph;
  const Value a = graph.input("a", dtype, a_shape);
  const Value b = graph.input("b", dtype, b_shape);
  std::vector<Tensor> inputs{Tensor::of(numbers(a_shape, 1), a_shape).to(dtype), Tensor::of(numbers(b_shape, 2), b_shape).to(dtype)};
  Value y;
  if (p.batch > 1) {
    y = ops::matmul(a, b);
  } else {
    Value c;
    if (p.addend) {
      c = graph.input("c", dtype, *p.addend);
      inputs.push_back(Tensor::of(numbers(*p.addend, 3), *p.addend).to(dtype));
    }
    y = ops::gemm(a, b, c, {.trans_a = p.a_transposed, .trans_b = p.transposed});
  }
  graph.output("y", ops::relu(y));
  return floats(Program(context, graph).run(inputs)[0].to_host().to(DType::f32));
}

/// The number of elements of y that are not the sum of all terms.
std::int64_t count_wrong(const TileProduct& p, const std::vector<float>& y) {
  const std::vector<float> a = numbers({p.batch * p.m, p.k}, 1), b = numbers({p.batch * p.k, p.n}, 2);
  const std::vector<float> c = p.addend ? numbers(*p.addend, 3) : std::vector<float>();
  const bool row = p.addend && p.addend->rank() == 1, column = p.addend && p.addend->rank() == 2 && (*p.addend)[1] == 1;
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < p.batch * p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      Sum sum;
      for (std::int64_t t = 0; t < p.k; ++t) {
        sum.add(a[static_cast<std::size_t>(p.a_transposed ? t * p.m + i : i * p.k + t)],
                b[static_cast<std::size_t>(p.transposed ? j * p.k + t : (i / p.m * p.k + t) * p.n + j)]);
      }
      if (p.addend) sum.add(c[static_cast<std::size_t>(row ? j : column ? i : i * p.n + j)], 1);
      // a chain of k terms errs by at most k rounding errors of the sum of magnitudes
      const double bound = static_cast<double>(p.k + 2) * 6e-8 * sum.magnitude;
      if (!(std::fabs(double{y[static_cast<std::size_t>(i * p.n + j)]} - std::max(sum.value, 0.0)) <= bound)) ++wrong;
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("tile products: every term once, with every instruction set") {
  for (const TileProduct& p : products) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const char* isa : {"auto", "avx2", "sse4"}) {
        CAPTURE(p.label);
        CAPTURE(name_of(dtype));
        CAPTURE(isa);
        const std::vector<float> y = run(p, 2, dtype, isa);
        REQUIRE(static_cast<std::int64_t>(y.size()) == p.batch * p.m * p.n);
        CHECK(count_wrong(p, y) == 0);
      }
    }
  }
}

TEST_CASE("tile products: the same bits on any number of threads") {
  for (const TileProduct& p : products) {
    CAPTURE(p.label);
    const std::vector<float> one = run(p, 1, DType::f32);
    for (const std::uint32_t threads : {2u, 5u, 70u}) {
      const std::vector<float> several = run(p, threads, DType::f32);
      REQUIRE(several.size() == one.size());
      CHECK(std::memcmp(several.data(), one.data(), one.size() * sizeof(float)) == 0);
    }
  }
}

}  // namespace tenon::test
