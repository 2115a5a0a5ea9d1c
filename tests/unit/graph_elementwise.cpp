// SPDX-License-Identifier: Apache-2.0
// Elementwise ops in a graph: accepted operands, and the ops of composites.
#include <doctest/doctest.h>

#include <limits>

#include "graph_testing.h"

using namespace tenon;
using namespace tenon::testing;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();

struct Bench {
  Graph g;
  int count = 0;
  Value value(DType dtype, const Shape& shape) { return g.input("v" + std::to_string(count++), dtype, shape); }
};
}  // namespace

TEST_CASE("elementwise: where broadcasts all three operands and expects a bool condition") {
  Bench t;
  const Value a = t.value(DType::f32, {3, 1}), b = t.value(DType::f32, {1, 4});
  CHECK(str(ops::where(t.value(DType::boolean, {2, 1, 1}), a, b)) == "f32(2,3,4)");
  CHECK(str(ops::where(t.value(DType::boolean, {}), t.value(DType::u8, {5}), t.value(DType::u8, {}))) == "u8(5)");
  CHECK(error_of([&] {
          ops::where(t.value(DType::f32, {3, 4}), a, b);
        }) == "where 'where_2': expected a condition of bool, got condition f32(3,4); use a comparison");
  CHECK(error_of([&] {
          ops::where(t.value(DType::boolean, {2}), t.value(DType::f32, {2}), t.value(DType::f64, {2}));
        }).find("expected equal dtypes, got a f32(2), b f64(2)") != std::string::npos);
  CHECK(error_of([&] {
          ops::where(t.value(DType::boolean, {5}), t.value(DType::f32, {5}), t.value(DType::f32, {4}));
        }).find("the shapes do not broadcast: condition bool(5), b f32(4)") != std::string::npos);
}

TEST_CASE("elementwise: logic expects bool, functions expect floats, and errors have the actual dtype") {
  Bench t;
  const Value f = t.value(DType::f32, {2}), i = t.value(DType::i32, {2});
  CHECK(error_of([&] { ops::logical_and(f, f); }) == "logical_and 'logical_and': expected bool, got a f32(2); use cast or a comparison");
  CHECK(error_of([&] { ops::logical_not(i); }).find("expected bool, got x i32(2)") != std::string::npos);
  CHECK(error_of([&] { ops::is_nan(i); }).find("expected a floating dtype, got x i32(2)") != std::string::npos);
  CHECK(error_of([&] { ops::exp(i); }).find("expected a floating dtype, got x i32(2)") != std::string::npos);
  CHECK(error_of([&] { ops::pow(i, i); }).find("expected a floating dtype, got a i32(2)") != std::string::npos);
  CHECK(error_of([&] { ops::abs(t.value(DType::boolean, {2})); }).find("expected numbers, got x bool(2)") != std::string::npos);
}

TEST_CASE("elementwise: attributes out of range are rejected with their values") {
  Bench t;
  const Value x = t.value(DType::f32, {2});
  CHECK(error_of([&] { ops::clip(x, std::numeric_limits<double>::quiet_NaN(), 1); }).find("low=nan high=1") != std::string::npos);
  CHECK(error_of([&] { ops::elu(x, inf); }).find("expected a finite alpha, got inf") != std::string::npos);
  CHECK(str(ops::clip(x, -inf, inf)) == "f32(2)");
}

TEST_CASE("elementwise: composites consist of listed ops") {
  Bench t;
  const Value x = t.value(DType::f32, {2});
  ops::square(x);
  ops::cube(x);
  ops::relu6(x);
  ops::not_equal(x, x);
  CHECK(ops_of(t.g) == "Mul Mul Mul Relu Clip Equal Not");
}

TEST_CASE("elementwise: every binary function accepts numbers as scalar constants") {
  Bench t;
  const Value x = t.value(DType::f64, {2, 3});
  for (const Value y :
       {ops::add(x, 2), ops::sub(x, 2), ops::mul(x, 2), ops::div(x, 2), ops::pow(x, 2), ops::maximum(x, 2), ops::minimum(x, 2)}) {
    CHECK(str(y) == "f64(2,3)");
  }
  CHECK(ops_of(t.g) == "Add Sub Mul Div Pow Max Min");
}
