// SPDX-License-Identifier: Apache-2.0
// Products of bf16: instructions differ in the order of additions, so the choice among them must not depend on how threads divide the work.
#include <vector>

#include "testing.h"

namespace tenon::test {
namespace {

Tensor numbers(const Shape& shape) {
  return Tensor::of(uniform(shape.count(), 1), shape);
}

/// a b in bf16, as f32.
std::vector<float> product(const Shape& a, const Shape& b, int threads) {
  Config config = test_config("openblas:0");
  config.threads = threads;
  const Context context(config);
  Graph graph;
  const Value left = ops::cast(graph.input("a", DType::f32, a), DType::bf16),
              right = ops::cast(graph.input("b", DType::f32, b), DType::bf16);
  graph.output("y", ops::cast(ops::matmul(left, right), DType::f32));
  return Program(context, graph).run({numbers(a), numbers(b)})[0].to_host().to_vector<float>();
}

}  // namespace

TEST_CASE("products of bf16 have the same bits for any number of threads") {
  // Threads compute whole entries of a stack if there are as many, else they share each of them: one entry is whole on one thread only.
  for (const std::int64_t stack : {1, 3}) {
    for (const std::int64_t rows : {1, 2, 3, 40}) {
      for (const std::int64_t k : {7, 32, 333}) {
        CAPTURE(stack);
        CAPTURE(rows);
        CAPTURE(k);
        // Results are rounded to bf16: another order of additions changes one in thousands.
        const Shape a{stack, rows, k}, b{stack, k, rows <= 2 && k > 32 ? 40000 : 200};
        const std::vector<float> expected = product(a, b, 1);
        for (const int threads : {2, 5}) CHECK(product(a, b, threads) == expected);
      }
    }
  }
}

}  // namespace tenon::test
