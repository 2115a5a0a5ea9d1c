// SPDX-License-Identifier: Apache-2.0
// ops/softsign.cpp - x / (1 + |x|) by explicit vector code.
#include "instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/softsign.cpp"
#include <hwy/foreach_target.h>

#include "simd.h"
#include "strided_loop.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

struct Softsign {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Div(x, hn::Add(hn::Set(d, 1), hn::Abs(x)));
  }
};

}  // namespace

void softsign_f32(const float* x, float* y, std::int64_t n) {
  map(Softsign{}, x, y, n);
}
void softsign_f64(const double* x, double* y, std::int64_t n) {
  map(Softsign{}, x, y, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

void softsign_of(const float* x, float* y, std::int64_t n) {
  TENON_DISPATCH(softsign_f32)(x, y, n);
}
void softsign_of(const double* x, double* y, std::int64_t n) {
  TENON_DISPATCH(softsign_f64)(x, y, n);
}

/// y = x / (1 + |x|)
template <class T>
void softsign(const sdk::Call& call) {
  constexpr std::int64_t grain = 128 * 1024;  // elements worth a thread of their own, about 20 us
  elementwise<T, T, 1>(call, grain, 0, [](const Segment<T, 1>& s, T* y, std::int64_t n) { softsign_of(s.x[0], y, n); });
}

}  // namespace

TENON_KERNEL_WITH(softsign, elementwise_traits, float, double)

}  // namespace tenon::openblas
#endif
