// SPDX-License-Identifier: Apache-2.0
// reduction_extremes.cpp - maxima and minima of rows and columns; sums and products of integers.
#include "simd/foreach_target.h"

#include <algorithm>
#include <type_traits>

#include "reduce/reduction_kernels.h"
#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// The best element so far, lane by lane. NaN is tracked separately because hn::Max need not propagate it.
template <class T, bool largest>
class Extreme {
 public:
  using D = Wide<T>;
  using V = hn::Vec<D>;

  HWY_INLINE explicit Extreme(V first) : best_(first), wrong_(nan_of(first)) {}
  HWY_INLINE void add(V x) {
    best_ = better(best_, x);
    wrong_ = hn::Or(wrong_, nan_of(x));
  }
  HWY_INLINE void add(const Extreme& other) {
    best_ = better(best_, other.best_);
    wrong_ = hn::Or(wrong_, other.wrong_);
  }
  HWY_INLINE V value() const {
    if constexpr (std::is_integral_v<T>) {
      return best_;
    } else {
      return hn::IfThenElse(wrong_, hn::NaN(D()), best_);
    }
  }

 private:
  static HWY_INLINE V better(V a, V b) {
    if constexpr (largest) {
      return hn::Max(a, b);
    } else {
      return hn::Min(a, b);
    }
  }
  static HWY_INLINE hn::Mask<D> nan_of(V x) {
    if constexpr (std::is_integral_v<T>) {
      return hn::Lt(x, x);  // never
    } else {
      return hn::IsNaN(x);
    }
  }

  V best_;
  hn::Mask<D> wrong_;
};

template <class T, bool largest>
T better(T a, T b) {
  if (a != a) return a;
  if (b != b) return b;
  return (largest ? b > a : b < a) ? b : a;
}

template <class T, bool largest>
T row(const T* x, std::int64_t n) {
  const Wide<T> d;
  const std::int64_t step = lanes(d);
  T result = x[0];
  std::int64_t i = 0;
  if (n >= 4 * step) {  // four independent accumulators hide the latency
    Extreme<T, largest> a(hn::LoadU(d, x)), b(hn::LoadU(d, x + step)), c(hn::LoadU(d, x + 2 * step)), e(hn::LoadU(d, x + 3 * step));
    for (i = 4 * step; i + 4 * step <= n; i += 4 * step) {
      a.add(hn::LoadU(d, x + i));
      b.add(hn::LoadU(d, x + i + step));
      c.add(hn::LoadU(d, x + i + 2 * step));
      e.add(hn::LoadU(d, x + i + 3 * step));
    }
    for (; i + step <= n; i += step) a.add(hn::LoadU(d, x + i));
    a.add(b);
    c.add(e);
    a.add(c);
    HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(a.value(), d, buffer);
    for (std::int64_t lane = 0; lane < step; ++lane) result = better<T, largest>(result, buffer[lane]);
  }
  for (; i < n; ++i) result = better<T, largest>(result, x[i]);
  return result;
}

/// out[j] = the best of out[j] and x[i * stride + j] over i < rows.
template <class T, bool largest>
HWY_INLINE void add_rows(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width, T* out) {
  const Wide<T> d;
  const std::int64_t step = lanes(d);
  std::int64_t j = 0;
  for (; j + step <= width; j += step) {
    Extreme<T, largest> best(hn::LoadU(d, out + j));
    for (std::int64_t i = 0; i < rows; ++i) best.add(hn::LoadU(d, x + i * stride + j));
    hn::StoreU(best.value(), d, out + j);
  }
  for (; j < width; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) out[j] = better<T, largest>(out[j], x[i * stride + j]);
  }
}

template <class T, bool largest>
void columns(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width, T* out) {
  constexpr std::int64_t group = 8;
  std::copy_n(x, width, out);
  std::int64_t i = 1;
  for (; i + group <= rows; i += group) add_rows<T, largest>(x + i * stride, group, stride, width, out);
  if (i < rows) add_rows<T, largest>(x + i * stride, rows - i, stride, width, out);
}

template <class T>
ReductionKernels<T, T> extremes(bool largest) {
  return largest ? ReductionKernels<T, T>{row<T, true>, columns<T, true>} : ReductionKernels<T, T>{row<T, false>, columns<T, false>};
}

/// The compiler vectorises these loops: integer sums may be reordered.
template <class T, bool factors>
T wrapping_row(const T* x, std::int64_t n) {
  using Bits = std::make_unsigned_t<T>;
  Bits result = factors ? 1 : 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (factors) {
      result *= static_cast<Bits>(x[i]);
    } else {
      result += static_cast<Bits>(x[i]);
    }
  }
  return static_cast<T>(result);
}

template <class T, bool factors>
void wrapping_columns(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width, T* out) {
  using Bits = std::make_unsigned_t<T>;
  Bits result[reduction_strip];
  std::fill_n(result, reduction_strip, Bits{factors ? 1 : 0});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      if constexpr (factors) {
        result[j] *= static_cast<Bits>(x[i * stride + j]);
      } else {
        result[j] += static_cast<Bits>(x[i * stride + j]);
      }
    }
  }
  for (std::int64_t j = 0; j < width; ++j) out[j] = static_cast<T>(result[j]);
}

template <class T>
ReductionKernels<T, T> wrapping(Term term) {
  return term == Term::factor ? ReductionKernels<T, T>{wrapping_row<T, true>, wrapping_columns<T, true>}
                              : ReductionKernels<T, T>{wrapping_row<T, false>, wrapping_columns<T, false>};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

template <class T>
ReductionKernels<T, T> extreme_kernels(bool largest) {
  return TENON_DISPATCH(extremes<T>)(largest);
}
TENON_INSTANTIATE_FLOATS(extreme_kernels)
TENON_INSTANTIATE_INTEGERS(extreme_kernels)

template <class T>
ReductionKernels<T, T> wrapping_kernels(Term term) {
  return TENON_DISPATCH(wrapping<T>)(term);
}
TENON_INSTANTIATE_INTEGERS(wrapping_kernels)

}  // namespace tenon::openblas
#endif
