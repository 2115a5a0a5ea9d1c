// SPDX-License-Identifier: Apache-2.0
// Image helpers of the cuda backend: windows, positions of packs, division by invariants.
#include "backends/cuda/kernel/image.cuh"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace tenon::cuda {
namespace {

tenon_attributes_window window(std::int64_t kernel, std::int64_t stride, std::int64_t dilation, std::int64_t before, std::int64_t after) {
  tenon_attributes_window a{};
  a.kernel[0] = kernel;
  a.strides[0] = stride;
  a.dilations[0] = dilation;
  a.pads_before[0] = before;
  a.pads_after[0] = after;
  return a;
}

/// body(axis) for windows of many forms over 1 to 9 elements.
template <class Body>
void for_each_axis(std::int64_t max_dilation, const Body& body) {
  for (std::int64_t size = 1; size <= 9; ++size) {
    for (std::int64_t kernel = 1; kernel <= 4; ++kernel) {
      for (std::int64_t stride = 1; stride <= 3; ++stride) {
        for (std::int64_t dilation = 1; dilation <= max_dilation; ++dilation) {
          for (std::int64_t pad = 0; pad < kernel; ++pad) {
            const std::int64_t last_start = size + 2 * pad - dilation * (kernel - 1) - 1;
            if (last_start >= 0) body(WindowAxis(size, last_start / stride + 1, window(kernel, stride, dilation, pad, pad), 0));
          }
        }
      }
    }
  }
}

TEST_CASE("cuda images: a divisor gives the quotients of the division") {
  constexpr std::int64_t last = 0x7FFFFFFF;
  std::int64_t wrong = 0;
  for (std::int64_t d : {1, 2, 3, 5, 6, 7, 9, 10, 56, 63, 64, 65, 112, 641, 12544, 65537, 1 << 30, (1 << 30) + 1, 0x7FFFFFFE, 0x7FFFFFFF}) {
    const Divisor by(d);
    for (std::int64_t q : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, last / d / 2, last / d - 1, last / d, last / d + 1}) {
      for (std::int64_t n : {q * d - 1, q * d, q * d + 1, q * d + d - 1}) {
        if (n >= 0) wrong += by.quotient(n) != n / d;
        if (n >= 0 && n <= last) wrong += by.quotient(static_cast<std::int32_t>(n)) != n / d;
      }
    }
    wrong += by.quotient(last) != last / d;
    wrong += by.quotient(last + 1) != (last + 1) / d;
    wrong += by.quotient(std::int64_t{1} << 50) != (std::int64_t{1} << 50) / d;
  }
  CHECK(wrong == 0);
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 20000; ++trial) {
    const auto n = static_cast<std::int64_t>(random() >> (1 + random() % 63)),
               d = std::max<std::int64_t>(static_cast<std::int64_t>(random() >> (1 + random() % 63)), 1);
    const Divisor by(d);
    for (const std::int64_t near : {n, n / d * d, n / d * d - 1, std::numeric_limits<std::int64_t>::max()}) {
      if (near >= 0) wrong += by.quotient(near) != near / d;
    }
  }
  CHECK(wrong == 0);
  CHECK(Divisor(std::int64_t{1} << 40).quotient((std::int64_t{5} << 40) + 3) == 5);
  CHECK(Divisor(std::int64_t{1} << 40).quotient(std::int32_t{7}) == 0);
}

TEST_CASE("cuda images: windows are computed in 32 bits only if all their positions fit") {
  const auto is_small = [](std::int64_t size, std::int64_t windows, const tenon_attributes_window& a) {
    return WindowAxis(size, windows, a, 0).is_small();
  };
  constexpr std::int64_t large = std::int64_t{1} << 30;
  CHECK(is_small(112, 56, window(3, 2, 1, 1, 1)));
  CHECK_FALSE(is_small(large, 56, window(3, 2, 1, 1, 1)));
  CHECK_FALSE(is_small(112, 1, window(3, large, 1, 1, 1)));
  CHECK_FALSE(is_small(112, 1, window(1, 1, large, 0, 0)));
  CHECK_FALSE(is_small(112, 1, window(large, 1, 1, large, large)));
  CHECK_FALSE(is_small(112, large / 1024, window(3, 2048, 1, 1, 1)));
}

TEST_CASE("cuda images: taps are the elements of a window inside the image") {
  std::int64_t wrong = 0;
  for_each_axis(3, [&](const WindowAxis& axis) {
    for (std::int64_t w = 0; w < axis.windows; ++w) {
      std::vector<std::int64_t> expected, got;
      for (std::int64_t k = 0; k < axis.kernel; ++k) {
        const std::int64_t at = w * axis.stride - axis.before + k * axis.dilation;
        if (at >= 0 && at < axis.size) expected.push_back(at);
      }
      const Range taps = axis.taps(w);
      for (std::int64_t k = 0; k < taps.count; ++k) got.push_back(taps.first + k * axis.dilation);
      wrong += got != expected;
      const RangeOf<std::int32_t> small = axis.taps(static_cast<std::int32_t>(w));
      wrong += small.first != taps.first || small.count != taps.count || !axis.is_small();
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("cuda images: an element is covered by the windows that have it as a tap") {
  std::int64_t wrong = 0;
  for_each_axis(1, [&](const WindowAxis& axis) {
    for (std::int64_t element = 0; element < axis.size; ++element) {
      std::vector<std::int64_t> expected, got;
      for (std::int64_t w = 0; w < axis.windows; ++w) {
        const Range taps = axis.taps(w);
        if (element >= taps.first && element < taps.first + taps.count) expected.push_back(w);
      }
      const Range seen = axis.seen_by(element);
      for (std::int64_t w = 0; w < seen.count; ++w) got.push_back(seen.first + w);
      wrong += got != expected;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("cuda images: packs are indexed in memory order, and a walk goes row by row and stops at the end") {
  ImageShape x;
  x.outer = 2;
  x.rows = 3;
  x.columns = 5;
  x.inner = 8;
  const Packs packs(x, 4);
  REQUIRE(packs.count == 2 * 3 * 5 * 2);
  std::int64_t number = 0, wrong = 0;
  for (std::int64_t p = 0; p < packs.count; ++p, number += 4) {
    const Packs::Place at = packs[p];
    wrong += ((at.outer * 3 + at.row) * 5 + at.column) * 8 + at.inner != number;
    const Packs::PlaceOf<std::int32_t> small = packs[static_cast<std::int32_t>(p)];
    wrong += small.outer != at.outer || small.row != at.row || small.column != at.column || small.inner != at.inner;
  }
  CHECK(wrong == 0);

  PlaneLoop loop({1, 2}, {2, 3}, 3, 2, 10);  // rows 1 and 4, columns 2, 4 and 6 of a plane 10 wide
  std::vector<std::int64_t> places;
  for (std::int64_t t = 0; t < loop.count + 2; ++t, loop.advance()) places.push_back(loop.place);
  CHECK(places == std::vector<std::int64_t>{12, 14, 16, 42, 44, 46, 46, 46});
}

}  // namespace
}  // namespace tenon::cuda
