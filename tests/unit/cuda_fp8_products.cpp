// SPDX-License-Identifier: Apache-2.0
// Products in FP8 on the emulation: results and their bounds, and what is computed in the dtype of the operands instead.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "backends/cuda/gemm/fp8_products.h"
#include "backends/cuda/kernel/wide.cuh"
#include "cuda_host.h"
#include "cuda_testing.h"

namespace tenon::cuda {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();

template <class T>
std::vector<float> widened(const std::vector<T>& x) {
  std::vector<float> y;
  for (const T v : x) y.push_back(widen(v));
  return y;
}

/// A product y = relu_grad(activation(alpha a b + beta c + bias)) of T, with what it should be.
template <class T>
struct Case {
  std::int64_t m = 33, n = 32, k = 48, batch = 1;
  bool a_turned = false, b_turned = false, a_shared = false, b_shared = false;
  std::vector<float> a, b, c, bias, relu_result;  ///< the last three may be empty
  float alpha = 1, beta = 0;
  sdk::Activation activation{};
  bool packs_b = false;
  std::size_t y_offset = 0;  ///< bytes by which y is off its alignment

  std::int64_t a_step() const { return a_shared ? 0 : m * k; }
  std::int64_t b_step() const { return b_shared ? 0 : n * k; }
  void resize() {
    a.resize(static_cast<std::size_t>((a_shared ? 1 : batch) * m * k));
    b.resize(static_cast<std::size_t>((b_shared ? 1 : batch) * n * k));
  }
  float& at_a(std::int64_t entry, std::int64_t i, std::int64_t t) {
    return a[static_cast<std::size_t>(entry * a_step() + (a_turned ? t * m + i : i * k + t))];
  }
  float& at_b(std::int64_t entry, std::int64_t t, std::int64_t j) {
    return b[static_cast<std::size_t>(entry * b_step() + (b_turned ? j * k + t : t * n + j))];
  }
  /// Integers that E4M3 has, below 9.
  void fill_with_integers(unsigned seed) {
    std::mt19937 random(seed);
    resize();
    for (std::vector<float>* x : {&a, &b}) {
      for (float& v : *x) v = static_cast<float>(std::uniform_int_distribution<int>(-8, 8)(random));
    }
  }
  void fill(unsigned seed, float a_size, float b_size) {
    std::mt19937 random(seed);
    resize();
    for (float& v : a) v = widen(narrow<T>(a_size * std::normal_distribution<float>()(random)));
    for (float& v : b) v = widen(narrow<T>(b_size * std::normal_distribution<float>()(random)));
  }
  Product product() const {
    Product p{.dtype = sdk::dtype_of<T>,
              .a_view = a_turned ? sdk::MatrixView{m, k, 1, m} : sdk::MatrixView{m, k, k, 1},
              .b_view = b_turned ? sdk::MatrixView{k, n, 1, k} : sdk::MatrixView{k, n, n, 1},
              .alpha = double{alpha},
              .beta = double{beta},
              .activation = activation};
    if (batch > 1) {
      p.batch.count = p.batch.sizes[0] = batch;
      p.batch.rank = 1;
      p.batch.strides[0][0] = a_step();
      p.batch.strides[1][0] = b_step();
    }
    return p;
  }
  Fp8Shape shape() const {
    const Product p = product();
    SmallProduct described;
    described.dtype = p.dtype;
    described.a_view = p.a_view;
    described.b_view = p.b_view;
    described.batch = batch;
    described.a_step = a_step();
    described.b_step = b_step();
    described.alpha = double{alpha};
    Fp8Shape shape = fp8_shape(described);
    shape.b_packed = packs_b;
    return shape;
  }
  /// The product by a device with this option.
  std::vector<float> run(const char* fp8, Bench* on = nullptr) const {
    Bench own("fp8", fp8);
    Bench& bench = on == nullptr ? own : *on;
    Stream stream(bench.device);
    const auto results = static_cast<std::size_t>(batch * m * n);
    const auto space = [](std::size_t elements) { return std::max<std::size_t>(elements, 1) * sizeof(T); };
    DeviceBuffer of_a(bench.device, stream, narrowed<T>(a)), of_b(bench.device, stream, narrowed<T>(b));
    DeviceBuffer of_c(bench.device, stream, space(c.size())), of_bias(bench.device, stream, space(bias.size()));
    DeviceBuffer of_relu(bench.device, stream, space(relu_result.size())), y(bench.device, stream, results * sizeof(T) + 256);
    of_c.write(narrowed<T>(c));
    of_bias.write(narrowed<T>(bias));
    of_relu.write(narrowed<T>(relu_result));
    Product p = product();
    p.a = of_a.at();
    p.b = of_b.at();
    p.y = y.at(y_offset);
    p.c = c.empty() ? nullptr : of_c.at();
    p.bias = bias.empty() ? nullptr : of_bias.at();
    p.relu_result = relu_result.empty() ? nullptr : of_relu.at();
    if (fp8_choice_of(bench.device).takes(shape())) p.fp8.shape = shape();
    const DeviceBuffer workspace(bench.device, stream, product_workspace_bytes(static_cast<std::int64_t>(results)));
    const DeviceBuffer memory(bench.device, stream, std::max<std::size_t>(fp8_scratch_bytes(shape()), 1));
    const DeviceBuffer packed(bench.device, stream, Fp8Packed::size_bytes(shape()));
    p.fp8.memory = memory.at();
    if (packs_b) {
      sdk::Operand operand;
      operand.data = of_b.at();
      operand.dtype = sdk::dtype_of<T>;
      fp8_pack(stream, operand, p.b_view, shape(), packed.at());
      const Fp8Packed copy(packed.at(), shape());
      p.fp8.packed_b = packed.at();
      p.b = copy.elements;
      p.b_view = copy.view;
    }
    multiply(stream, p, workspace.at());
    return widened(y.read<T>(results, y_offset));
  }
  double sum(std::int64_t entry, std::int64_t i, std::int64_t j, bool of_sizes) {
    double total = 0;
    for (std::int64_t t = 0; t < k; ++t) {
      const double term = double{at_a(entry, i, t)} * double{at_b(entry, t, j)};
      total += of_sizes ? std::abs(term) : term;
    }
    return total;
  }
  /// Calls body(element, entry, row, column) for every result.
  template <class Body>
  void for_each(const Body& body) const {
    for (std::int64_t e = 0; e < batch * m * n; ++e) body(static_cast<std::size_t>(e), e / (m * n), e / n % m, e % n);
  }
  /// Whether these are the exact results, rounded once; those of a relu and its gradient included.
  bool is_exact(const std::vector<float>& y) {
    bool exact = true;
    for_each([&](std::size_t e, std::int64_t entry, std::int64_t i, std::int64_t j) {
      double expected = double{alpha} * sum(entry, i, j, false);
      if (!c.empty()) expected += double{beta} * double{c[e]};
      if (!bias.empty()) expected += double{bias[static_cast<std::size_t>(j)]};
      float rounded = widen(narrow<T>(static_cast<float>(expected)));
      if (activation == sdk::Activation::relu) rounded = std::max(rounded, 0.0F);
      if (!relu_result.empty() && !(relu_result[e] > 0)) rounded = 0;
      exact = exact && rounded == y[e];
    });
    return exact;
  }
  /// Whether these are the results up to the errors of E4M3: the sums of |a| db + |b| da + da db.
  bool is_within_bounds(const std::vector<float>& y) {
    const auto error = [](float x, float amax) {
      // A relative error of 2^-4 from half of the last of 4 bits, and that of numbers below the normal ones, half of 2^-9 times a scale
      // of at most amax / 224.
      return std::max(std::abs(double{x}) * 0x1p-4, 0x1p-10 * double{amax} / 224);
    };
    const auto amax_of = [](const std::vector<float>& x) {
      float amax = 0;
      for (const float v : x) amax = std::max(amax, std::abs(v));
      return amax;
    };
    const float a_max = amax_of(a), b_max = amax_of(b);
    const double rounding = sdk::dtype_of<T> == TENON_DTYPE_F16 ? 0x1p-11 : 0x1p-8;
    bool within = true;
    for_each([&](std::size_t e, std::int64_t entry, std::int64_t i, std::int64_t j) {
      double bound = 0;
      for (std::int64_t t = 0; t < k; ++t) {
        const float x = at_a(entry, i, t), z = at_b(entry, t, j);
        const double dx = error(x, a_max), dz = error(z, b_max);
        bound += std::abs(double{x}) * dz + std::abs(double{z}) * dx + dx * dz;
      }
      const double expected = sum(entry, i, j, false);
      bound += rounding * (std::abs(expected) + bound) + 0x1p-20 * sum(entry, i, j, true) + 0x1p-24;
      within = within && std::abs(expected - double{y[e]}) <= bound;
    });
    return within;
  }
};

/// The same NaN and infinities, and finite numbers in the same places.
bool same_kinds(const std::vector<float>& a, const std::vector<float>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) {
    same = std::isnan(a[i]) == std::isnan(b[i]) && std::isinf(a[i]) == std::isinf(b[i]) && (!std::isinf(a[i]) || a[i] == b[i]);
  }
  return same;
}

}  // namespace

TEST_CASE_TEMPLATE("cuda fp8: products of numbers that E4M3 has are exact, for all transposes, batches and epilogues", T, sdk::Half,
                   sdk::BFloat16) {
  for (int variant = 0; variant < 4; ++variant) {
    for (int batch = 0; batch < 4; ++batch) {  // none, two batches, one left factor for all, one right factor for all
      CAPTURE(variant);
      CAPTURE(batch);
      Case<T> c;
      c.a_turned = (variant & 1) != 0, c.b_turned = (variant & 2) != 0;
      c.batch = batch == 0 ? 1 : 3;
      c.a_shared = batch == 2, c.b_shared = batch == 3;
      c.fill_with_integers(static_cast<unsigned>(variant));
      REQUIRE(c.shape().k == c.k);
      CHECK(c.is_exact(c.run("all")));
      for (std::int64_t e = 0; e < c.batch * c.m * c.n; ++e) c.c.push_back(static_cast<float>(e % 19 - 9));
      for (std::int64_t j = 0; j < c.n; ++j) c.bias.push_back(static_cast<float>(j % 5 - 2));
      c.alpha = 0.5, c.beta = -2;
      CHECK(c.is_exact(c.run("all")));
      c.activation = sdk::Activation::relu;
      for (std::int64_t e = 0; e < c.batch * c.m * c.n; ++e) c.relu_result.push_back(static_cast<float>(e % 3) - 1);
      CHECK(c.is_exact(c.run("all")));
      if (c.batch > 1 && !c.b_shared) continue;
      c.packs_b = true;
      CHECK(c.is_exact(c.run("all")));
    }
  }
}

TEST_CASE_TEMPLATE("cuda fp8: errors are within those of E4M3's three bits, for any size of the numbers", T, sdk::Half, sdk::BFloat16) {
  for (const auto& [a_size, b_size] : {std::pair(1.0F, 1.0F), std::pair(30.0F, 0.02F), std::pair(1e-3F, 1e3F)}) {
    Case<T> c;
    c.a_turned = true;
    c.k = 256;
    c.fill(3, a_size, b_size);
    const std::vector<float> y = c.run("all"), wide = c.run("off");
    CHECK(c.is_within_bounds(y));
    CHECK_FALSE(same_bits(y, wide));  // that it ran in FP8
    CHECK(same_bits(y, c.run("all")));
    c.packs_b = true;
    CHECK(same_bits(y, c.run("all")));
  }
}

TEST_CASE_TEMPLATE("cuda fp8: NaN and infinities are those of the product in its dtype", T, sdk::Half, sdk::BFloat16) {
  for (int variant = 0; variant < 6; ++variant) {
    CAPTURE(variant);
    Case<T> c;
    c.b_turned = variant % 2 == 0;
    c.packs_b = variant >= 3;
    c.batch = variant == 2 ? 2 : 1;
    c.fill(7, 1, 1);
    c.at_a(0, 3, 5) = infinity;
    c.at_b(0, 5, 7) = 0;                                           // NaN
    c.at_b(0, 5, 8) = widen(narrow<T>(variant == 1 ? 1e-7F : 3));  // no zero, though its code is
    c.at_a(0, 9, 1) = -infinity;
    c.at_a(0, 9, 2) = infinity;
    c.at_a(0, 12, 40) = nan;
    c.at_b(0, 30, 20) = infinity;
    if (variant == 4) c.activation = sdk::Activation::relu;
    if (variant == 5) {
      c.bias.assign(static_cast<std::size_t>(c.n), 0.5F);
      c.bias[4] = nan;
      c.bias[5] = -infinity;
    }
    const std::vector<float> y = c.run("all"), wide = [&] {
      Case<T> other = c;
      other.packs_b = false;
      return other.run("off");
    }();
    CHECK(same_kinds(y, wide));
    CHECK_FALSE(same_bits(y, wide));  // the other results are those of FP8
    CHECK(std::isnan(y[3 * 32 + 7]));
    CHECK(std::isinf(y[3 * 32 + 8]));
  }
}

TEST_CASE("cuda fp8: rounding the factors may take a result of f16 beyond its range, or keep it below") {
  for (const bool packs_b : {false, true}) {
    Case<sdk::Half> c;
    c.k = 16;
    c.packs_b = packs_b;
    c.resize();
    // E4M3 has 16, 18 and 20, and the second factors. The products in f16 are 65,340 and 68,040, in FP8 69,120 and 64,512.
    for (std::int64_t t = 0; t < c.k; ++t) {
      for (std::int64_t i = 0; i < c.m; ++i) c.at_a(0, i, t) = (i % 2 == 0 ? 17.015625F : 18.984375F) * (i % 4 < 2 ? 1.0F : -1.0F);
      for (std::int64_t j = 0; j < c.n; ++j) c.at_b(0, t, j) = j % 2 == 0 ? 240.0F : 224.0F;
    }
    const std::vector<float> y = c.run("all");
    Case<sdk::Half> other = c;
    other.packs_b = false;
    const std::vector<float> wide = other.run("off");
    const auto at = [&](const std::vector<float>& results, std::int64_t i, std::int64_t j) {
      return results[static_cast<std::size_t>(i * c.n + j)];
    };
    CHECK(at(wide, 0, 0) == 65344);  // 16 x 17.015625 x 240, in the steps of 32 that f16 has there
    CHECK(at(y, 0, 0) == infinity);
    CHECK(at(y, 2, 0) == -infinity);
    CHECK(at(wide, 1, 1) == infinity);
    CHECK(at(y, 1, 1) == 64512);
    CHECK(at(y, 3, 1) == -64512);
  }
}

TEST_CASE("cuda fp8: where scales leave the range of f32, results are those of the product in its dtype") {
  for (const auto& [a_size, b_size] :
       {std::pair(1e-35F, 1e30F), std::pair(1e30F, 1e-35F), std::pair(1e-20F, 1e-12F), std::pair(1e18F, 1e18F), std::pair(1e-40F, 1.0F)}) {
    const float size = a_size;
    CAPTURE(size);
    Case<sdk::BFloat16> c;
    c.fill(4, size, b_size);
    const std::vector<float> y = c.run("all"), wide = c.run("off");
    CHECK(same_kinds(y, wide));
    bool near = true;
    c.for_each([&](std::size_t e, std::int64_t entry, std::int64_t i, std::int64_t j) {
      const double bound = 0x1p-7 * std::abs(double{wide[e]}) + 0x1p-20 * c.sum(entry, i, j, true) + 0x1p-133;
      near = near && std::abs(double{y[e]} - double{wide[e]}) <= bound;
    });
    CHECK(near);
  }
}

TEST_CASE("cuda fp8: which products it computes") {
  Case<sdk::BFloat16> c;
  const auto possible = [&] { return c.shape().k > 0; };
  CHECK(possible());
  c.k = 40;
  CHECK_FALSE(possible());
  c.k = 48, c.n = 30;
  CHECK_FALSE(possible());
  c.n = 32, c.m = 1;
  CHECK(possible());
  c.alpha = 0;
  CHECK_FALSE(possible());
  c.alpha = 1e-6F;
  CHECK_FALSE(possible());
  c.alpha = -0.125F;
  CHECK(possible());
  SmallProduct f32;
  f32.dtype = TENON_DTYPE_F32;
  f32.a_view = f32.b_view = {64, 64, 64, 1};
  CHECK(fp8_shape(f32).k == 0);

  const auto saves = [](std::int64_t m, std::int64_t n, std::int64_t k, bool packed = false, std::int64_t batch = 1) {
    return fp8_saved_seconds({.m = m, .n = n, .k = k, .a_entries = batch, .b_entries = batch, .b_packed = packed}) > 0;
  };
  CHECK(saves(4096, 4096, 4096));
  CHECK(saves(8192, 8192, 8192));
  CHECK(saves(2608, 2608, 2608));
  CHECK_FALSE(saves(2496, 2496, 2496));
  CHECK(saves(2096, 2096, 2096, true));
  CHECK_FALSE(saves(2000, 2000, 2000, true));
  CHECK_FALSE(saves(16, 4096, 4096));            // two operations for each byte of weights and less
  CHECK_FALSE(saves(512, 512, 64, false, 256));  // scores of attention
  CHECK(saves(2048, 4096, 2048, true));
  const auto takes = [](const char* option, const Fp8Shape& shape) {
    Bench bench("fp8", option);
    return fp8_choice_of(bench.device).takes(shape);
  };
  const Fp8Shape large{.m = 4096, .n = 4096, .k = 4096}, tiny{.m = 16, .n = 16, .k = 16};
  CHECK_FALSE(takes("off", large));
  CHECK(takes("auto", large));
  CHECK_FALSE(takes("auto", tiny));
  CHECK(takes("all", tiny));
  CHECK_FALSE(takes("all", Fp8Shape{}));
}

TEST_CASE("cuda fp8: sizes and addresses that cuBLASLt does not take are computed in the dtype of the operands") {
  Case<sdk::BFloat16> c;
  for (const std::int64_t k : {48, 47}) {
    c.k = k;
    c.y_offset = k == 48 ? 2 : 0;
    c.fill(9, 1, 1);
    const std::vector<float> wide = c.run("off");
    CHECK(same_bits(c.run("all"), wide));
    if (c.shape().k == 0) continue;
    c.packs_b = true;
    CHECK(same_bits(c.run("all"), wide));
  }
}

TEST_CASE("cuda fp8: a GPU below compute capability 8.9 computes in the dtype of the operands, and one warning says so") {
  ::setenv("TENON_CUDA_EMULATION_CAPABILITY", "80", 1);
  Bench old("fp8", "all");
  Case<sdk::BFloat16> c;
  c.fill(9, 1, 1);
  const std::vector<float> y = c.run("all", &old);
  CHECK(same_bits(y, c.run("all", &old)));
  ::unsetenv("TENON_CUDA_EMULATION_CAPABILITY");
  REQUIRE(old.host.warnings.size() == 1);
  CHECK_MESSAGE(contains(old.host.warnings[0], "backends.options.cuda.fp8: cuda:0 has compute capability 8.0"), old.host.warnings[0]);
  CHECK(same_bits(y, c.run("off")));
  CHECK_FALSE(same_bits(y, c.run("all")));
}

TEST_CASE("cuda fp8: the log says once which product runs in FP8") {
  Bench bench("fp8", "all");
  Case<sdk::Half> c;
  c.fill(9, 1, 1);
  c.run("all", &bench);
  c.run("all", &bench);
  REQUIRE(bench.host.lines.size() == 1);
  CHECK(bench.host.lines[0] == "product of f16 (33,48) by (48,32), batch 1: in FP8");
}

}  // namespace tenon::cuda
