// SPDX-License-Identifier: Apache-2.0
// x * y + z rounded once: std::fma as this system has it, and the SDK's, against each other and against known results.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "fma.h"

using tenon::sdk::fma_by_integers;

namespace {

bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

}  // namespace

TEST_CASE("fma: results at the limits of rounding") {
  struct Row {
    double x, y, z, expected;
  };
  constexpr double tiny = std::numeric_limits<double>::denorm_min(), huge = std::numeric_limits<double>::max(),
                   infinite = std::numeric_limits<double>::infinity();
  const Row rows[] = {
      {1 + 0x1p-52, 1 + 0x1p-52, -(1 + 0x1p-51), 0x1p-104},
      {1 + 0x1p-30, 1 + 0x1p-23, 0x1p-60, 0x1.00000204p+0 + 0x1p-52},  // above a tie by 2^-60: 64 bits lose it
      {1 - 0x1p-53, 1 + 0x1p-52, 0, 1.0},
      {3, 5, -15, 0.0},
      {-3, 5, 15, 0.0},
      {tiny, 0.5, 0.0, 0.0},
      {-tiny, 0.5, 0.0, -0.0},
      {tiny, 0.75, 0.0, tiny},
      {0x1p-600, 0x1p-474, 0x1p-1022, 0x1.0000000000001p-1022},
      {0x1p-600, 0x1p-475, 0x1p-1022, 0x1p-1022},
      {0x1p-600, 0x1.8p-475, 0x1p-1022, 0x1.0000000000001p-1022},
      {huge, 2, -huge, huge},
      {huge, 2, 0, infinite},
      {huge, 2, -infinite, -infinite},
      {infinite, 1, -infinite, std::numeric_limits<double>::quiet_NaN()},
      {0, infinite, 1, std::numeric_limits<double>::quiet_NaN()},
      {0, -1, -0.0, -0.0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.x);
    CAPTURE(row.y);
    CAPTURE(row.z);
    CHECK(same(fma_by_integers(row.x, row.y, row.z), row.expected));
    volatile double x = row.x;  // or the compiler computes it
    CHECK(same(std::fma(x, row.y, row.z), row.expected));
  }
}

TEST_CASE("fma: this system's and the SDK's have the same bits") {
  std::mt19937_64 random(1);
  const auto number = [&](int exponents) {
    const double mantissa = 1 + static_cast<double>(random() >> 12) * 0x1p-52;
    const int exponent = static_cast<int>(random() % static_cast<std::uint64_t>(2 * exponents + 1)) - exponents;
    return std::ldexp((random() & 1) != 0 ? mantissa : -mantissa, exponent);
  };
  int differences = 0, float_differences = 0;
  for (int i = 0; i < 200'000; ++i) {
    const int exponents = i % 3 == 0 ? 1070 : i % 3 == 1 ? 30 : 1;
    const double x = number(exponents), y = number(exponents);
    // Every second term nearly cancels the product.
    const double z = i % 2 == 0 ? number(exponents) : -x * y * (1 + static_cast<double>(static_cast<int>(random() % 9) - 4) * 0x1p-52);
    differences += same(fma_by_integers(x, y, z), std::fma(x, y, z)) ? 0 : 1;
    const auto xf = static_cast<float>(x), yf = static_cast<float>(y), zf = static_cast<float>(z);
    float_differences += same(fma_by_integers(xf, yf, zf), std::fma(xf, yf, zf)) ? 0 : 1;
  }
  CHECK(differences == 0);
  CHECK(float_differences == 0);
}
