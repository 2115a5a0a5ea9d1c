// SPDX-License-Identifier: Apache-2.0
// Statistics of benchmark reports.
#include <doctest/doctest.h>

#include <vector>

#include "../../tools/bench/statistics.h"

using namespace tenon::bench;

TEST_CASE("statistics: the median of an even count is the mean of the middle two") {
  CHECK(median({4, 1, 3, 2}) == 2.5);
  CHECK(median({5, 1, 9}) == 5);
  CHECK(median({7}) == 7);
}

TEST_CASE("statistics: one outlier moves neither the median nor the interquartile range") {
  CHECK(median({10, 11, 12, 13, 14}) == 12);
  CHECK(median({10, 11, 12, 13, 1e9}) == 12);
  CHECK(interquartile_range({10, 11, 12, 13, 14}) == 2);
  CHECK(interquartile_range({10, 11, 12, 13, 1e9}) == 2);
}

TEST_CASE("statistics: equal samples have no spread") {
  CHECK(interquartile_range({3, 3, 3, 3}) == 0);
  CHECK(interquartile_range({3}) == 0);
}

TEST_CASE("statistics: a fit through collinear points returns their line") {
  const std::vector<double> x{1, 10, 100, 1000};
  std::vector<double> y;
  for (const double at : x) y.push_back(30 + 25 * at);
  const Line line = fit_line(x, y);
  CHECK(line.base == doctest::Approx(30));
  CHECK(line.slope == doctest::Approx(25));
}
