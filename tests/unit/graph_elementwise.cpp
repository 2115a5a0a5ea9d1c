// SPDX-License-Identifier: Apache-2.0
// Elementwise ops in a graph: accepted operands, and the ops of composites.
#include <doctest/doctest.h>

#include <limits>

#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();

struct Bench {
  Graph g;
  int count = 0;
  Value value(DType dtype, const Shape& shape) { return g.input("v" + std::to_string(count++), dtype, shape); }
};
}  // namespace

TEST_CASE_FIXTURE(Bench, "elementwise: where broadcasts all three operands and expects a bool condition") {
  const Value a = value(DType::f32, {3, 1}), b = value(DType::f32, {1, 4});
  CHECK(str(ops::where(value(DType::boolean, {2, 1, 1}), a, b)) == "f32(2,3,4)");
  CHECK(str(ops::where(value(DType::boolean, {}), value(DType::u8, {5}), value(DType::u8, {}))) == "u8(5)");
  CHECK_ERROR("where 'where_2': expected a condition of bool, got condition f32(3,4); use a comparison",
              ops::where(value(DType::f32, {3, 4}), a, b));
  CHECK_ERROR_CONTAINS("expected equal dtypes, got a f32(2), b f64(2)",
                       ops::where(value(DType::boolean, {2}), value(DType::f32, {2}), value(DType::f64, {2})));
  CHECK_ERROR_CONTAINS("the shapes do not broadcast: condition bool(5), b f32(4)",
                       ops::where(value(DType::boolean, {5}), value(DType::f32, {5}), value(DType::f32, {4})));
}

TEST_CASE_FIXTURE(Bench, "elementwise: logic expects bool, functions expect floats, and errors have the actual dtype") {
  const Value f = value(DType::f32, {2}), i = value(DType::i32, {2});
  CHECK_ERROR("logical_and 'logical_and': expected bool, got a f32(2); use cast or a comparison", ops::logical_and(f, f));
  CHECK_ERROR_CONTAINS("expected bool, got x i32(2)", ops::logical_not(i));
  CHECK_ERROR_CONTAINS("expected a floating dtype, got x i32(2)", ops::is_nan(i));
  CHECK_ERROR_CONTAINS("expected a floating dtype, got x i32(2)", ops::exp(i));
  CHECK_ERROR_CONTAINS("expected a floating dtype, got a i32(2)", ops::pow(i, i));
  CHECK_ERROR_CONTAINS("expected numbers, got x bool(2)", ops::abs(value(DType::boolean, {2})));
}

TEST_CASE_FIXTURE(Bench, "elementwise: attributes out of range are rejected with their values") {
  const Value x = value(DType::f32, {2});
  CHECK_ERROR_CONTAINS("low=nan high=1", ops::clip(x, std::numeric_limits<double>::quiet_NaN(), 1));
  CHECK_ERROR_CONTAINS("expected a finite alpha, got inf", ops::elu(x, inf));
  CHECK(str(ops::clip(x, -inf, inf)) == "f32(2)");
}

TEST_CASE_FIXTURE(Bench, "elementwise: composites consist of listed ops") {
  const Value x = value(DType::f32, {2});
  ops::square(x);
  ops::cube(x);
  ops::relu6(x);
  ops::not_equal(x, x);
  CHECK(ops_of(g) == "Mul Mul Mul Relu Clip Equal Not");
}

TEST_CASE_FIXTURE(Bench, "elementwise: every binary function accepts numbers as scalar constants") {
  const Value x = value(DType::f64, {2, 3});
  for (const Value y :
       {ops::add(x, 2), ops::sub(x, 2), ops::mul(x, 2), ops::div(x, 2), ops::pow(x, 2), ops::maximum(x, 2), ops::minimum(x, 2)}) {
    CHECK(str(y) == "f64(2,3)");
  }
  CHECK(ops_of(g) == "Add Sub Mul Div Pow Max Min");
}
