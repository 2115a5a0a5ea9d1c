// SPDX-License-Identifier: Apache-2.0
// ops/binary.cpp - add, sub, mul, div, pow, maximum, minimum with NumPy broadcasting: floats by explicit vector code, integers in plain
// loops that the compiler vectorises for each instruction set.
#include "simd/foreach_target.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>

#include "elementwise/half.h"
#include "elementwise/strided_loop.h"
#include "simd/bf16.h"
#include "simd/simd.h"
#include "simd/wide_math.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// F on integers, which wrap: the computation is unsigned.
template <class F, class T>
T wrapping(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(F{}(static_cast<U>(a), static_cast<U>(b)));
}

struct Add {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Add(a, b);
  }
  template <class T>
  T operator()(T a, T b) const {
    return wrapping<std::plus<>>(a, b);
  }
};
struct Sub {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Sub(a, b);
  }
  template <class T>
  T operator()(T a, T b) const {
    return wrapping<std::minus<>>(a, b);
  }
};
struct Mul {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Mul(a, b);
  }
  template <class T>
  T operator()(T a, T b) const {
    return wrapping<std::multiplies<>>(a, b);
  }
};
struct Div {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Div(a, b);
  }
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) throw sdk::Error(TENON_INVALID_ARGUMENT, "div: an integer divided by zero; expected divisors other than 0");
    return b == -1 ? wrapping<std::minus<>>(T{0}, a) : static_cast<T>(a / b);  // the lowest value divided by -1 wraps to itself
  }
};
/// a unless b is larger or NaN: then b.
struct Maximum {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
  }
  template <class T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};
struct Minimum {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
  }
  template <class T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};

/// e^(b log |a|), negated for negative a and odd integer b. Zeros, infinities and NaN go through the C library.
struct Pow {
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector a, DoubleVector b) const {
    const DoubleVector zero = hn::Zero(d), inf = hn::Set(d, std::numeric_limits<double>::infinity());
    const auto usual = hn::And(hn::And(hn::Lt(hn::Abs(a), inf), hn::Lt(hn::Abs(b), inf)), hn::Ne(a, zero));
    if (!hn::AllTrue(d, usual)) return lane_by_lane(d, a, b);
    const DoubleVector size = exp_wide(d, hn::Mul(b, log_wide(d, hn::Abs(a))));
    const auto negative = hn::Lt(a, zero);
    if (hn::AllFalse(d, negative)) return size;
    const DoubleVector half = hn::Mul(b, hn::Set(d, 0.5));
    const auto whole = hn::Eq(hn::Round(b), b), even = hn::Eq(hn::Round(half), half);
    const DoubleVector real = hn::IfThenElse(even, size, hn::Neg(size));
    const DoubleVector powers = hn::IfThenElse(whole, real, hn::Set(d, std::numeric_limits<double>::quiet_NaN()));
    return hn::IfThenElse(negative, powers, size);
  }

  static HWY_NOINLINE DoubleVector lane_by_lane(WideDouble d, DoubleVector a, DoubleVector b) {
    HWY_ALIGN double bases[HWY_MAX_BYTES / sizeof(double)];
    HWY_ALIGN double exponents[HWY_MAX_BYTES / sizeof(double)];
    hn::Store(a, d, bases);
    hn::Store(b, d, exponents);
    for (std::int64_t i = 0; i < lanes(d); ++i) bases[i] = std::pow(bases[i], exponents[i]);
    return hn::Load(d, bases);
  }
};

/// y[i] = a[i * step_a] ^ b[i * step_b], steps 0 or 1.
void pow_wide(const float* a, std::int64_t step_a, const float* b, std::int64_t step_b, float* y, std::int64_t n) {
  const WideDouble d;
  const hn::Rebind<float, WideDouble> narrow;
  const auto load = [&](const float* x, std::int64_t step, std::int64_t i) {
    if (step == 0) return hn::Set(d, double{*x});
    return hn::PromoteTo(d, n - i < lanes(d) ? load_first(narrow, x + i, n - i, 1.0f) : hn::LoadU(narrow, x + i));
  };
  for (std::int64_t i = 0; i < n; i += lanes(d)) {
    const auto result = rounded_to_f32(d, Pow{}(d, load(a, step_a, i), load(b, step_b, i)));
    if (n - i < lanes(d)) {
      store_first(result, narrow, y + i, n - i);
    } else {
      hn::StoreU(result, narrow, y + i);
    }
  }
}

/// x -> op(x, b) and x -> op(a, x) for one element b or a.
template <class Op, class T>
struct WithRight {
  T b;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Op{}(d, x, hn::Set(d, b));
  }
  T operator()(T x) const { return Op{}(x, b); }
};
template <class Op, class T>
struct WithLeft {
  T a;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Op{}(d, hn::Set(d, a), x);
  }
  T operator()(T x) const { return Op{}(a, x); }
};

template <class Op, class T>
void map_with_scalars(const Segment<T, 2>& s, T* y, std::int64_t n) {
  if (s.scalars == 1) return map(WithLeft<Op, T>{*s.x[0]}, s.x[1], y, n);
  if (s.scalars == 2) return map(WithRight<Op, T>{*s.x[1]}, s.x[0], y, n);
  map(Op{}, s.x[0], s.x[1], y, n);
}

/// Sums of bf16 in f32, rounded once.
void add_bf16(const Segment<sdk::BFloat16, 2>& s, sdk::BFloat16* y, std::int64_t n) {
  const Floats d;
  const bool one_a = s.scalars == 1, one_b = s.scalars == 2;
  const sdk::BFloat16 *a = s.x[0], *b = s.x[1];
  if (one_a || one_b) {
    const auto one = hn::Set(d, to_float(one_a ? *a : *b));
    const sdk::BFloat16* const x = one_a ? b : a;
    for (std::int64_t i = 0; i < n; i += lanes(d)) store(hn::Add(load(d, x + i, n - i), one), d, y + i, n - i);
    return;
  }
  std::int64_t i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) store_rounded(hn::Add(load_stored(d, a + i), load_stored(d, b + i)), d, y + i);
  if (i < n) store_rounded_first(hn::Add(load_stored_first(d, a + i, n - i), load_stored_first(d, b + i, n - i)), d, y + i, n - i);
}

void pow_f32(const Segment<float, 2>& s, float* y, std::int64_t n) {
  if (s.scalars == 2 && *s.x[1] == 2) return map(Mul{}, s.x[0], s.x[0], y, n);
  pow_wide(s.x[0], s.scalars == 1 ? 0 : 1, s.x[1], s.scalars == 2 ? 0 : 1, y, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements worth a thread of their own, about 20 us: from L2, and for a logarithm and an exponential per element.
constexpr std::int64_t cheap = 128 * 1024;
constexpr std::int64_t costly = 16 * 1024;

template <class T>
void two_operands(const sdk::Call& call, std::int64_t grain, PairLoop<T, T> loop) {
  elementwise<T, T, 2>(call, grain, 0b11, loop);
}

struct Power {
  double operator()(double a, double b) const { return std::pow(a, b); }
};

/// y = a + b
template <class T>
void add(const sdk::Call& call) {
  if constexpr (std::is_same_v<T, sdk::BFloat16>) {
    two_operands<T>(call, cheap, TENON_DISPATCH(add_bf16));
  } else {
    two_operands<T>(call, cheap, TENON_DISPATCH(map_with_scalars<Add, T>));
  }
}

/// y = a - b
template <class T>
void sub(const sdk::Call& call) {
  two_operands<T>(call, cheap, TENON_DISPATCH(map_with_scalars<Sub, T>));
}

/// y = a b, elementwise
template <class T>
void mul(const sdk::Call& call) {
  two_operands<T>(call, cheap, TENON_DISPATCH(map_with_scalars<Mul, T>));
}

/// y = a / b by IEEE 754; integer division truncates.
///
/// Errors  INVALID_ARGUMENT for an integer divided by zero.
template <class T>
void div(const sdk::Call& call) {
  two_operands<T>(call, cheap, TENON_DISPATCH(map_with_scalars<Div, T>));
}

/// y = a^b, by IEEE 754's pow
template <class T>
void pow(const sdk::Call& call) {
  if constexpr (std::is_same_v<T, float>) {
    two_operands<T>(call, costly, TENON_DISPATCH(pow_f32));
  } else {
    two_operands<T>(call, costly, map_pairs<Power>);
  }
}

/// y = the larger of a and b; NaN propagates
template <class T>
void maximum(const sdk::Call& call) {
  two_operands<T>(call, cheap, TENON_DISPATCH(map_with_scalars<Maximum, T>));
}

/// y = the smaller of a and b; NaN propagates
template <class T>
void minimum(const sdk::Call& call) {
  two_operands<T>(call, cheap, TENON_DISPATCH(map_with_scalars<Minimum, T>));
}

}  // namespace

TENON_KERNEL_WITH(add, elementwise_traits, sdk::BFloat16, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(sub, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(mul, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(div, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(pow, elementwise_traits, float, double)
TENON_KERNEL_WITH(maximum, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(minimum, elementwise_traits, float, double, std::int32_t, std::int64_t)

}  // namespace tenon::openblas
#endif
