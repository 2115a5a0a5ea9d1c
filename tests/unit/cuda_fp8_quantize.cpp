// SPDX-License-Identifier: Apache-2.0
// Quantising to FP8 on the emulation: codes and scales.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "backends/cuda/gemm/fp8_quantize.h"
#include "backends/cuda/kernel/wide.cuh"
#include "cuda_emulation.h"
#include "cuda_host.h"
#include "cuda_testing.h"
#include "fp8_codes.h"

namespace tenon::cuda {
namespace {

using test::e4m3_number;

/// The code of the nearest number, of two the one with an even code; of the sign of x. For |x| up to 448.
int nearest_code(double x) {
  int best = 0;
  for (int code = 1; code < 127; ++code) {
    const double now = std::abs(e4m3_number(code) - std::abs(x)), before = std::abs(e4m3_number(best) - std::abs(x));
    if (now < before || (now == before && code % 2 == 0)) best = code;
  }
  return std::signbit(x) ? best + 128 : best;
}

struct Quantised {
  Fp8State state;
  std::vector<unsigned char> codes;
};

/// Quantises (rows, k), whose elements are in this order or, `turned`, in that of the transpose.
template <class T>
Quantised quantise(const std::vector<float>& x, std::int64_t rows, std::int64_t k, bool turned, std::int64_t entries = 1) {
  Bench bench;
  Stream stream(bench.device);
  const std::size_t count = x.size();
  const DeviceBuffer state(bench.device, stream, 256), codes(bench.device, stream, count),
      partials(bench.device, stream, fp8_partials_bytes);
  DeviceBuffer data(bench.device, stream, narrowed<T>(x));
  const Fp8Tensor tensor{.data = data.at(),
                         .view = turned ? sdk::MatrixView{rows, k, 1, rows} : sdk::MatrixView{rows, k, k, 1},
                         .entries = entries,
                         .step = rows * k,
                         .state = state.at<Fp8State>(),
                         .codes = codes.at()};
  fp8_quantize(stream, sdk::dtype_of<T>, tensor, {.entries = 0}, partials.at());
  return {const_cast<DeviceBuffer&>(state).read<Fp8State>(1)[0], const_cast<DeviceBuffer&>(codes).read<unsigned char>(count)};
}

}  // namespace

TEST_CASE("cuda fp8: every number of bf16 gets the nearest code, of two the even one; NaN and infinities get that of NaN") {
  std::vector<float> x;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float number = widen(sdk::BFloat16{static_cast<std::uint16_t>(bits)});
    if (!std::isfinite(number) || std::abs(number) <= 448) x.push_back(number);
  }
  constexpr std::int64_t k = 16;
  x.resize((x.size() + k - 1) / k * k, -0.0F);
  for (const bool turned : {false, true}) {
    const auto rows = static_cast<std::int64_t>(x.size()) / k;
    const Quantised got = quantise<sdk::BFloat16>(x, rows, k, turned);
    CHECK(got.state.scale == 1);
    CHECK(got.state.amax == 448);
    CHECK(got.state.nonfinite != 0);
    int wrong = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t t = 0; t < k; ++t) {
        const float number = x[static_cast<std::size_t>(turned ? t * rows + row : row * k + t)];
        const int code = got.codes[static_cast<std::size_t>(row * k + t)];
        wrong += std::isfinite(number) ? code != nearest_code(double{number}) : (code & 127) != 127;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("cuda fp8: the scale is the least power of two by which the largest number is at most 448") {
  for (const float amax : {448.0F, 450.0F, 512.0F, 1.0F, 1.75F, 1.7578125F, 3e-5F, 0x1p-99F, 2e20F}) {
    CAPTURE(amax);
    std::vector<float> x(32, 0.0F);
    x[19] = widen(narrow<sdk::BFloat16>(-amax));
    const Quantised got = quantise<sdk::BFloat16>(x, 2, 16, false);
    const double size = std::abs(double{x[19]});
    CHECK(double{got.state.amax} == size);
    CHECK(size <= 448 * double{got.state.scale});
    CHECK(size > 224 * double{got.state.scale});
    CHECK(std::exp2(std::round(std::log2(double{got.state.scale}))) == double{got.state.scale});
    CHECK(got.state.nonfinite == 0);
    CHECK(e4m3_number(got.codes[19]) * double{got.state.scale} == doctest::Approx(double{x[19]}).epsilon(0.0625));
  }
  const Quantised zeros = quantise<sdk::Half>(std::vector<float>(64, 0.0F), 4, 16, false);
  CHECK(zeros.state.amax == 1);
  CHECK(std::all_of(zeros.codes.begin(), zeros.codes.end(), [](unsigned char code) { return code == 0; }));
}

TEST_CASE("cuda fp8: scale and codes of large tensors, whatever the order of blocks and threads") {
  constexpr std::int64_t rows = 130, k = 272, entries = 45;  // more tiles than blocks that find the scale
  std::vector<float> x(static_cast<std::size_t>(entries * rows * k));
  std::mt19937 random(5);
  for (float& v : x) v = std::uniform_real_distribution<float>(-2, 2)(random);
  x[x.size() - 7] = 20;
  std::vector<Quantised> all;
  for (const char* const order : {"ascending", "descending", "7"}) {
    const emulation::testing::Order chosen(order);
    all.push_back(quantise<sdk::Half>(x, rows, k, true, entries));
  }
  for (const Quantised& got : all) {
    CHECK(got.state.scale == 0.0625F);
    CHECK(got.codes == all[0].codes);
  }
  int wrong = 0;
  for (std::int64_t e = 0; e < entries * rows * k; e += 13) {
    const std::int64_t entry = e / (rows * k), row = e / k % rows, t = e % k;
    const float number = widen(narrow<sdk::Half>(x[static_cast<std::size_t>(entry * rows * k + t * rows + row)]));
    wrong += all[0].codes[static_cast<std::size_t>(e)] != nearest_code(double{number} * 16);
  }
  CHECK(wrong == 0);
}

}  // namespace tenon::cuda
