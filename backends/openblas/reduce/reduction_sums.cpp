// SPDX-License-Identifier: Apache-2.0
// reduction_sums.cpp - sums and products over rows and columns, accumulated in f64.
#include "simd/foreach_target.h"

#include <hwy/cache_control.h>

#include <algorithm>

#include "reduce/reduction_kernels.h"
#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

using Doubles = Wide<double>;
using DoubleVector = hn::Vec<Doubles>;

/// Loads min(n, lanes) elements as f64; the remaining lanes hold `fill`.
HWY_INLINE DoubleVector load_doubles(Doubles d, const double* p, std::int64_t n, double fill) {
  return n < lanes(d) ? load_first(d, p, n, fill) : hn::LoadU(d, p);
}
HWY_INLINE DoubleVector load_doubles(Doubles d, const float* p, std::int64_t n, double fill) {
  const hn::Rebind<float, Doubles> narrow;
  return hn::PromoteTo(d, n < lanes(d) ? load_first(narrow, p, n, static_cast<float>(fill)) : hn::LoadU(narrow, p));
}

/// A kind of reduction: its neutral element, add(a, x) accumulates a term, join(a, b) combines two results.
struct Plain {
  static constexpr double neutral = 0;
  HWY_INLINE DoubleVector add(DoubleVector a, DoubleVector x) const { return hn::Add(a, x); }
  HWY_INLINE DoubleVector join(DoubleVector a, DoubleVector b) const { return hn::Add(a, b); }
  double join(double a, double b) const { return a + b; }
};
struct Magnitude : Plain {
  HWY_INLINE DoubleVector add(DoubleVector a, DoubleVector x) const { return hn::Add(a, hn::Abs(x)); }
};
struct Square : Plain {
  HWY_INLINE DoubleVector add(DoubleVector a, DoubleVector x) const { return hn::MulAdd(x, x, a); }
};
struct Factor {
  static constexpr double neutral = 1;
  HWY_INLINE DoubleVector add(DoubleVector a, DoubleVector x) const { return hn::Mul(a, x); }
  HWY_INLINE DoubleVector join(DoubleVector a, DoubleVector b) const { return hn::Mul(a, b); }
  double join(double a, double b) const { return a * b; }
};

/// Reduces n adjacent elements. Pairwise above `leaf` elements, so the error grows with the depth and not with n.
template <class Kind, class T>
double row(const T* x, std::int64_t n) {
  constexpr std::int64_t leaf = 4096;
  // The conversions to f64 fill the processor's window with fewer loads than the memory needs under way, so cache lines are fetched ahead.
  constexpr std::int64_t line = 64 / sizeof(T), ahead = 2048 / sizeof(T);
  const Kind kind;
  if (n > leaf) {
    const std::int64_t half = n / 64 * 32;
    return kind.join(row<Kind>(x, half), row<Kind>(x + half, n - half));
  }
  const Doubles d;
  const std::int64_t step = lanes(d);
  auto s0 = hn::Set(d, Kind::neutral), s1 = s0, s2 = s0, s3 = s0;
  std::int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    for (std::int64_t j = 0; j < 4 * step; j += line) hwy::Prefetch(x + i + ahead + j);
    s0 = kind.add(s0, load_doubles(d, x + i, step, 0));
    s1 = kind.add(s1, load_doubles(d, x + i + step, step, 0));
    s2 = kind.add(s2, load_doubles(d, x + i + 2 * step, step, 0));
    s3 = kind.add(s3, load_doubles(d, x + i + 3 * step, step, 0));
  }
  for (; i < n; i += step) s0 = kind.add(s0, load_doubles(d, x + i, n - i, Kind::neutral));
  HWY_ALIGN double buffer[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(kind.join(kind.join(s0, s1), kind.join(s2, s3)), d, buffer);
  double result = buffer[0];
  for (std::int64_t lane = 1; lane < step; ++lane) result = kind.join(result, buffer[lane]);
  return result;
}

/// out[j] = join(out[j], the reduction of x[i * stride + j] over i < rows), rows <= 8.
template <class Kind, class T>
HWY_INLINE void add_rows(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width, double* out) {
  const Doubles d;
  const Kind kind;
  const std::int64_t step = lanes(d);
  for (std::int64_t j = 0; j < width; j += step) {
    const std::int64_t n = width - j;
    auto even = n < step ? load_first(d, out + j, n) : hn::LoadU(d, out + j);
    auto odd = hn::Set(d, Kind::neutral);
    std::int64_t i = 0;
    for (; i + 2 <= rows; i += 2) {
      even = kind.add(even, load_doubles(d, x + i * stride + j, n, 0));
      odd = kind.add(odd, load_doubles(d, x + (i + 1) * stride + j, n, 0));
    }
    if (i < rows) even = kind.add(even, load_doubles(d, x + i * stride + j, n, 0));
    even = kind.join(even, odd);
    if (n < step) {
      store_first(even, d, out + j, n);
    } else {
      hn::StoreU(even, d, out + j);
    }
  }
}

/// out[j] = the reduction of x[i * stride + j] over i < rows, for j < width <= reduction_strip. Pairwise like `row`.
template <class Kind, class T>
void columns(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width, double* out) {
  constexpr std::int64_t leaf = 256, group = 8;
  if (rows > leaf) {
    double below[reduction_strip];
    columns<Kind>(x, rows / 2, stride, width, out);
    columns<Kind>(x + rows / 2 * stride, rows - rows / 2, stride, width, below);
    for (std::int64_t j = 0; j < width; ++j) out[j] = Kind{}.join(out[j], below[j]);
    return;
  }
  std::fill_n(out, width, Kind::neutral);
  std::int64_t i = 0;
  for (; i + group <= rows; i += group) add_rows<Kind>(x + i * stride, group, stride, width, out);
  if (i < rows) add_rows<Kind>(x + i * stride, rows - i, stride, width, out);
}

template <class T>
ReductionKernels<T, double> choose(Term term) {
  switch (term) {
    case Term::value:
      return {row<Plain, T>, columns<Plain, T>};
    case Term::magnitude:
      return {row<Magnitude, T>, columns<Magnitude, T>};
    case Term::square:
      return {row<Square, T>, columns<Square, T>};
    default:
      return {row<Factor, T>, columns<Factor, T>};
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

template <class T>
ReductionKernels<T, double> sum_kernels(Term term) {
  return TENON_DISPATCH(choose<T>)(term);
}
TENON_INSTANTIATE_FLOATS(sum_kernels)

}  // namespace tenon::openblas
#endif
