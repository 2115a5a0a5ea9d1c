// SPDX-License-Identifier: Apache-2.0
// Small matrix products on the emulation: several by one launch, in any layout, with their epilogues.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backends/cuda/gemm/small_products.h"
#include "cuda_testing.h"

namespace tenon::cuda {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// A product with operands of its own, and what it should be.
struct Case {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool a_turned = false, b_turned = false, sums_columns = false;
  SmallProduct product{};
  std::vector<float> a, b, bias, residual, relu_result;
  std::size_t at_a = 0, at_b = 0, at_bias = 0, at_residual = 0, at_relu = 0, at_y = 0, at_sums = 0;

  float element_of_a(std::int64_t entry, std::int64_t i, std::int64_t t) const {
    return a[static_cast<std::size_t>(entry * m * k + (a_turned ? t * m + i : i * k + t))];
  }
  float element_of_b(std::int64_t entry, std::int64_t t, std::int64_t j) const {
    return b[static_cast<std::size_t>(entry * n * k + (b_turned ? j * k + t : t * n + j))];
  }
};

/// Cases in one buffer.
class Bench {
 public:
  Case& add(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, bool a_turned, bool b_turned) {
    Case c;
    c.m = m, c.n = n, c.k = k, c.batch = batch;
    c.a_turned = a_turned, c.b_turned = b_turned, c.sums_columns = batch == 1;
    const auto fill = [&](std::vector<float>& x, std::int64_t count, std::size_t& at) {
      for (std::int64_t i = 0; i < count; ++i) x.push_back(std::uniform_real_distribution<float>(-1, 1)(random_));
      at = place(count);
    };
    fill(c.a, batch * m * k, c.at_a);
    fill(c.b, batch * n * k, c.at_b);
    fill(c.bias, n, c.at_bias);
    fill(c.residual, batch * m * n, c.at_residual);
    fill(c.relu_result, batch * m * n, c.at_relu);
    c.at_y = place(batch * m * n);
    c.at_sums = place(n);
    c.product.dtype = TENON_DTYPE_F32;
    c.product.batch = batch;
    c.product.a_step = m * k;
    c.product.b_step = n * k;
    const sdk::MatrixView a_view = a_turned ? sdk::MatrixView{m, k, 1, m} : sdk::MatrixView{m, k, k, 1};
    c.product.a_view = a_view;
    c.product.b_view = b_turned ? sdk::MatrixView{k, n, 1, k} : sdk::MatrixView{k, n, n, 1};
    cases.push_back(c);
    return cases.back();
  }
  void run(bool together) {
    DeviceBuffer memory(device, stream, size_);
    std::vector<SmallProduct> products;
    for (const Case& c : cases) {
      memory.write(c.a, c.at_a);
      memory.write(c.b, c.at_b);
      memory.write(c.bias, c.at_bias);
      memory.write(c.residual, c.at_residual);
      memory.write(c.relu_result, c.at_relu);
      SmallProduct product = c.product;
      product.a = memory.at(c.at_a);
      product.b = memory.at(c.at_b);
      product.y = memory.at(c.at_y);
      product.bias = memory.at(c.at_bias);
      product.residual = memory.at(c.at_residual);
      product.relu_result = memory.at(c.at_relu);
      if (c.sums_columns) product.column_sums = memory.at(c.at_sums);
      products.push_back(product);
    }
    if (together) {
      multiply_small(stream, products);
    } else {
      for (const SmallProduct& product : products) multiply_small(stream, std::span(&product, 1));
    }
    results.clear();
    for (const Case& c : cases) {
      results.push_back(memory.read<float>(static_cast<std::size_t>(c.batch * c.m * c.n), c.at_y));
      if (c.sums_columns) results.push_back(memory.read<float>(static_cast<std::size_t>(c.n), c.at_sums));
    }
  }

  Device device{sdk::Host(), 0};
  Stream stream{device};
  std::vector<Case> cases;
  std::vector<std::vector<float>> results;  ///< y of each case, and its sums

 private:
  std::size_t place(std::int64_t count) {
    const std::size_t at = size_;
    size_ += (static_cast<std::size_t>(count) * sizeof(float) + 255) / 256 * 256;
    return at;
  }
  std::size_t size_ = 256;
  std::mt19937 random_{11};
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("cuda small products: of any size and layout, with all of the epilogue; the same bits by one launch and by several") {
  Bench bench;
  for (int variant = 0; variant < 4; ++variant) {
    const bool a_turned = (variant & 1) != 0, b_turned = (variant & 2) != 0;
    bench.add(1, 1, 1, 1, a_turned, b_turned);
    bench.add(17, 33, 129, 1, a_turned, b_turned);
    bench.add(5, 40, 300, 3, a_turned, b_turned);
    bench.add(100, 10, 8, 1, a_turned, b_turned);
    bench.add(3, 2, 0, 1, a_turned, b_turned);
  }
  for (std::size_t i = 0; i < bench.cases.size(); ++i) {
    if (i % 2 == 0) bench.cases[i].product.activation = sdk::Activation::relu;
    if (i % 3 == 0) bench.cases[i].product.alpha = -0.5;
  }
  bench.run(false);
  const auto single = bench.results;
  bench.run(true);
  std::size_t at = 0;
  for (std::size_t i = 0; i < bench.cases.size(); ++i) {
    CAPTURE(i);
    const Case& c = bench.cases[i];
    const std::vector<float>& y = bench.results[at];
    CHECK(same_bits(y, single[at++]));
    double worst = 0;
    for (std::size_t e = 0; e < y.size(); ++e) {
      const auto flat = static_cast<std::int64_t>(e);
      const std::int64_t entry = flat / (c.m * c.n), row = flat / c.n % c.m, column = flat % c.n;
      double sum = 0;
      for (std::int64_t t = 0; t < c.k; ++t) sum += double{c.element_of_a(entry, row, t)} * double{c.element_of_b(entry, t, column)};
      sum = c.product.alpha * sum + double{c.bias[static_cast<std::size_t>(column)]} + double{c.residual[e]};
      if (c.product.activation == sdk::Activation::relu) sum = std::max(sum, 0.0);
      worst = std::max(worst, std::abs((c.relu_result[e] > 0 ? sum : 0.0) - double{y[e]}));
    }
    CHECK(worst < 2e-5);
    if (!c.sums_columns) continue;
    const std::vector<float>& sums = bench.results[at];
    CHECK(same_bits(sums, single[at++]));
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = 0;
      for (std::int64_t t = 0; t < c.k; ++t) sum += double{c.element_of_b(0, t, j)};
      CHECK(std::abs(sum - double{sums[static_cast<std::size_t>(j)]}) < 2e-5);
    }
  }
}

TEST_CASE("cuda small products: NaN stays in the rows and columns that it is in, also after a relu and in the gradient of one") {
  Bench bench;
  for (const bool is_relu : {false, true}) {
    Case& c = bench.add(20, 18, 30, 1, false, false);
    if (is_relu) c.product.activation = sdk::Activation::relu;
    c.a[3 * 30 + 7] = nan;
    c.b[5 * 18 + 9] = nan;
    std::fill(c.relu_result.begin(), c.relu_result.end(), 1.0f);
    c.relu_result[4 * 18 + 4] = nan;
    c.relu_result[3 * 18 + 1] = 0;
  }
  bench.run(true);
  for (const std::size_t i : {0u, 2u}) {
    const std::vector<float>&y = bench.results[i], &sums = bench.results[i + 1];
    for (std::size_t e = 0; e < y.size(); ++e) {
      const std::size_t row = e / 18, column = e % 18;
      const bool expected = (row == 3 && column != 1) || column == 9 || (row == 4 && column == 4);
      CHECK(std::isnan(y[e]) == expected);
    }
    for (std::size_t j = 0; j < sums.size(); ++j) CHECK(std::isnan(sums[j]) == (j == 9));
  }
}

TEST_CASE("cuda small products: which products are small") {
  const auto small = [](tenon_dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
    SmallProduct product;
    product.dtype = dtype;
    product.a_view = {m, k, k, 1};
    product.b_view = {k, n, n, 1};
    product.batch = batch;
    return is_small(product);
  };
  CHECK(small(TENON_DTYPE_F32, 100, 300, 784));
  CHECK(small(TENON_DTYPE_F32, 1, 1, 1024));
  CHECK(small(TENON_DTYPE_F32, 0, 5, 3));
  CHECK(small(TENON_DTYPE_BF16, 256, 256, 256));
  CHECK_FALSE(small(TENON_DTYPE_F32, 1, 1, 1025));
  CHECK_FALSE(small(TENON_DTYPE_F32, 1024, 1024, 64));
  CHECK_FALSE(small(TENON_DTYPE_BF16, 256, 512, 256));
  CHECK_FALSE(small(TENON_DTYPE_F64, 4, 4, 4));
  CHECK_FALSE(small(TENON_DTYPE_F32, std::int64_t{1} << 40, std::int64_t{1} << 40, 1));
  CHECK_FALSE(small(TENON_DTYPE_F32, 16, 16, 16, std::int64_t{1} << 30));
}

}  // namespace tenon::cuda
