// SPDX-License-Identifier: Apache-2.0
// ops/binary.cpp - add, sub, mul, div, pow, maximum, minimum with NumPy broadcasting: floats by explicit vector code, integers in plain
// loops that the compiler vectorises.
#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/binary.cpp"
#include <hwy/foreach_target.h>

#include "elementwise/strided_loop.h"
#include "simd/simd.h"
#include "simd/wide_math.h"

#ifndef TENON_OPENBLAS_BINARY_OPS
#define TENON_OPENBLAS_BINARY_OPS
namespace tenon::openblas {
namespace {
enum class BinaryOp { add, sub, mul, div, pow, maximum, minimum };
}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

struct Add {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Add(a, b);
  }
};
struct Sub {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Sub(a, b);
  }
};
struct Mul {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Mul(a, b);
  }
};
struct Div {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Div(a, b);
  }
};
/// a unless b is larger or NaN: then b.
struct Maximum {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
  }
};
struct Minimum {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
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
    const auto result = hn::DemoteTo(narrow, Pow{}(d, load(a, step_a, i), load(b, step_b, i)));
    if (n - i < lanes(d)) {
      store_first(result, narrow, y + i, n - i);
    } else {
      hn::StoreU(result, narrow, y + i);
    }
  }
}

struct Square {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Mul(x, x);
  }
};

/// x -> op(x, b) and x -> op(a, x) for one element b or a.
template <class Op, class T>
struct WithRight {
  T b;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Op{}(d, x, hn::Set(d, b));
  }
};
template <class Op, class T>
struct WithLeft {
  T a;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Op{}(d, hn::Set(d, a), x);
  }
};

template <class Op, class T>
void run(const Segment<T, 2>& s, T* y, std::int64_t n) {
  if (s.scalars == 1) return map(WithLeft<Op, T>{*s.x[0]}, s.x[1], y, n);
  if (s.scalars == 2) return map(WithRight<Op, T>{*s.x[1]}, s.x[0], y, n);
  map(Op{}, s.x[0], s.x[1], y, n);
}

template <class T>
void run(BinaryOp op, const Segment<T, 2>& s, T* y, std::int64_t n) {
  switch (op) {
    case BinaryOp::add:
      return run<Add>(s, y, n);
    case BinaryOp::sub:
      return run<Sub>(s, y, n);
    case BinaryOp::mul:
      return run<Mul>(s, y, n);
    case BinaryOp::div:
      return run<Div>(s, y, n);
    case BinaryOp::maximum:
      return run<Maximum>(s, y, n);
    case BinaryOp::minimum:
      return run<Minimum>(s, y, n);
    case BinaryOp::pow:  // has its own functions
      return;
  }
}

}  // namespace

void binary_f32(BinaryOp op, const Segment<float, 2>& s, float* y, std::int64_t n) {
  run(op, s, y, n);
}
void binary_f64(BinaryOp op, const Segment<double, 2>& s, double* y, std::int64_t n) {
  run(op, s, y, n);
}

void pow_f32(const Segment<float, 2>& s, float* y, std::int64_t n) {
  if (s.scalars == 2 && *s.x[1] == 2) return map(Square{}, s.x[0], y, n);
  pow_wide(s.x[0], s.scalars == 1 ? 0 : 1, s.x[1], s.scalars == 2 ? 0 : 1, y, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <type_traits>

namespace tenon::openblas {
namespace {

// Elements worth a thread of their own, about 20 us: from L2, and for a logarithm and an exponential per element.
constexpr std::int64_t cheap = 128 * 1024;
constexpr std::int64_t costly = 16 * 1024;

void run(BinaryOp op, const Segment<float, 2>& s, float* y, std::int64_t n) {
  TENON_DISPATCH(binary_f32)(op, s, y, n);
}
void run(BinaryOp op, const Segment<double, 2>& s, double* y, std::int64_t n) {
  TENON_DISPATCH(binary_f64)(op, s, y, n);
}

/// y[i] = f(a[i], b[i]) in plain loops.
template <class T, class Function>
void loop(const Segment<T, 2>& s, T* y, std::int64_t n, Function f) {
  const T *a = s.x[0], *b = s.x[1];
  if (s.scalars == 0) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  } else if (s.scalars == 1) {
    const T one = *a;
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(one, b[i]);
  } else {
    const T one = *b;
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], one);
  }
}

/// Integers wrap: the computation is unsigned.
template <class T>
void run(BinaryOp op, const Segment<T, 2>& s, T* y, std::int64_t n) {
  using U = std::make_unsigned_t<T>;
  const auto wrapping = [&](auto f) { loop(s, y, n, [f](T a, T b) { return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b))); }); };
  switch (op) {
    case BinaryOp::add:
      return wrapping([](U a, U b) { return a + b; });
    case BinaryOp::sub:
      return wrapping([](U a, U b) { return a - b; });
    case BinaryOp::mul:
      return wrapping([](U a, U b) { return a * b; });
    case BinaryOp::div:
      return loop(s, y, n, [](T a, T b) {
        if (b == 0) throw sdk::Error(TENON_INVALID_ARGUMENT, "div: an integer divided by zero; expected divisors other than 0");
        return b == -1 ? static_cast<T>(U{0} - static_cast<U>(a))
                       : static_cast<T>(a / b);  // the lowest value divided by -1 wraps to itself
      });
    case BinaryOp::maximum:
      return loop(s, y, n, [](T a, T b) { return std::max(a, b); });
    case BinaryOp::minimum:
      return loop(s, y, n, [](T a, T b) { return std::min(a, b); });
    case BinaryOp::pow:  // of floats only
      return;
  }
}

template <class T>
void two_operands(const sdk::Call& call, BinaryOp op) {
  elementwise<T, T, 2>(call, cheap, 0b11, [op](const Segment<T, 2>& s, T* y, std::int64_t n) { run(op, s, y, n); });
}

/// y = a + b
template <class T>
void add(const sdk::Call& call) {
  two_operands<T>(call, BinaryOp::add);
}

/// y = a - b
template <class T>
void sub(const sdk::Call& call) {
  two_operands<T>(call, BinaryOp::sub);
}

/// y = a b, elementwise
template <class T>
void mul(const sdk::Call& call) {
  two_operands<T>(call, BinaryOp::mul);
}

/// y = a / b by IEEE 754; integer division truncates.
///
/// Errors  INVALID_ARGUMENT for an integer divided by zero.
template <class T>
void div(const sdk::Call& call) {
  two_operands<T>(call, BinaryOp::div);
}

void pow_run(const Segment<float, 2>& s, float* y, std::int64_t n) {
  TENON_DISPATCH(pow_f32)(s, y, n);
}
void pow_run(const Segment<double, 2>& s, double* y, std::int64_t n) {
  loop(s, y, n, [](double a, double b) { return std::pow(a, b); });
}

/// y = a^b, by IEEE 754's pow
template <class T>
void pow(const sdk::Call& call) {
  elementwise<T, T, 2>(call, costly, 0b11, [](const Segment<T, 2>& s, T* y, std::int64_t n) { pow_run(s, y, n); });
}

/// y = the larger of a and b; NaN propagates
template <class T>
void maximum(const sdk::Call& call) {
  two_operands<T>(call, BinaryOp::maximum);
}

/// y = the smaller of a and b; NaN propagates
template <class T>
void minimum(const sdk::Call& call) {
  two_operands<T>(call, BinaryOp::minimum);
}

}  // namespace

TENON_KERNEL_WITH(add, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(sub, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(mul, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(div, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(pow, elementwise_traits, float, double)
TENON_KERNEL_WITH(maximum, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(minimum, elementwise_traits, float, double, std::int32_t, std::int64_t)

}  // namespace tenon::openblas
#endif
