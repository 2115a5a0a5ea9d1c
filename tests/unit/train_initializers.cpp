// SPDX-License-Identifier: Apache-2.0
// Initial parameters: moments, limits, the same bits everywhere.
#include <algorithm>
#include <cmath>

#include "testing.h"
#include "train/program/initializers.h"

namespace tenon::train {
namespace {

using namespace tenon::test;

struct Moments {
  double mean = 0, deviation = 0, lowest = 0, highest = 0;
};

Moments moments(std::vector<float> values) {
  Moments m;
  double squares = 0;
  for (const float v : values) m.mean += v;
  m.mean /= static_cast<double>(values.size());
  for (const float v : values) squares += (v - m.mean) * (v - m.mean);
  m.deviation = std::sqrt(squares / static_cast<double>(values.size()));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  m.lowest = *low, m.highest = *high;
  return m;
}

ParameterSpec spec_of(const Initializer& initializer, const Shape& shape, std::int64_t fan_in) {
  ParameterSpec spec;
  spec.shape = shape;
  spec.initializer = initializer;
  spec.fan_in = fan_in;
  return spec;
}

std::vector<float> start(Initializer::Kind kind, const Shape& shape, std::uint32_t stream = 0, const std::string& device = "reference:0") {
  const Context context(test_config(device));
  return floats(initialize(context, context.default_device(), spec_of({.kind = kind}, shape, shape.rank() > 0 ? shape[0] : 1), 5, stream));
}

/// Largest distance between the sample's distribution and the normal one.
double kolmogorov_smirnov(std::vector<float> values, double deviation) {
  std::sort(values.begin(), values.end());
  double worst = 0;
  const double n = static_cast<double>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double f = 0.5 * std::erfc(-values[i] / deviation / std::sqrt(2.0));
    worst = std::max({worst, std::abs(f - static_cast<double>(i) / n), std::abs(f - static_cast<double>(i + 1) / n)});
  }
  return worst;
}

TEST_CASE("glorot_normal: deviation sqrt(2 / (n1 + n2)) within 1 %, normally distributed") {
  const auto values = start(Initializer::Kind::glorot_normal, {784, 300});
  const double expected = std::sqrt(2.0 / 1084);
  CHECK(moments(values).deviation == doctest::Approx(expected).epsilon(0.01));
  CHECK(std::abs(moments(values).mean) < 4 * expected / std::sqrt(235200.0));
  // The statistic is random, 0.83 in the median and above 1.63 once in a hundred, so its median over streams is checked.
  std::vector<double> statistics;
  for (std::uint32_t stream = 0; stream < 9; ++stream) {
    statistics.push_back(kolmogorov_smirnov(start(Initializer::Kind::glorot_normal, {784, 30}, stream), std::sqrt(2.0 / 814)) *
                         std::sqrt(784.0 * 30));
  }
  std::nth_element(statistics.begin(), statistics.begin() + 4, statistics.end());
  CHECK(statistics[4] < 1.2);
}

TEST_CASE("glorot_uniform_is_uniform: within sqrt(6 / (n1 + n2)), filling it") {
  const Moments m = moments(start(Initializer::Kind::glorot_uniform, {784, 300}));
  const double limit = std::sqrt(6.0 / 1084);
  CHECK(m.highest <= limit);
  CHECK(m.lowest >= -limit);
  CHECK(m.highest > 0.999 * limit);
  CHECK(m.deviation == doctest::Approx(limit / std::sqrt(3.0)).epsilon(0.01));  // a normal of that range would be narrower
}

TEST_CASE("he, lecun: by fan in; receptive fields count") {
  CHECK(moments(start(Initializer::Kind::he_normal, {400, 500})).deviation == doctest::Approx(std::sqrt(2.0 / 400)).epsilon(0.01));
  CHECK(moments(start(Initializer::Kind::lecun_normal, {400, 500})).deviation == doctest::Approx(std::sqrt(1.0 / 400)).epsilon(0.01));
  CHECK(moments(start(Initializer::Kind::glorot_normal, {40, 50, 10, 10})).deviation ==
        doctest::Approx(std::sqrt(2.0 / 9000)).epsilon(0.01));
  CHECK(moments(start(Initializer::Kind::glorot_normal, {100000})).deviation == doctest::Approx(std::sqrt(2.0 / 100001)).epsilon(0.01));
}

/// The distribution function of the normal distribution of this deviation, cut at 2 deviations.
double cut_normal(double x, double deviation) {
  const auto phi = [](double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); };
  return (phi(x / deviation) - phi(-2)) / (phi(2) - phi(-2));
}

TEST_CASE("truncated_normal: within two deviations, distributed as the cut normal distribution") {
  const double deviation = 0.05;
  std::vector<double> statistics;
  for (std::uint32_t stream = 0; stream < 9; ++stream) {
    auto values = start(Initializer::Kind::truncated_normal, {784, 30}, stream);
    std::sort(values.begin(), values.end());
    CHECK(values.front() >= -2 * deviation * (1 + 1e-6));
    CHECK(values.back() <= 2 * deviation * (1 + 1e-6));
    CHECK(values.back() > 1.99 * deviation);
    double worst = 0;
    const double n = static_cast<double>(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double f = cut_normal(values[i], deviation);
      worst = std::max({worst, std::abs(f - static_cast<double>(i) / n), std::abs(f - static_cast<double>(i + 1) / n)});
    }
    statistics.push_back(worst * std::sqrt(n));
  }
  std::nth_element(statistics.begin(), statistics.begin() + 4, statistics.end());
  CHECK(statistics[4] < 1.2);
  CHECK(moments(start(Initializer::Kind::truncated_normal, {784, 300})).deviation ==
        doctest::Approx(deviation * 0.87962566103423978).epsilon(0.01));
}

TEST_CASE("truncated glorot, he, lecun: they have their stated deviation, and nothing beyond two of the wider normal") {
  const auto cut = [](Initializer::Kind kind) {
    const Context context(test_config());
    return moments(
        floats(initialize(context, context.default_device(), spec_of({.kind = kind, .truncated = true}, {400, 500}, 400), 5, 0)));
  };
  const auto holds = [&](Initializer::Kind kind, double deviation) {
    const Moments m = cut(kind);
    CHECK(m.deviation == doctest::Approx(deviation).epsilon(0.01));
    CHECK(std::abs(m.mean) < 4 * deviation / std::sqrt(200000.0));
    CHECK(m.highest <= 2 * deviation / 0.8796);
    CHECK(m.highest > 1.99 * deviation / 0.8797);
  };
  holds(Initializer::Kind::glorot_normal, std::sqrt(2.0 / 900));
  holds(Initializer::Kind::he_normal, std::sqrt(2.0 / 400));
  holds(Initializer::Kind::lecun_normal, std::sqrt(1.0 / 400));
}

/// Largest |entry of w w' - gain^2 I| over rows, or of w' w over columns, whichever are fewer.
double orthogonality(const std::vector<float>& w, std::size_t n1, std::size_t n2) {
  const bool by_rows = n1 <= n2;
  const std::size_t few = std::min(n1, n2), many = std::max(n1, n2);
  double worst = 0;
  for (std::size_t a = 0; a < few; ++a) {
    for (std::size_t b = 0; b < few; ++b) {
      double dot = 0;
      for (std::size_t k = 0; k < many; ++k) {
        dot += by_rows ? static_cast<double>(w[a * n2 + k]) * w[b * n2 + k] : static_cast<double>(w[k * n2 + a]) * w[k * n2 + b];
      }
      worst = std::max(worst, std::abs(dot - (a == b ? 1 : 0)));
    }
  }
  return worst;
}

TEST_CASE("orthogonal: rows or columns, whichever are fewer, are orthonormal") {
  CHECK(orthogonality(start(Initializer::Kind::orthogonal, {40, 40}), 40, 40) < 1e-6);
  CHECK(orthogonality(start(Initializer::Kind::orthogonal, {90, 30}), 90, 30) < 1e-6);
  CHECK(orthogonality(start(Initializer::Kind::orthogonal, {20, 5, 3, 3}), 20, 45) < 1e-6);
  CHECK(start(Initializer::Kind::orthogonal, {40, 40}) != start(Initializer::Kind::orthogonal, {40, 40}, 1));
}

TEST_CASE("identity: ones on the diagonal of a matrix, and of nothing else") {
  CHECK(start(Initializer::Kind::identity, {2, 3}) == std::vector<float>{1, 0, 0, 0, 1, 0});
  CHECK(start(Initializer::Kind::identity, {3, 2}) == std::vector<float>{1, 0, 0, 1, 0, 0});
  CHECK_ERROR("initializer identity: expected a matrix, got (2)", start(Initializer::Kind::identity, {2}));
  CHECK_ERROR("initializer orthogonal: expected a matrix, got (2)", start(Initializer::Kind::orthogonal, {2}));
}

TEST_CASE("seeds_reproduce: the same bits on every backend, different ones for another stream") {
  CHECK(start(Initializer::Kind::glorot_normal, {30, 40}, 1, "reference:0") ==
        start(Initializer::Kind::glorot_normal, {30, 40}, 1, "openblas:0"));
  CHECK(start(Initializer::Kind::glorot_uniform, {30, 40}, 1, "reference:0") ==
        start(Initializer::Kind::glorot_uniform, {30, 40}, 1, "openblas:0"));
  CHECK(start(Initializer::Kind::truncated_normal, {30, 40}, 1, "reference:0") ==
        start(Initializer::Kind::truncated_normal, {30, 40}, 1, "openblas:0"));
  CHECK(start(Initializer::Kind::orthogonal, {30, 40}, 1, "reference:0") ==
        start(Initializer::Kind::orthogonal, {30, 40}, 1, "openblas:0"));
  CHECK(start(Initializer::Kind::glorot_normal, {30, 40}, 1) != start(Initializer::Kind::glorot_normal, {30, 40}, 2));
}

TEST_CASE("initializers: constants are exact, a scalar has no fan") {
  CHECK(start(Initializer::Kind::zeros, {3}) == std::vector<float>(3, 0.0f));
  CHECK(start(Initializer::Kind::ones, {3}) == std::vector<float>(3, 1.0f));
  CHECK_ERROR("initializer glorot_normal: a scalar has no fan-in; use zeros, ones, constant, uniform or normal",
              start(Initializer::Kind::glorot_normal, {}));
}

}  // namespace
}  // namespace tenon::train
