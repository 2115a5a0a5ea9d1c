// SPDX-License-Identifier: Apache-2.0
// The cuda backend's sine and cosine of large arguments.
#include "backends/cuda/kernel/trigonometric.cuh"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace tenon::cuda {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double ulps(double got, double expected) {
  return std::abs(got - expected) / (std::nextafter(std::abs(expected), infinity) - std::abs(expected));
}
double ulps(float got, double expected) {
  const auto nearest = static_cast<float>(std::abs(expected));
  return static_cast<double>(std::abs(static_cast<double>(got) - expected)) /
         static_cast<double>(std::nextafter(nearest, std::numeric_limits<float>::infinity()) - nearest);
}

TEST_CASE("cuda trigonometric: sine and cosine of large arguments of every exponent") {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 100000; ++trial) {
    const std::uint64_t exponent = 1023 + 31 + random() % (1024 - 31);
    const auto x = std::bit_cast<double>((random() & 0x800FFFFFFFFFFFFFu) | exponent << 52);
    CHECK(ulps(functions::Sin{}(x), std::sin(x)) <= 2);
    CHECK(ulps(functions::Cos{}(x), std::cos(x)) <= 2);
    const auto bits = static_cast<std::uint32_t>(random()), small_exponent = 127 + 17 + static_cast<std::uint32_t>(random() % (128 - 17));
    const auto y = std::bit_cast<float>((bits & 0x807FFFFFu) | small_exponent << 23);
    CHECK(ulps(functions::Sin{}(y), std::sin(double{y})) <= 2);
    CHECK(ulps(functions::Cos{}(y), std::cos(double{y})) <= 2);
  }
}

TEST_CASE("cuda trigonometric: arguments near multiples of pi / 2, and at the thresholds") {
  constexpr long double half_pi = 1.57079632679489661923132169163975144L;
  std::mt19937_64 random(4);
  for (int trial = 0; trial < 100000; ++trial) {
    const std::uint64_t k = (std::uint64_t{1} << 32) + random() % (std::uint64_t{1} << (32 + trial % 20));
    const auto x = static_cast<double>(static_cast<long double>(k) * half_pi);
    CHECK(ulps(functions::Sin{}(x), std::sin(x)) <= 2);
    CHECK(ulps(functions::Cos{}(x), std::cos(x)) <= 2);
  }
  // Of all numbers of f64, the one nearest to a multiple of pi / 2.
  const double nearest = std::ldexp(6381956970095103.0, 797);
  CHECK(ulps(functions::Cos{}(nearest), std::cos(nearest)) <= 2);
  for (const double sign : {-1.0, 1.0}) {
    for (const double x : {2147483647.0, 2147483648.0, std::numeric_limits<double>::max()}) {
      CHECK(ulps(functions::Sin{}(sign * x), std::sin(sign * x)) <= 2);
      CHECK(ulps(functions::Cos{}(sign * x), std::cos(sign * x)) <= 2);
    }
    for (const float x : {105614.9f, 105615.0f, std::numeric_limits<float>::max()}) {
      const float y = static_cast<float>(sign) * x;
      CHECK(ulps(functions::Sin{}(y), std::sin(double{y})) <= 2);
      CHECK(ulps(functions::Cos{}(y), std::cos(double{y})) <= 2);
    }
  }
}

TEST_CASE("cuda trigonometric: infinities and NaN give NaN") {
  for (const double x : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(std::isnan(functions::Sin{}(x)));
    CHECK(std::isnan(functions::Cos{}(x)));
    CHECK(std::isnan(functions::Sin{}(static_cast<float>(x))));
    CHECK(std::isnan(functions::Cos{}(static_cast<float>(x))));
  }
}

}  // namespace
}  // namespace tenon::cuda
