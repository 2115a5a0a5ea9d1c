// SPDX-License-Identifier: Apache-2.0
// Elementwise ops on the reference backend: derivatives where finite differences fail, results of composites.
#include <cmath>
#include <functional>
#include <limits>

#include "ops_testing.h"

namespace tenon::test {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

std::vector<float> result_of(const std::function<Value(Value)>& f, const std::vector<float>& x) {
  const Tensor input = Tensor::of<float>(x, {static_cast<std::int64_t>(x.size())});
  return floats(results_of({input}, [&](const auto& v) { return std::vector{f(v[0])}; })[0]);
}

/// d sum(f(x)) / dx
std::vector<float> derivative_of(const std::function<Value(Value)>& f, const std::vector<float>& x) {
  return result_of([&](Value input) { return gradients(ops::reduce_sum(f(input)), {input})[0]; }, x);
}

TEST_CASE("elementwise: derivatives at kinks are as documented") {
  CHECK(derivative_of([](Value x) { return ops::relu(x); }, {-1, 0, 1}) == std::vector<float>{0, 0, 1});
  CHECK(derivative_of([](Value x) { return ops::relu6(x); }, {-1, 0, 3, 6, 7}) == std::vector<float>{0, 0, 1, 1, 0});
  CHECK(derivative_of([](Value x) { return ops::clip(x, -1, 1); }, {-2, -1, 0, 1, 2}) == std::vector<float>{0, 1, 1, 1, 0});
  CHECK(derivative_of([](Value x) { return ops::abs(x); }, {-2, 0, 3}) == std::vector<float>{-1, 0, 1});
  CHECK(derivative_of([](Value x) { return ops::leaky_relu(x, 0.25); }, {-1, 0, 1}) == std::vector<float>{0.25, 0.25, 1});
  CHECK(derivative_of([](Value x) { return ops::elu(x, 2); }, {0, 1}) == std::vector<float>{2, 1});
  CHECK(derivative_of([](Value x) { return ops::round(x); }, {0.5, 1}) == std::vector<float>{0, 0});
}

TEST_CASE("elementwise: equal operands of maximum and minimum share the gradient") {
  CHECK(derivative_of([](Value x) { return ops::maximum(x, 1); }, {0, 1, 2}) == std::vector<float>{0, 0.5, 1});
  CHECK(derivative_of([](Value x) { return ops::minimum(x, 1); }, {0, 1, 2}) == std::vector<float>{1, 0.5, 0});
}

TEST_CASE("elementwise: the derivative of a power is finite where the power is flat") {
  CHECK(derivative_of([](Value x) { return ops::pow(x, 2); }, {-3, 0, 2}) == std::vector<float>{-6, 0, 4});
  CHECK(derivative_of([](Value x) { return ops::pow(x, 0); }, {0, 5}) == std::vector<float>{0, 0});
  // d 2^b / db at b = 0, d 0^b / db at b = 2
  CHECK(derivative_of([](Value b) { return ops::pow(ops::add(ops::mul(b, 0), 1), b); }, {0, 3}) == std::vector<float>{0, 0});
  CHECK(derivative_of([](Value b) { return ops::pow(ops::mul(b, 0), b); }, {2})[0] == 0);
}

TEST_CASE("elementwise: gradients of activations are finite for large inputs") {
  const std::vector<float> far{-1e4f, -100, 100, 1e4f, 1e30f, -1e30f};
  CHECK(derivative_of([](Value x) { return ops::sigmoid(x); }, {-1e4f, 1e4f}) == std::vector<float>{0, 0});
  const std::function<Value(Value)> functions[] = {[](Value x) { return ops::softplus(x); },   [](Value x) { return ops::silu(x); },
                                                   [](Value x) { return ops::mish(x); },       [](Value x) { return ops::gelu(x); },
                                                   [](Value x) { return ops::gelu(x, true); }, [](Value x) { return ops::elu(x); }};
  for (const auto& f : functions) {
    const std::vector<float> dx = derivative_of(f, far);
    for (std::size_t i = 0; i < far.size(); ++i) {
      CAPTURE(far[i]);
      CHECK(std::abs(dx[i] - (far[i] > 0 ? 1.0f : 0.0f)) < 1e-6f);
    }
  }
}

TEST_CASE("elementwise: gelu's derivative keeps its precision in the tail") {
  // Phi(-5) - 5 phi(-5), mpmath
  CHECK(derivative_of([](Value x) { return ops::gelu(x); }, {-5})[0] == doctest::Approx(-7.14694600179229e-06).epsilon(1e-5));
}

TEST_CASE("elementwise: composites match their definitions") {
  CHECK(result_of([](Value x) { return ops::square(x); }, {-3, 2}) == std::vector<float>{9, 4});
  CHECK(result_of([](Value x) { return ops::cube(x); }, {-3, 2}) == std::vector<float>{-27, 8});
  CHECK(result_of([](Value x) { return ops::relu6(x); }, {-inf, -1, 3, 9, inf}) == std::vector<float>{0, 0, 3, 6, 6});
  CHECK(result_of([](Value x) { return ops::cast(ops::not_equal(x, ops::abs(x)), DType::f32); }, {-3, 2}) == std::vector<float>{1, 0});
}

TEST_CASE("elementwise: the gradient of a cast has the operand's dtype") {
  CHECK(derivative_of([](Value x) { return ops::cast(ops::mul(ops::cast(x, DType::f64), 3), DType::f32); }, {1, 2}) ==
        std::vector<float>{3, 3});
  CHECK(derivative_of([](Value x) { return ops::cast(ops::mul(ops::cast(x, DType::bf16), 0.5), DType::f32); }, {1, 2}) ==
        std::vector<float>{0.5, 0.5});
}

}  // namespace
}  // namespace tenon::test
