// SPDX-License-Identifier: Apache-2.0
// reduction_sums.cpp - sums and products over rows and columns, accumulated in f64.
#include "simd/foreach_target.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "reduce/reduction_kernels.h"
#include "simd/simd.h"
#include "simd/unroll.h"

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
  static constexpr bool linear = true;  // a term is at most as large as its element, and terms are added
  template <class V>
  static HWY_INLINE V term(V x) {
    return x;
  }
  HWY_INLINE DoubleVector add(DoubleVector a, DoubleVector x) const { return hn::Add(a, x); }
  HWY_INLINE DoubleVector join(DoubleVector a, DoubleVector b) const { return hn::Add(a, b); }
  double join(double a, double b) const { return a + b; }
};
struct Magnitude : Plain {
  template <class V>
  static HWY_INLINE V term(V x) {
    return hn::Abs(x);
  }
  HWY_INLINE DoubleVector add(DoubleVector a, DoubleVector x) const { return hn::Add(a, term(x)); }
};
struct Square : Plain {
  static constexpr bool linear = false;
  HWY_INLINE DoubleVector add(DoubleVector a, DoubleVector x) const { return hn::MulAdd(x, x, a); }
};
struct Factor {
  static constexpr double neutral = 1;
  static constexpr bool linear = false;
  HWY_INLINE DoubleVector add(DoubleVector a, DoubleVector x) const { return hn::Mul(a, x); }
  HWY_INLINE DoubleVector join(DoubleVector a, DoubleVector b) const { return hn::Mul(a, b); }
  double join(double a, double b) const { return a * b; }
};

#if HWY_TARGET != HWY_SCALAR  // whose vectors have no halves
/// Adds the leading elements of x to s0..s3, in whole blocks, and returns their number. Eight vectors are added in f32 before their sum is
/// added in f64, for at most seven roundings of f32 and an eighth of the conversions, which would fill the processor's window with
/// fewer loads than the memory needs under way.
template <class Kind>
HWY_INLINE std::int64_t add_blocks(const float* x, std::int64_t n, DoubleVector& s0, DoubleVector& s1, DoubleVector& s2, DoubleVector& s3) {
  constexpr std::int64_t depth = 8;
  const Doubles wide;
  const Wide<float> d;
  const hn::Rebind<float, Doubles> half;
  const std::int64_t step = lanes(d);
  std::int64_t i = 0;
  for (; i + 2 * depth * step <= n; i += 2 * depth * step) {
    auto even = Kind::term(hn::LoadU(d, x + i)), odd = Kind::term(hn::LoadU(d, x + i + step));
    // Unrolled, GCC loads all even vectors before the odd ones, and the processor prefetches less.
    TENON_KEEP_LOOP
    for (std::int64_t j = i + 2 * step; j < i + 2 * depth * step; j += 2 * step) {
      even = hn::Add(even, Kind::term(hn::LoadU(d, x + j)));
      odd = hn::Add(odd, Kind::term(hn::LoadU(d, x + j + step)));
    }
    s0 = hn::Add(s0, hn::PromoteTo(wide, hn::LowerHalf(half, even)));
    s1 = hn::Add(s1, hn::PromoteTo(wide, hn::UpperHalf(half, even)));
    s2 = hn::Add(s2, hn::PromoteTo(wide, hn::LowerHalf(half, odd)));
    s3 = hn::Add(s3, hn::PromoteTo(wide, hn::UpperHalf(half, odd)));
  }
  return i;
}
#endif

/// Reduces n adjacent elements, in f64 or, if `blocked`, partly in f32.
template <class Kind, bool blocked, class T>
double leaf(const T* x, std::int64_t n) {
  const Kind kind;
  const Doubles d;
  const std::int64_t step = lanes(d);
  auto s0 = hn::Set(d, Kind::neutral), s1 = s0, s2 = s0, s3 = s0;
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (blocked) i = add_blocks<Kind>(x, n, s0, s1, s2, s3);
#endif
  for (; i + 4 * step <= n; i += 4 * step) {
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
  // Eight large elements may have overflowed f32 where f64 does not.
  if constexpr (blocked) return std::isfinite(result) ? result : leaf<Kind, false>(x, n);
  return result;
}

/// Reduces n adjacent elements. Pairwise above `leaf_size`, so the error grows with the depth and not with n.
template <class Kind, class T>
double row(const T* x, std::int64_t n) {
  // f64 adds elements of f32 with room to spare, and the end of a leaf takes as long as adding a kilobyte.
  constexpr std::int64_t leaf_size = std::is_same_v<T, float> ? 65536 : 4096;
  constexpr std::int64_t block = 256;  // a multiple of what add_blocks() adds at once
  if (n <= leaf_size) return leaf < Kind, std::is_same_v<T, float> && Kind::linear > (x, n);
  const std::int64_t half = n / (2 * block) * block;
  return Kind{}.join(row<Kind>(x, half), row<Kind>(x + half, n - half));
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
