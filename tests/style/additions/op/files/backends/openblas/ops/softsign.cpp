// SPDX-License-Identifier: Apache-2.0
// ops/softsign.cpp - vectorised x / (1 + |x|).
#include "simd/foreach_target.h"

#include "elementwise/strided_loop.h"
#include "simd/simd.h"

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
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

/// y = x / (1 + |x|)
template <class T>
void softsign(const sdk::Call& call) {
  constexpr std::int64_t grain = 128 * 1024;  // elements worth a thread of their own, about 20 us
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_all<Softsign, T>));
}

}  // namespace

TENON_KERNEL_WITH(softsign, elementwise_traits, float, double)

}  // namespace tenon::openblas
#endif
