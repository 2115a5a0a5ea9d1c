// How parameters start: moments, limits, the same bits everywhere.
#include <algorithm>
#include <cmath>

#include "exec_testing.h"
#include "train/initializers.h"

namespace tenon::train {
namespace {

using tenon::test::floats;
using tenon::test::message_of;
using tenon::test::test_config;

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

std::vector<float> start(Initializer::Kind kind, const Shape& shape, std::uint32_t stream = 0, const std::string& device = "reference:0") {
  const Context context(test_config(device));
  Initializer initializer;
  initializer.kind = kind;
  return floats(initialize(context, context.default_device(), initializer, DType::f32, shape, shape.rank() > 0 ? shape[0] : 1, 5, stream));
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
  const double wanted = std::sqrt(2.0 / 1084);
  CHECK(moments(values).deviation == doctest::Approx(wanted).epsilon(0.01));
  CHECK(std::abs(moments(values).mean) < 4 * wanted / std::sqrt(235200.0));
  // The statistic itself is a random number, 0.83 in the median and above 1.63 once in a hundred: its median over streams is what tells.
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

TEST_CASE("seeds_reproduce: the same bits on every backend, others for another stream") {
  CHECK(start(Initializer::Kind::glorot_normal, {30, 40}, 1, "reference:0") ==
        start(Initializer::Kind::glorot_normal, {30, 40}, 1, "openblas:0"));
  CHECK(start(Initializer::Kind::glorot_uniform, {30, 40}, 1, "reference:0") ==
        start(Initializer::Kind::glorot_uniform, {30, 40}, 1, "openblas:0"));
  CHECK(start(Initializer::Kind::glorot_normal, {30, 40}, 1) != start(Initializer::Kind::glorot_normal, {30, 40}, 2));
}

TEST_CASE("initializers: constants are exact, a scalar has no fan") {
  CHECK(start(Initializer::Kind::zeros, {3}) == std::vector<float>(3, 0.0f));
  CHECK(start(Initializer::Kind::ones, {3}) == std::vector<float>(3, 1.0f));
  CHECK(message_of([] { start(Initializer::Kind::glorot_normal, {}); }) ==
        "initializer glorot_normal: a scalar has no fan; use zeros, ones, constant, uniform or normal");
}

}  // namespace
}  // namespace tenon::train
