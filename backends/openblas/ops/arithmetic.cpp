// SPDX-License-Identifier: Apache-2.0
// ops/arithmetic.cpp - abs, sign, ceil, floor, round, sqrt, rsqrt, reciprocal, clip: floats by explicit vector code, integers in plain
// loops that the compiler vectorises for each instruction set.
#include <tenon/sdk/element.h>

#include "simd/foreach_target.h"

#include <type_traits>

#include "elementwise/strided_loop.h"
#include "simd/activations.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

struct Abs {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Abs(x);
  }
  template <class T>
  T operator()(T x) const {
    using U = std::make_unsigned_t<T>;  // the magnitude of the lowest integer wraps to itself
    return static_cast<T>(x < 0 ? U{0} - static_cast<U>(x) : static_cast<U>(x));
  }
};
/// The sign of x; x itself where it is 0 or NaN.
struct Sign {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V zero = hn::Zero(d);
    return hn::IfThenElse(hn::Gt(x, zero), hn::Set(d, 1), hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, -1), x));
  }
  template <class T>
  T operator()(T x) const {
    return static_cast<T>((x > 0) - (x < 0));
  }
};
struct Ceil {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Ceil(x);
  }
};
struct Floor {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Floor(x);
  }
};
struct Round {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Round(x);
  }
};
struct Sqrt {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Sqrt(x);
  }
};
struct Rsqrt {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Div(hn::Set(d, 1), hn::Sqrt(x));
  }
};
struct Reciprocal {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Div(hn::Set(d, 1), x);
  }
};
template <class T>
void clip_all(T low, T high, const T* x, T* y, std::int64_t n) {
  map(Clip<T>{low, high}, x, y, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us from L2.
constexpr std::int64_t grain = 128 * 1024;

/// y = |x|
template <class T>
void abs(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_all<Abs, T>));
}

/// y = -1, 0 or 1; NaN propagates
template <class T>
void sign(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_all<Sign, T>));
}

/// y = the smallest integer not below x
template <class T>
void ceil(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_all<Ceil, T>));
}

/// y = the largest integer not above x
template <class T>
void floor(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_all<Floor, T>));
}

/// y = the nearest integer, halves to even
template <class T>
void round(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_all<Round, T>));
}

/// y = sqrt x; NaN below 0
template <class T>
void sqrt(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_all<Sqrt, T>));
}

/// y = 1 / sqrt x
template <class T>
void rsqrt(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_all<Rsqrt, T>));
}

/// y = 1 / x
template <class T>
void reciprocal(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_all<Reciprocal, T>));
}

/// y = min(max(x, low), high); NaN propagates. For integers, bounds with a fraction are rounded inwards.
template <class T>
void clip(const sdk::Call& call) {
  const sdk::Bounds<T> bounds = sdk::bounds_of<T>(call.attr<tenon_attributes_clip>());
  elementwise<T, T, 1>(call, grain, 0, [bounds, loop = TENON_DISPATCH(clip_all<T>)](const Segment<T, 1>& s, T* y, std::int64_t n) {
    loop(bounds.low, bounds.high, s.x[0], y, n);
  });
}

}  // namespace

TENON_KERNEL_WITH(abs, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(sign, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(ceil, elementwise_traits, float, double)
TENON_KERNEL_WITH(floor, elementwise_traits, float, double)
TENON_KERNEL_WITH(round, elementwise_traits, float, double)
TENON_KERNEL_WITH(sqrt, elementwise_traits, float, double)
TENON_KERNEL_WITH(rsqrt, elementwise_traits, float, double)
TENON_KERNEL_WITH(reciprocal, elementwise_traits, float, double)
TENON_KERNEL_WITH(clip, elementwise_traits, float, double, std::int32_t, std::int64_t)

}  // namespace tenon::openblas
#endif
