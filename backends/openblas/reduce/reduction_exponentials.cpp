// SPDX-License-Identifier: Apache-2.0
// reduction_exponentials.cpp - sums of exp(x - max x) over rows and columns.
#include "simd/foreach_target.h"

#include <algorithm>
#include <cmath>

#include "reduce/reduction_kernels.h"
#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE hn::Vec<Wide<double>> widened(hn::Vec<hn::Rebind<float, Wide<double>>> v) {
  return hn::PromoteTo(Wide<double>(), v);
}
HWY_INLINE hn::Vec<Wide<double>> widened(hn::Vec<Wide<double>> v) {
  return v;
}

/// The sum of a vector, in f64.
HWY_INLINE double sum_of(Wide<double> d, hn::Vec<Wide<double>> v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

/// sum + the lanes of v in f64; the two halves of an f32 vector are added lane by lane.
template <class T>
HWY_INLINE hn::Vec<Wide<double>> add_wide(hn::Vec<Wide<double>> sum, hn::Vec<Wide<T>> v) {
  const Wide<double> d;
  if constexpr (sizeof(T) == 8) {
    return hn::Add(sum, v);
  } else {
#if HWY_TARGET == HWY_SCALAR
    return hn::Add(sum, hn::PromoteTo(d, v));
#else
    const hn::Half<Wide<float>> half;
    return hn::Add(sum, hn::Add(hn::PromoteTo(d, hn::LowerHalf(half, v)), hn::PromoteTo(d, hn::UpperHalf(half, v))));
#endif
  }
}

/// The scaled sum of n elements with a known maximum; n is small enough for L1.
template <class T>
ScaledSum scaled_leaf(const T* x, std::int64_t n, T row_max) {
  if (!std::isfinite(row_max)) return {static_cast<double>(row_max), 1};
  const Wide<T> d;
  const std::int64_t step = lanes(d);
  const auto top = hn::Set(d, row_max);
  auto sum = hn::Zero(Wide<double>());
  std::int64_t i = 0;
  for (; i + step <= n; i += step) sum = add_wide<T>(sum, exp_of(d, hn::Sub(hn::LoadU(d, x + i), top)));
  if (i < n) {
    const auto rest = hn::Sub(load_first(d, x + i, n - i, -std::numeric_limits<T>::infinity()), top);
    sum = add_wide<T>(sum, exp_of(d, rest));
  }
  return {static_cast<double>(row_max), sum_of(Wide<double>(), sum)};
}

/// max x; NaN if any element is NaN.
template <class T>
T largest(const T* x, std::int64_t n) {
  const Wide<T> d;
  const std::int64_t step = lanes(d);
  T row_max = x[0];
  std::int64_t i = 0;
  if (n >= step) {
    auto best = hn::LoadU(d, x);
    auto wrong = hn::IsNaN(best);
    for (i = step; i + step <= n; i += step) {
      const auto v = hn::LoadU(d, x + i);
      wrong = hn::Or(wrong, hn::IsNaN(v));
      best = hn::Max(best, v);
    }
    if (!hn::AllFalse(d, wrong)) return std::numeric_limits<T>::quiet_NaN();
    row_max = hn::GetLane(hn::MaxOfLanes(d, best));
  }
  for (; i < n; ++i) {
    if (x[i] != x[i]) return x[i];
    row_max = std::max(row_max, x[i]);
  }
  return row_max;
}

template <class T>
ScaledSum row(const T* x, std::int64_t n) {
  constexpr std::int64_t leaf = 2048;
  if (n > leaf) {
    const std::int64_t half = n / 64 * 32;
    return AddScaled{}(row(x, half), row(x + half, n - half));
  }
  return scaled_leaf(x, n, largest(x, n));
}

/// The scaled sums of a block of rows, vectors along the columns: out[j] for j < width, a multiple of the f64 lanes. Rows are read twice.
template <class T>
HWY_INLINE void scaled_block(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width, ScaledSum* out) {
  const Wide<double> d;
  const hn::Rebind<T, Wide<double>> narrow;
  const std::int64_t step = lanes(d);
  HWY_ALIGN T row_maxima[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN double sums[HWY_MAX_BYTES / sizeof(double)];
  for (std::int64_t j = 0; j < width; j += step) {
    // find the maximum
    auto row_max = hn::LoadU(narrow, x + j);
    auto wrong = hn::IsNaN(row_max);
    for (std::int64_t i = 1; i < rows; ++i) {
      const auto v = hn::LoadU(narrow, x + i * stride + j);
      wrong = hn::Or(wrong, hn::IsNaN(v));
      row_max = hn::Max(row_max, v);
    }
    row_max = hn::IfThenElse(wrong, hn::NaN(narrow), row_max);
    // sum the exponentials
    auto sum = hn::Zero(d);
    for (std::int64_t i = 0; i < rows; ++i) {
      sum = hn::Add(sum, widened(exp_of(narrow, hn::Sub(hn::LoadU(narrow, x + i * stride + j), row_max))));
    }
    // store
    hn::Store(row_max, narrow, row_maxima);
    hn::Store(sum, d, sums);
    for (std::int64_t k = 0; k < step; ++k) {
      out[j + k] = {static_cast<double>(row_maxima[k]), std::isfinite(row_maxima[k]) ? sums[k] : 1.0};
    }
  }
}

template <class T>
void columns(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width, ScaledSum* out) {
  constexpr std::int64_t block = 128;  // rows whose cache lines stay in L2 from vector to vector
  const std::int64_t step = lanes(Wide<double>());
  ScaledSum part[reduction_strip];
  T column[block];
  const std::int64_t whole = width / step * step;
  for (std::int64_t begin = 0; begin < rows; begin += block) {
    const T* const from = x + begin * stride;
    const std::int64_t n = std::min(block, rows - begin);
    scaled_block(from, n, stride, whole, part);
    for (std::int64_t j = whole; j < width; ++j) {
      for (std::int64_t i = 0; i < n; ++i) column[i] = from[i * stride + j];
      part[j] = row(column, n);
    }
    for (std::int64_t j = 0; j < width; ++j) out[j] = begin == 0 ? part[j] : AddScaled{}(out[j], part[j]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

template <class T>
ReductionKernels<T, ScaledSum> exponential_kernels() {
  return {TENON_DISPATCH(row<T>), TENON_DISPATCH(columns<T>)};
}
TENON_INSTANTIATE_FLOATS(exponential_kernels)

}  // namespace tenon::openblas
#endif
