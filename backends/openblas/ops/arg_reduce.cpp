// ops/arg_reduce.cpp - where along an axis the largest or the smallest element is.
#include "instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/arg_reduce.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <type_traits>

#include "simd.h"

#include <tenon/sdk/kernel.h>

#ifndef TENON_OPENBLAS_ARG_REDUCE_BEATS
#define TENON_OPENBLAS_ARG_REDUCE_BEATS
namespace tenon::openblas {
namespace {
template <class T>
bool is_nan(T x) {
  return x != x;
}
/// Whether a later element takes the place of the best one so far, which is no NaN.
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
  // The best value first, then where it is. The last register may overlap the one before.
  auto peak = hn::LoadU(d, x);
  auto wrong = nan_mask(d, peak);
  for (std::int64_t i = step;; i += step) {
    i = std::min(i, n - step);
    const auto v = hn::LoadU(d, x + i);
    wrong = hn::Or(wrong, nan_mask(d, v));
    if constexpr (largest) {
      peak = hn::Max(peak, v);
    } else {
      peak = hn::Min(peak, v);
    }
    if (i == n - step) break;
  }
  const bool has_nan = !hn::AllFalse(d, wrong);
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(peak, d, buffer);
  T extreme = buffer[0];
  for (std::int64_t lane = 1; lane < step && !has_nan; ++lane) {
    if (beats<largest>(buffer[lane], extreme)) extreme = buffer[lane];
  }
  const auto best = hn::Set(d, extreme);
  for (std::int64_t i = 0;; i += step) {
    i = std::min(i, n - step);
    const auto v = hn::LoadU(d, x + i);
    const auto found = hn::FindFirstTrue(d, has_nan ? nan_mask(d, v) : hn::Eq(v, best));
    if (found >= 0) return i + static_cast<std::int64_t>(found);
    if (i == n - step) return 0;  // not reached: one of the elements is the best
  }
}

}  // namespace

std::int64_t arg_f32(bool largest, const float* x, std::int64_t n) {
  return largest ? row<true>(x, n) : row<false>(x, n);
}
std::int64_t arg_f64(bool largest, const double* x, std::int64_t n) {
  return largest ? row<true>(x, n) : row<false>(x, n);
}
std::int64_t arg_i32(bool largest, const std::int32_t* x, std::int64_t n) {
  return largest ? row<true>(x, n) : row<false>(x, n);
}
std::int64_t arg_i64(bool largest, const std::int64_t* x, std::int64_t n) {
  return largest ? row<true>(x, n) : row<false>(x, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us.
constexpr std::int64_t grain = 48 * 1024;

std::int64_t row_of(bool largest, const float* x, std::int64_t n) {
  return TENON_BEST(arg_f32)(largest, x, n);
}
std::int64_t row_of(bool largest, const double* x, std::int64_t n) {
  return TENON_BEST(arg_f64)(largest, x, n);
}
std::int64_t row_of(bool largest, const std::int32_t* x, std::int64_t n) {
  return TENON_BEST(arg_i32)(largest, x, n);
}
std::int64_t row_of(bool largest, const std::int64_t* x, std::int64_t n) {
  return TENON_BEST(arg_i64)(largest, x, n);
}

/// y[i] = the first index j for which x[j * inner + i] is best; rows are read one after the other.
template <bool largest, class T>
void columns(const T* x, std::int64_t n, std::int64_t inner, std::int64_t* y) {
  constexpr std::int64_t piece = 128;
  T best[piece];
  for (std::int64_t begin = 0; begin < inner; begin += piece) {
    const std::int64_t m = std::min(piece, inner - begin);
    std::copy_n(x + begin, m, best);
    std::fill_n(y + begin, m, 0);
    for (std::int64_t j = 1; j < n; ++j) {
      const T* from = x + j * inner + begin;
      for (std::int64_t i = 0; i < m; ++i) {
        if (beats<largest>(from[i], best[i]) && !is_nan(best[i])) {
          best[i] = from[i];
          y[begin + i] = j;
        }
      }
    }
  }
}

/// y = the first index along `axis` of the best element; NaN is better than all, the first NaN wins.
template <bool largest, class T>
void arg_reduce(const sdk::Call& call) {
  const sdk::AxisView view = sdk::around_axis(call.inputs[0], call.attr<tenon_attributes_axis>().axis);
  const T* const x = call.input<T>(0);
  std::int64_t* const y = call.output<std::int64_t>(0);
  const std::int64_t slab = std::max<std::int64_t>(view.n * view.inner, 1);
  if (view.inner == 0) return;
  call.host.parallel_for(view.outer, std::max<std::int64_t>(1, grain / slab), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      if (view.inner == 1) {
        y[o] = row_of(largest, x + o * view.n, view.n);
      } else {
        columns<largest>(x + o * slab, view.n, view.inner, y + o * view.inner);
      }
    }
  });
}

/// The index of the largest.
template <class T>
void arg_max(const sdk::Call& call) {
  arg_reduce<true, T>(call);
}

/// The index of the smallest.
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
