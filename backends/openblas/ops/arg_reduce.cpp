// SPDX-License-Identifier: Apache-2.0
// ops/arg_reduce.cpp - the index along an axis of the largest or smallest element.
#include "simd/foreach_target.h"

#include <algorithm>
#include <type_traits>

#include "simd/simd.h"

#include <tenon/sdk/kernel.h>

#ifndef TENON_OPENBLAS_ARG_REDUCE_BEATS
#define TENON_OPENBLAS_ARG_REDUCE_BEATS
namespace tenon::openblas {
namespace {
template <class T>
bool is_nan(T x) {
  return x != x;
}
/// Whether a later element x replaces the best one so far, which is not NaN.
template <bool largest, class T>
bool beats(T x, T best) {
  return (largest ? x > best : x < best) || is_nan(x);
}
}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

template <class D, class V>
HWY_INLINE hn::Mask<D> nan_mask(D, V x) {
  if constexpr (std::is_integral_v<hn::TFromD<D>>) {
    return hn::Lt(x, x);  // never
  } else {
    return hn::IsNaN(x);
  }
}

/// The first index of the best of n > 0 adjacent elements; the first NaN wins.
template <bool largest, class T>
std::int64_t row(const T* x, std::int64_t n) {
  const Wide<T> d;
  const std::int64_t step = lanes(d);
  if (n < step) {
    std::int64_t best = 0;
    for (std::int64_t j = 1; j < n && !is_nan(x[best]); ++j) {
      if (beats<largest>(x[j], x[best])) best = j;
    }
    return best;
  }
  // find the best value; the last vector may overlap the one before
  auto extremes = hn::LoadU(d, x);
  auto wrong = nan_mask(d, extremes);
  for (std::int64_t i = step;; i += step) {
    i = std::min(i, n - step);
    const auto v = hn::LoadU(d, x + i);
    wrong = hn::Or(wrong, nan_mask(d, v));
    if constexpr (largest) {
      extremes = hn::Max(extremes, v);
    } else {
      extremes = hn::Min(extremes, v);
    }
    if (i == n - step) break;
  }
  const bool has_nan = !hn::AllFalse(d, wrong);
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(extremes, d, buffer);
  T extreme = buffer[0];
  for (std::int64_t lane = 1; lane < step && !has_nan; ++lane) {
    if (beats<largest>(buffer[lane], extreme)) extreme = buffer[lane];
  }
  // find its first index
  const auto best = hn::Set(d, extreme);
  for (std::int64_t i = 0;; i += step) {
    i = std::min(i, n - step);
    const auto v = hn::LoadU(d, x + i);
    const auto found = hn::FindFirstTrue(d, has_nan ? nan_mask(d, v) : hn::Eq(v, best));
    if (found >= 0) return i + static_cast<std::int64_t>(found);
    if (i == n - step) return 0;  // unreachable: some element equals the best
  }
}

/// Updates the best element and its index of each column with rows [begin, end).
template <bool largest, class T, class Index>
HWY_INLINE void update_best(const T* x, std::int64_t begin, std::int64_t end, std::int64_t stride, std::int64_t width, T* best,
                            Index* index) {
  const Wide<T> d;
  const Wide<Index> di;
  const std::int64_t step = lanes(d);
  std::int64_t j = 0;
  for (; j + step <= width; j += step) {
    auto top = hn::LoadU(d, best + j);
    auto at = hn::LoadU(di, index + j);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto v = hn::LoadU(d, x + i * stride + j);
      hn::Mask<Wide<T>> wins;
      if constexpr (largest) {
        wins = hn::Gt(v, top);
      } else {
        wins = hn::Lt(v, top);
      }
      if constexpr (!std::is_integral_v<T>) {
        const auto first_nan = hn::And(hn::IsNaN(v), hn::Eq(top, top));
        wins = hn::Or(wins, first_nan);
      }
      top = hn::IfThenElse(wins, v, top);
      at = hn::IfThenElse(hn::RebindMask(di, wins), hn::Set(di, static_cast<Index>(i)), at);
    }
    hn::StoreU(top, d, best + j);
    hn::StoreU(at, di, index + j);
  }
  for (; j < width; ++j) {
    for (std::int64_t i = begin; i < end && !is_nan(best[j]); ++i) {
      if (!beats<largest>(x[i * stride + j], best[j])) continue;
      best[j] = x[i * stride + j];
      index[j] = static_cast<Index>(i);
    }
  }
}

/// y[j] = the first index i < n for which x[i * stride + j] is best, for j < width.
template <bool largest, class T>
void columns(const T* x, std::int64_t n, std::int64_t stride, std::int64_t width, std::int64_t* y) {
  using Index = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;  // as many per vector as elements
  constexpr std::int64_t strip = 256, group = 8;                                 // the state of a strip stays in L1
  constexpr std::int64_t max_rows = std::int64_t{1} << 30;                       // rows that an Index can count
  T best[strip];
  Index index[strip];
  for (std::int64_t first = 0; first < width; first += strip) {
    const std::int64_t m = std::min(strip, width - first);
    std::copy_n(x + first, m, best);
    std::fill_n(y + first, m, 0);
    for (std::int64_t part = 0; part < n; part += max_rows) {
      const T* const from = x + part * stride + first;
      const std::int64_t rows = std::min(max_rows, n - part);
      std::fill_n(index, m, Index{-1});
      for (std::int64_t i = 0; i < rows; i += group) update_best<largest>(from, i, std::min(i + group, rows), stride, m, best, index);
      for (std::int64_t j = 0; j < m; ++j) y[first + j] = index[j] < 0 ? y[first + j] : part + index[j];
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us.
constexpr std::int64_t grain = 48 * 1024;
// Columns per task.
constexpr std::int64_t strip = 1024;

/// y = the first index along `axis` of the best element; NaN beats every number, the first NaN wins.
template <bool largest, class T>
void arg_reduce(const sdk::Call& call) {
  const sdk::AxisView view = sdk::around_axis(call.inputs[0], call.attr<tenon_attributes_axis>().axis);
  const T* const x = call.input<T>(0);
  std::int64_t* const y = call.output<std::int64_t>(0);
  const std::int64_t n = view.n, inner = view.inner;
  if (call.outputs[0].count == 0) return;
  if (inner == 1) {
    call.host.parallel_for(view.outer, std::max<std::int64_t>(1, grain / n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) y[o] = TENON_DISPATCH(row<largest, T>)(x + o * n, n);
    });
    return;
  }
  const std::int64_t strips = (inner + strip - 1) / strip;
  const std::int64_t share = std::max<std::int64_t>(1, grain / (n * std::min(inner, strip)));
  call.host.parallel_for(view.outer * strips, share, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t o = task / strips, first = task % strips * strip;
      TENON_DISPATCH(columns<largest, T>)(x + o * n * inner + first, n, inner, std::min(strip, inner - first), y + o * inner + first);
    }
  });
}

/// y = the index of the largest element
template <class T>
void arg_max(const sdk::Call& call) {
  arg_reduce<true, T>(call);
}

/// y = the index of the smallest element
template <class T>
void arg_min(const sdk::Call& call) {
  arg_reduce<false, T>(call);
}

const char* refuse(const sdk::Call& call) {
  const bool empty_axis = call.inputs[0].shape[call.attr<tenon_attributes_axis>().axis] == 0;
  return empty_axis && call.outputs[0].count > 0 ? "the axis has no element to choose" : nullptr;
}

constexpr sdk::Traits traits{.refuse = refuse};

}  // namespace

TENON_KERNEL_WITH(arg_max, traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(arg_min, traits, float, double, std::int32_t, std::int64_t)

}  // namespace tenon::openblas
#endif
