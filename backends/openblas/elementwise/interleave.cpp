// SPDX-License-Identifier: Apache-2.0
#include "elementwise/interleave.h"

#include "simd/foreach_target.h"
#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

template <std::int64_t lines, class E>
void interleave_of(const E* x, std::int64_t x_step, E* y, std::int64_t n) {
  const Wide<E> d;
  std::int64_t i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + x_step + i);
    if constexpr (lines == 2) hn::StoreInterleaved2(a, b, d, y + 2 * i);
    if constexpr (lines == 3) hn::StoreInterleaved3(a, b, hn::LoadU(d, x + 2 * x_step + i), d, y + 3 * i);
    if constexpr (lines == 4) {
      hn::StoreInterleaved4(a, b, hn::LoadU(d, x + 2 * x_step + i), hn::LoadU(d, x + 3 * x_step + i), d, y + 4 * i);
    }
  }
  for (; i < n; ++i) {
    for (std::int64_t j = 0; j < lines; ++j) y[lines * i + j] = x[j * x_step + i];
  }
}

template <class E>
void interleave(const E* x, std::int64_t x_step, E* y, std::int64_t n, std::int64_t lines) {
  if (lines == 2) return interleave_of<2>(x, x_step, y, n);
  if (lines == 3) return interleave_of<3>(x, x_step, y, n);
  interleave_of<4>(x, x_step, y, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

void interleave_lines(const std::uint8_t* x, std::int64_t x_step, std::uint8_t* y, std::int64_t n, std::int64_t lines) {
  TENON_DISPATCH(interleave<std::uint8_t>)(x, x_step, y, n, lines);
}
void interleave_lines(const std::uint16_t* x, std::int64_t x_step, std::uint16_t* y, std::int64_t n, std::int64_t lines) {
  TENON_DISPATCH(interleave<std::uint16_t>)(x, x_step, y, n, lines);
}
void interleave_lines(const std::uint32_t* x, std::int64_t x_step, std::uint32_t* y, std::int64_t n, std::int64_t lines) {
  TENON_DISPATCH(interleave<std::uint32_t>)(x, x_step, y, n, lines);
}

}  // namespace tenon::openblas
#endif
