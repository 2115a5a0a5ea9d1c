// SPDX-License-Identifier: Apache-2.0
// ops/softmax.cpp - vectorised softmax, log-softmax and their gradients along any axis.
#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/softmax.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>

#include "reduce/softmax_lines.h"

#include <tenon/sdk/kernel.h>

#ifndef TENON_OPENBLAS_SOFTMAX_OPS
#define TENON_OPENBLAS_SOFTMAX_OPS
namespace tenon::openblas {
namespace {
enum class SoftmaxOp { softmax, softmax_grad, log_softmax, log_softmax_grad };
}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// y = e^(x - max x) / sum e^(x - max x); y may be x.
template <class T>
void softmax_row(const T* x, T* y, std::int64_t n) {
  const Wide<T> d;
  // find the maximum
  const T row_max = max_of_row(x, n);
  // exponentiate and sum
  const auto total = hn::Set(d, static_cast<T>(sum_in_blocks<T>(n, ExpTerm<T>{x, y, row_max})));
  // normalise
  for (std::int64_t i = 0; i < n; i += lanes(d)) store(hn::Div(load(d, y + i, n - i), total), d, y + i, n - i);
}

template <class T>
void softmax_lines(const T* x, T* y, std::int64_t n, std::int64_t inner, std::int64_t m) {
  const Wide<T> d;
  // find the maximum
  const auto row_max = max_of_lines(x, n, inner, m);
  // exponentiate and sum
  const auto total = sum_of_lines<T>(n, LineExpTerm<T>{x, y, inner, m, row_max});
  // normalise
  for (std::int64_t j = 0; j < n; ++j) store(hn::Div(load(d, y + j * inner, m), total), d, y + j * inner, m);
}

/// The terms dy y of a row, or dy where y is NULL.
template <class T>
struct GradientTerm {
  const T* dy;
  const T* y;
  HWY_INLINE hn::Vec<Wide<T>> operator()(std::int64_t i, std::int64_t m) const {
    const Wide<T> d;
    const auto v = load(d, dy + i, m);
    return y == nullptr ? v : hn::Mul(v, load(d, y + i, m));
  }
};

template <class T>
struct LineGradientTerm {
  const T* dy;
  const T* y;
  std::int64_t inner, m;
  HWY_INLINE hn::Vec<Wide<T>> operator()(std::int64_t j) const {
    const Wide<T> d;
    const auto v = load(d, dy + j * inner, m);
    return y == nullptr ? v : hn::Mul(v, load(d, y + j * inner, m));
  }
};

/// dx = y (dy - total)
struct SoftmaxGrad {
  template <class D, class V>
  HWY_INLINE V operator()(D, V dy, V y, V total) const {
    return hn::Mul(y, hn::Sub(dy, total));
  }
};

/// dx = dy - e^y total
struct LogSoftmaxGrad {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V y, V total) const {
    return hn::NegMulAdd(exp_of(d, y), total, dy);
  }
};

template <class T, class F>
void grad_row(const F& f, bool weighted, const T* dy, const T* y, T* dx, std::int64_t n) {
  const Wide<T> d;
  const auto total = hn::Set(d, static_cast<T>(sum_in_blocks<T>(n, GradientTerm<T>{dy, weighted ? y : nullptr})));
  for (std::int64_t i = 0; i < n; i += lanes(d)) {
    store(f(d, load(d, dy + i, n - i), load(d, y + i, n - i), total), d, dx + i, n - i);
  }
}

template <class T, class F>
void grad_lines(const F& f, bool weighted, const T* dy, const T* y, T* dx, std::int64_t n, std::int64_t inner, std::int64_t m) {
  const Wide<T> d;
  const auto total = sum_of_lines<T>(n, LineGradientTerm<T>{dy, weighted ? y : nullptr, inner, m});
  for (std::int64_t j = 0; j < n; ++j) {
    const std::int64_t at = j * inner;
    store(f(d, load(d, dy + at, m), load(d, y + at, m), total), d, dx + at, m);
  }
}

template <class T>
void row(SoftmaxOp op, const T* a, const T* b, T* y, std::int64_t n) {
  switch (op) {
    case SoftmaxOp::softmax:
      return softmax_row(a, y, n);
    case SoftmaxOp::softmax_grad:
      return grad_row(SoftmaxGrad{}, true, a, b, y, n);
    case SoftmaxOp::log_softmax:
      return log_softmax_row(a, y, n, normalise_row(a, n));
    case SoftmaxOp::log_softmax_grad:
      return grad_row(LogSoftmaxGrad{}, false, a, b, y, n);
  }
}

/// Processes m neighbouring lines, at most one per lane.
template <class T>
void bundle(SoftmaxOp op, const T* a, const T* b, T* y, std::int64_t n, std::int64_t inner, std::int64_t m) {
  switch (op) {
    case SoftmaxOp::softmax:
      return softmax_lines(a, y, n, inner, m);
    case SoftmaxOp::softmax_grad:
      return grad_lines(SoftmaxGrad{}, true, a, b, y, n, inner, m);
    case SoftmaxOp::log_softmax: {
      const auto row_max = max_of_lines(a, n, inner, m);
      return log_softmax_lines(a, y, n, inner, m, row_max, log_sum_of_lines(a, n, inner, m, row_max));
    }
    case SoftmaxOp::log_softmax_grad:
      return grad_lines(LogSoftmaxGrad{}, false, a, b, y, n, inner, m);
  }
}

/// Processes `count` consecutive rows if inner is 1, else `count` neighbouring lines.
template <class T>
void lines(SoftmaxOp op, const T* a, const T* b, T* y, std::int64_t count, std::int64_t n, std::int64_t inner) {
  const std::int64_t step = inner == 1 ? 1 : lanes(Wide<T>());
  const std::int64_t distance = inner == 1 ? n : 1;
  for (std::int64_t i = 0; i < count; i += step) {
    const std::int64_t at = i * distance;
    const T* const other = b == nullptr ? nullptr : b + at;
    if (inner == 1) {
      row(op, a + at, other, y + at, n);
    } else {
      bundle(op, a + at, other, y + at, n, inner, std::min(step, count - i));
    }
  }
}

}  // namespace

void softmax_f32(SoftmaxOp op, const float* a, const float* b, float* y, std::int64_t count, std::int64_t n, std::int64_t inner) {
  lines(op, a, b, y, count, n, inner);
}
void softmax_f64(SoftmaxOp op, const double* a, const double* b, double* y, std::int64_t count, std::int64_t n, std::int64_t inner) {
  lines(op, a, b, y, count, n, inner);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us.
constexpr std::int64_t grain = 32 * 1024;

void run(SoftmaxOp op, const float* a, const float* b, float* y, std::int64_t count, std::int64_t n, std::int64_t inner) {
  TENON_DISPATCH(softmax_f32)(op, a, b, y, count, n, inner);
}
void run(SoftmaxOp op, const double* a, const double* b, double* y, std::int64_t count, std::int64_t n, std::int64_t inner) {
  TENON_DISPATCH(softmax_f64)(op, a, b, y, count, n, inner);
}

template <class T>
void along_axis(const sdk::Call& call, SoftmaxOp op) {
  const sdk::AxisView view = sdk::around_axis(call.inputs[0], call.attr<tenon_attributes_axis>().axis);
  const std::int64_t lines = view.outer * view.inner;
  if (view.n == 0) return;
  const T* const a = call.input<T>(0);
  const T* const b = call.input_count > 1 ? call.input<T>(1) : nullptr;
  T* const y = call.output<T>(0);
  call.host.parallel_for(lines, std::max<std::int64_t>(1, grain / view.n), [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      // Rows are consecutive to the end; neighbouring lines only within one outer index.
      const std::int64_t stop = view.inner == 1 ? end : std::min(end, (begin / view.inner + 1) * view.inner);
      const std::int64_t at = begin / view.inner * view.n * view.inner + begin % view.inner;
      run(op, a + at, b == nullptr ? nullptr : b + at, y + at, stop - begin, view.n, view.inner);
      begin = stop;
    }
  });
}

/// y = e^(x - max x) / sum e^(x - max x) along the axis
template <class T>
void softmax(const sdk::Call& call) {
  along_axis<T>(call, SoftmaxOp::softmax);
}

/// dx = y (dy - sum dy y)
template <class T>
void softmax_grad(const sdk::Call& call) {
  along_axis<T>(call, SoftmaxOp::softmax_grad);
}

/// y = x - max x - log sum e^(x - max x) along the axis
template <class T>
void log_softmax(const sdk::Call& call) {
  along_axis<T>(call, SoftmaxOp::log_softmax);
}

/// dx = dy - e^y sum dy
template <class T>
void log_softmax_grad(const sdk::Call& call) {
  along_axis<T>(call, SoftmaxOp::log_softmax_grad);
}

constexpr sdk::Traits traits{.in_place = true};

}  // namespace

TENON_KERNEL_WITH(softmax, traits, float, double)
TENON_KERNEL_WITH(softmax_grad, traits, float, double)
TENON_KERNEL_WITH(log_softmax, traits, float, double)
TENON_KERNEL_WITH(log_softmax_grad, traits, float, double)

}  // namespace tenon::openblas
#endif
