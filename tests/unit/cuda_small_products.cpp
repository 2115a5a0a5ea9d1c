// SPDX-License-Identifier: Apache-2.0
// Small matrix products on the emulation: several by one launch, in any layout, with their epilogues.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "backends/cuda/gemm/small_products.h"
#include "backends/cuda/kernel/launch.h"
#include "backends/cuda/kernel/wide.cuh"
#include "cuda_host.h"
#include "cuda_testing.h"

namespace tenon::cuda {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// A product with operands of its own, and what it should be.
struct Case {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool a_transposed = false, b_transposed = false, sums_columns = false;
  SmallProduct product{};
  std::vector<float> a, b, c, bias, residual, relu_result;  ///< numbers of the product's dtype
  std::size_t at_a = 0, at_b = 0, at_c = 0, at_bias = 0, at_residual = 0, at_relu = 0, at_y = 0, at_sums = 0;

  double element_of_a(std::int64_t entry, std::int64_t i, std::int64_t t) const {
    return a[static_cast<std::size_t>(entry * product.a_step + (a_transposed ? t * m + i : i * k + t))];
  }
  double element_of_b(std::int64_t entry, std::int64_t t, std::int64_t j) const {
    return b[static_cast<std::size_t>(entry * product.b_step + (b_transposed ? j * k + t : t * n + j))];
  }
  double expected(std::size_t e) const {
    const auto flat = static_cast<std::int64_t>(e);
    const std::int64_t entry = flat / (m * n), row = flat / n % m, column = flat % n;
    double sum = 0;
    for (std::int64_t t = 0; t < k; ++t) sum += element_of_a(entry, row, t) * element_of_b(entry, t, column);
    sum *= product.alpha;
    if (product.beta != 0) sum += product.beta * double{c[static_cast<std::size_t>(row * product.c_row + column * product.c_column)]};
    sum += double{bias[static_cast<std::size_t>(column)]} + double{residual[e]};
    if (product.activation == sdk::Activation::relu) sum = std::max(sum, 0.0);
    return relu_result[e] > 0 ? sum : 0.0;
  }
  double expected_sum(std::int64_t column) const {
    double sum = 0;
    for (std::int64_t t = 0; t < k; ++t) sum += element_of_b(0, t, column);
    return sum;
  }
  /// Whether y is this number, up to the order of sums in f32 and one rounding to the dtype.
  bool is_near(double number, float y) const {
    const double rounding = product.dtype == TENON_DTYPE_F16 ? 0x1p-11 : product.dtype == TENON_DTYPE_BF16 ? 0x1p-8 : 0;
    return std::abs(number - double{y}) <= 2e-5 + rounding * std::abs(number);
  }
};

/// Calls body(T{}) with the type of the dtype.
template <class Body>
auto with_type_of(tenon_dtype dtype, const Body& body) {
  if (dtype == TENON_DTYPE_F16) return body(sdk::Half{});
  if (dtype == TENON_DTYPE_BF16) return body(sdk::BFloat16{});
  return body(float{});
}

/// Cases with their operands and results in one buffer.
class Products {
 public:
  explicit Products(tenon_dtype dtype = TENON_DTYPE_F32, const char* programmatic_launch = "off") : dtype_(dtype) {
    host.options["programmatic_launch"] = programmatic_launch;
  }

  Case& add(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, bool a_transposed, bool b_transposed) {
    Case c;
    c.m = m, c.n = n, c.k = k, c.batch = batch;
    c.a_transposed = a_transposed, c.b_transposed = b_transposed, c.sums_columns = batch == 1;
    const auto fill = [&](std::vector<float>& x, std::int64_t count, std::size_t& at) {
      for (std::int64_t i = 0; i < count; ++i) x.push_back(rounded(std::uniform_real_distribution<float>(-1, 1)(random_)));
      at = place(count);
    };
    fill(c.a, batch * m * k, c.at_a);
    fill(c.b, batch * n * k, c.at_b);
    fill(c.c, m * n, c.at_c);
    fill(c.bias, n, c.at_bias);
    fill(c.residual, batch * m * n, c.at_residual);
    fill(c.relu_result, batch * m * n, c.at_relu);
    c.at_y = place(batch * m * n);
    c.at_sums = place(n);
    c.product.dtype = dtype_;
    c.product.batch = batch;
    c.product.a_step = m * k;
    c.product.b_step = n * k;
    c.product.a_view = a_transposed ? sdk::MatrixView{m, k, 1, m} : sdk::MatrixView{m, k, k, 1};
    c.product.b_view = b_transposed ? sdk::MatrixView{k, n, 1, k} : sdk::MatrixView{k, n, n, 1};
    cases.push_back(c);
    return cases.back();
  }
  void run(bool together) {
    DeviceBuffer memory(device, stream, size_);
    std::vector<SmallProduct> products;
    for (const Case& c : cases) {
      write(memory, c.a, c.at_a);
      write(memory, c.b, c.at_b);
      write(memory, c.c, c.at_c);
      write(memory, c.bias, c.at_bias);
      write(memory, c.residual, c.at_residual);
      write(memory, c.relu_result, c.at_relu);
      SmallProduct product = c.product;
      product.a = memory.at(c.at_a);
      product.b = memory.at(c.at_b);
      product.c = memory.at(c.at_c);
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
      results.push_back(read(memory, c.batch * c.m * c.n, c.at_y));
      if (c.sums_columns) results.push_back(read(memory, c.n, c.at_sums));
    }
  }
  /// Runs the cases one by one and together: the same bits, and what they should be.
  void check() {
    run(false);
    const auto single = results;
    run(true);
    REQUIRE(results.size() == single.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      CAPTURE(i);
      CHECK(same_bits(results[i], single[i]));
    }
    std::size_t at = 0;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      CAPTURE(i);
      const Case& c = cases[i];
      const std::vector<float>& y = results[at++];
      bool all_near = true;
      for (std::size_t e = 0; e < y.size(); ++e) all_near = all_near && c.is_near(c.expected(e), y[e]);
      CHECK(all_near);
      if (!c.sums_columns) continue;
      const std::vector<float>& sums = results[at++];
      for (std::int64_t j = 0; j < c.n; ++j) CHECK(c.is_near(c.expected_sum(j), sums[static_cast<std::size_t>(j)]));
    }
  }

  TestHost host;
  Device device{sdk::Host(&host.table), 0};
  Stream stream{device};
  std::vector<Case> cases;
  std::vector<std::vector<float>> results;  ///< y of each case, and its sums

 private:
  float rounded(float x) const {
    return with_type_of(dtype_, [x]<class T>(T) -> float { return widen(narrow<T>(x)); });
  }
  void write(DeviceBuffer& memory, const std::vector<float>& values, std::size_t at) const {
    with_type_of(dtype_, [&]<class T>(T) {
      std::vector<T> elements;
      for (const float x : values) elements.push_back(narrow<T>(x));
      memory.write(elements, at);
    });
  }
  std::vector<float> read(DeviceBuffer& memory, std::int64_t count, std::size_t at) const {
    return with_type_of(dtype_, [&]<class T>(T) {
      std::vector<float> values;
      for (const T x : memory.read<T>(static_cast<std::size_t>(count), at)) values.push_back(widen(x));
      return values;
    });
  }
  std::size_t place(std::int64_t count) {
    const std::size_t at = size_;
    size_ += (static_cast<std::size_t>(count) * sizeof(float) + 255) / 256 * 256;
    return at;
  }
  tenon_dtype dtype_;
  std::size_t size_ = 256;
  std::mt19937 random_{11};
};

constexpr tenon_dtype dtypes[] = {TENON_DTYPE_F32, TENON_DTYPE_F16, TENON_DTYPE_BF16};

}  // namespace

TEST_CASE("cuda small products: of any size and layout, with all of the epilogue; the same bits by one launch and by several") {
  for (const tenon_dtype dtype : dtypes) {
    CAPTURE(dtype);
    Products products(dtype);
    for (int variant = 0; variant < 4; ++variant) {
      const bool a_transposed = (variant & 1) != 0, b_transposed = (variant & 2) != 0;
      products.add(1, 1, 1, 1, a_transposed, b_transposed);
      products.add(17, 33, 129, 1, a_transposed, b_transposed);
      products.add(5, 40, 300, 3, a_transposed, b_transposed);
      products.add(100, 10, 8, 1, a_transposed, b_transposed);
      products.add(3, 2, 0, 1, a_transposed, b_transposed);
      products.add(6, 20, 30, 4, a_transposed, b_transposed).product.b_step = 0;  // one right side for all entries
      products.add(6, 20, 30, 4, a_transposed, b_transposed).product.a_step = 0;
    }
    for (std::size_t i = 0; i < products.cases.size(); ++i) {
      Case& c = products.cases[i];
      if (i % 2 == 0) c.product.activation = sdk::Activation::relu;
      if (i % 3 == 0) c.product.alpha = -0.5;
      if (i % 4 == 1 && c.batch == 1) c.product.beta = 2, c.product.c_row = c.n, c.product.c_column = 1;
      if (i % 4 == 3 && c.batch == 1) c.product.beta = 1, c.product.c_column = 1;  // a row for all
    }
    products.check();
  }
}

TEST_CASE("cuda small products: large tiles give the bits of small ones") {
  for (const tenon_dtype dtype : dtypes) {
    CAPTURE(dtype);
    Products products(dtype);
    constexpr std::int64_t down = 12, across = 11;
    REQUIRE(down * across >= products.device.multiprocessors());
    products.add(60, 35, 300, 1, true, false);  // small tiles alone, large ones with the next
    products.add(32 * down - 5, 32 * across - 3, 20, 1, false, true).product.activation = sdk::Activation::relu;
    Case& c = products.add(33, 50, 70, 1, false, false);
    c.product.beta = -1, c.product.c_row = 1, c.product.c_column = 33;
    products.add(40, 20, 150, 3, true, true).product.b_step = 0;
    products.check();
  }
}

TEST_CASE("cuda small products: the same bits when they are started before the kernel that they depend on has ended") {
  std::vector<std::vector<float>> results;
  for (const char* const programmatic_launch : {"off", "on"}) {
    Products products(TENON_DTYPE_F32, programmatic_launch);
    products.add(17, 33, 129, 1, true, false);
    products.add(5, 40, 300, 3, false, true);
    products.check();
    if (results.empty()) results = products.results;
    REQUIRE(products.results.size() == results.size());
    for (std::size_t i = 0; i < results.size(); ++i) CHECK(same_bits(products.results[i], results[i]));
    CHECK(products.device.attached.get<EarlyLaunches>(options_of(products.device), products.device, nullptr).enabled ==
          (programmatic_launch == std::string("on")));
  }
}

TEST_CASE("cuda small products: NaN stays in the rows and columns that it is in, also after a relu and in the gradient of one") {
  Products products;
  for (const bool is_relu : {false, true}) {
    Case& c = products.add(20, 18, 30, 1, false, false);
    if (is_relu) c.product.activation = sdk::Activation::relu;
    c.a[3 * 30 + 7] = nan;
    c.b[5 * 18 + 9] = nan;
    std::fill(c.relu_result.begin(), c.relu_result.end(), 1.0f);
    c.relu_result[4 * 18 + 4] = nan;
    c.relu_result[3 * 18 + 1] = 0;
  }
  products.run(true);
  for (const std::size_t i : {0u, 2u}) {
    const std::vector<float>&y = products.results[i], &sums = products.results[i + 1];
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
