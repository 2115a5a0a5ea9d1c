// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_scaled_rows.h"

#include "simd/foreach_target.h"

#include "simd/bf16.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void scale_all(const T* x, const T* scale, std::int64_t channels, std::int64_t pixels, std::int64_t begin, std::int64_t end, T* out,
               std::int64_t step) {
  const Wide<Computed<T>> d;
  const std::int64_t whole = channels - channels % lanes(d);
  for (std::int64_t row = begin; row < end; ++row, out += step) {
    const T* const from = x + row * channels;
    const T* const by = scale + row / pixels * channels;
    for (std::int64_t c = 0; c < whole; c += lanes(d)) {
      store_rounded(hn::Mul(load_stored(d, from + c), load_stored(d, by + c)), d, out + c);
    }
    const std::int64_t left = channels - whole;
    if (left == 0) continue;
    const auto product = hn::Mul(load_stored_first(d, from + whole, left), load_stored_first(d, by + whole, left));
    store_rounded_first(product, d, out + whole, left);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

template <class T>
void scale_rows(const T* x, const T* scale, std::int64_t channels, std::int64_t pixels, std::int64_t begin, std::int64_t end, T* out,
                std::int64_t step) {
  TENON_DISPATCH(scale_all<T>)(x, scale, channels, pixels, begin, end, out, step);
}

template void scale_rows(const sdk::BFloat16*, const sdk::BFloat16*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, sdk::BFloat16*,
                         std::int64_t);
template void scale_rows(const float*, const float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, float*, std::int64_t);
template void scale_rows(const double*, const double*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, double*, std::int64_t);

}  // namespace tenon::openblas
#endif
