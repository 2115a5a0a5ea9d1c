// SPDX-License-Identifier: Apache-2.0
// The Markov source: its stream follows its probabilities, and its entropy rate is theirs.
#include <doctest/doctest.h>

#include <cmath>

#include <tenon/data.h>

#include "testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// How often symbol j follows symbol i, over the samples.
std::vector<double> counted(const MarkovStream& stream, std::int64_t symbols) {
  std::vector<double> pairs(static_cast<std::size_t>(symbols * symbols));
  const auto* x = stream.data->x().data<std::int64_t>();
  const auto* y = stream.data->y().data<std::int64_t>();
  for (std::int64_t i = 0; i < stream.data->x().count(); ++i) pairs[static_cast<std::size_t>(x[i] * symbols + y[i])] += 1;
  return pairs;
}

}  // namespace

TEST_CASE("markov: targets are the symbols shifted by one, and each row of probabilities sums to one") {
  const MarkovStream stream = generate_markov({.count = 20 * 8 + 1, .sequence = 8});
  CHECK(stream.data->name() == "markov train");
  CHECK(stream.data->size() == 20);
  CHECK(stream.data->x_type().shape == Shape{8});
  const auto* x = stream.data->x().data<std::int64_t>();
  const auto* y = stream.data->y().data<std::int64_t>();
  for (std::int64_t i = 0; i + 1 < stream.data->x().count(); ++i) CHECK(x[i + 1] == y[i]);
  const auto* p = stream.transitions.data<double>();
  for (std::int64_t i = 0; i < 64; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < 64; ++j) sum += p[i * 64 + j];
    CHECK(sum == doctest::Approx(1).epsilon(1e-14));
  }
}

TEST_CASE("markov: transition frequencies match the probabilities, and the mean surprise matches the entropy rate") {
  const MarkovStream stream = generate_markov({.count = 200001, .symbols = 5, .sequence = 100});
  const std::vector<double> pairs = counted(stream, 5);
  const auto* p = stream.transitions.data<double>();
  double surprise = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    double row = 0;
    for (std::size_t j = 0; j < 5; ++j) row += pairs[i * 5 + j];
    for (std::size_t j = 0; j < 5; ++j) {
      const double expected = p[i * 5 + j];
      CHECK(std::abs(pairs[i * 5 + j] / row - expected) < 5 * std::sqrt(expected / row));  // five deviations
      surprise -= pairs[i * 5 + j] * std::log(expected);
    }
  }
  surprise /= static_cast<double>(stream.data->x().count());
  CHECK(surprise == doctest::Approx(stream.entropy_rate).epsilon(0.02));
}

TEST_CASE("markov: two symbols have the entropy rate of the formula") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const MarkovStream stream = generate_markov({.symbols = 2, .seed = seed});
    const auto* p = stream.transitions.data<double>();
    const double leave_first = p[1], leave_second = p[2];
    const auto entropy = [](double q) { return -q * std::log(q) - (1 - q) * std::log(1 - q); };
    const double first = leave_second / (leave_first + leave_second);
    CHECK(stream.entropy_rate == doctest::Approx(first * entropy(leave_first) + (1 - first) * entropy(leave_second)).epsilon(1e-12));
  }
}

TEST_CASE("markov: both splits come from one source that depends on the seed") {
  MarkovOptions options, test, other;
  test.split = Split::test;
  other.seed = 2;
  const MarkovStream a = generate_markov(options), b = generate_markov(test), c = generate_markov(other);
  CHECK(equal(a.transitions, b.transitions));
  CHECK(a.entropy_rate == b.entropy_rate);
  CHECK(!equal(a.data->x(), b.data->x()));
  CHECK(!equal(a.transitions, c.transitions));
  CHECK(equal(generate_markov(options).data->x(), a.data->x()));
}

TEST_CASE("markov: invalid options are rejected") {
  MarkovOptions options{.symbols = 1};
  CHECK_ERROR("markov train: expected 2 to 4096 symbols, got 1", generate_markov(options));
  options.symbols = 64;
  options.count = 1;
  CHECK_ERROR("markov train: expected a count of at least 2 symbols, got 1", generate_markov(options));
  options.count = 32;
  CHECK_ERROR_CONTAINS("markov train: expected at least 33 tokens", generate_markov(options));
}
