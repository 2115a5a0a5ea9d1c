// ops/arg_reduce.cpp - where along an axis the largest element is.
#include "instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/arg_reduce.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <cmath>

#include "simd.h"

#include <tenon/sdk/kernel.h>

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// The first index of the largest of n > 0 adjacent elements; the first NaN wins.
template <class T>
std::int64_t arg_max_row(const T* x, std::int64_t n) {
  const Wide<T> d;
  const std::int64_t step = lanes(d);
  if (n < step) {
    std::int64_t best = 0;
    for (std::int64_t j = 1; j < n && !std::isnan(x[best]); ++j) {
      if (x[j] > x[best] || std::isnan(x[j])) best = j;
    }
    return best;
  }
  // The largest value first, then where it is. The last register may overlap the one before.
  auto peak = hn::LoadU(d, x);
  auto wrong = hn::IsNaN(peak);
  for (std::int64_t i = step;; i += step) {
    i = std::min(i, n - step);
    const auto v = hn::LoadU(d, x + i);
    wrong = hn::Or(wrong, hn::IsNaN(v));
    peak = hn::Max(peak, v);
    if (i == n - step) break;
  }
  const bool has_nan = !hn::AllFalse(d, wrong);
  const auto best = hn::MaxOfLanes(d, peak);
  for (std::int64_t i = 0;; i += step) {
    i = std::min(i, n - step);
    const auto v = hn::LoadU(d, x + i);
    const auto found = hn::FindFirstTrue(d, has_nan ? hn::IsNaN(v) : hn::Eq(v, best));
    if (found >= 0) return i + static_cast<std::int64_t>(found);
    if (i == n - step) return 0;  // not reached: one of the elements is the largest
  }
}

}  // namespace

std::int64_t arg_max_f32(const float* x, std::int64_t n) {
  return arg_max_row(x, n);
}
std::int64_t arg_max_f64(const double* x, std::int64_t n) {
  return arg_max_row(x, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us.
constexpr std::int64_t grain = 48 * 1024;

std::int64_t arg_max_row(const float* x, std::int64_t n) {
  return TENON_BEST(arg_max_f32)(x, n);
}
std::int64_t arg_max_row(const double* x, std::int64_t n) {
  return TENON_BEST(arg_max_f64)(x, n);
}

/// y[i] = the first index j for which x[j * inner + i] is largest; rows are read one after the other.
template <class T>
void arg_max_columns(const T* x, std::int64_t n, std::int64_t inner, std::int64_t* y) {
  constexpr std::int64_t piece = 128;
  T best[piece];
  for (std::int64_t begin = 0; begin < inner; begin += piece) {
    const std::int64_t m = std::min(piece, inner - begin);
    std::copy_n(x + begin, m, best);
    std::fill_n(y + begin, m, 0);
    for (std::int64_t j = 1; j < n; ++j) {
      const T* row = x + j * inner + begin;
      for (std::int64_t i = 0; i < m; ++i) {
        if (!(row[i] <= best[i]) && !std::isnan(best[i])) {
          best[i] = row[i];
          y[begin + i] = j;
        }
      }
    }
  }
}

/// y = the first index along `axis` of the largest element; NaN is larger than all, the first NaN wins.
template <class T>
void arg_max(const sdk::Call& call) {
  const sdk::AxisView view = sdk::around_axis(call.inputs[0], call.attr<tenon_attributes_axis>().axis);
  const T* const x = call.input<T>(0);
  std::int64_t* const y = call.output<std::int64_t>(0);
  const std::int64_t slab = std::max<std::int64_t>(view.n * view.inner, 1);
  if (view.inner == 0) return;
  call.host.parallel_for(view.outer, std::max<std::int64_t>(1, grain / slab), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      if (view.inner == 1) {
        y[o] = arg_max_row(x + o * view.n, view.n);
      } else {
        arg_max_columns(x + o * slab, view.n, view.inner, y + o * view.inner);
      }
    }
  });
}

const char* refuse(const sdk::Call& call) {
  const bool empty_axis = call.inputs[0].shape[call.attr<tenon_attributes_axis>().axis] == 0;
  return empty_axis && call.outputs[0].count > 0 ? "arg_max: the axis has no element to choose" : nullptr;
}

}  // namespace

TENON_KERNEL_WITH(arg_max, (sdk::Traits{.refuse = refuse}), float, double)

}  // namespace tenon::openblas
#endif
