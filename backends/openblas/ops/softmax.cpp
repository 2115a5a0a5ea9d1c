// SPDX-License-Identifier: Apache-2.0
// ops/softmax.cpp - vectorised softmax, log-softmax and their gradients along any axis.
#include "simd/foreach_target.h"

#include <algorithm>

#include "reduce/softmax_lines.h"

#include <tenon/sdk/kernel.h>

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// y = e^(x - max x) / sum e^(x - max x); y may be x.
struct Softmax {
  template <class T>
  static void row(const T* x, const T*, T* y, std::int64_t n) {
    const Wide<T> d;
    // find the maximum
    const T row_max = max_of_row(x, n);
    // exponentiate and sum
    const auto total = hn::Set(d, static_cast<T>(sum_in_blocks<T>(n, ExpTerm<T>{x, y, row_max})));
    // normalise
    for (std::int64_t i = 0; i < n; i += lanes(d)) store(hn::Div(load(d, y + i, n - i), total), d, y + i, n - i);
  }

  template <class T>
  static void lines(const T* x, const T*, T* y, std::int64_t n, std::int64_t inner, std::int64_t m) {
    const Wide<T> d;
    // find the maximum
    const auto row_max = max_of_lines(x, n, inner, m);
    // exponentiate and sum
    const auto total = sum_of_lines<T>(n, LineExpTerm<T>{x, y, inner, m, row_max});
    // normalise
    for (std::int64_t j = 0; j < n; ++j) store(hn::Div(load(d, y + j * inner, m), total), d, y + j * inner, m);
  }
};

struct LogSoftmax {
  template <class T>
  static void row(const T* x, const T*, T* y, std::int64_t n) {
    log_softmax_row(x, y, n, normalise_row(x, n));
  }

  template <class T>
  static void lines(const T* x, const T*, T* y, std::int64_t n, std::int64_t inner, std::int64_t m) {
    const auto row_max = max_of_lines(x, n, inner, m);
    log_softmax_lines(x, y, n, inner, m, row_max, log_sum_of_lines(x, n, inner, m, row_max));
  }
};

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

/// A gradient: Rule{}(d, dy, y, total) is dx, the total that of dy y if Rule::weighted, else of dy.
template <class Rule>
struct Gradient {
  template <class T>
  static void row(const T* dy, const T* y, T* dx, std::int64_t n) {
    const Wide<T> d;
    const auto total = hn::Set(d, static_cast<T>(sum_in_blocks<T>(n, GradientTerm<T>{dy, Rule::weighted ? y : nullptr})));
    for (std::int64_t i = 0; i < n; i += lanes(d)) {
      store(Rule{}(d, load(d, dy + i, n - i), load(d, y + i, n - i), total), d, dx + i, n - i);
    }
  }

  template <class T>
  static void lines(const T* dy, const T* y, T* dx, std::int64_t n, std::int64_t inner, std::int64_t m) {
    const Wide<T> d;
    const auto total = sum_of_lines<T>(n, LineGradientTerm<T>{dy, Rule::weighted ? y : nullptr, inner, m});
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int64_t at = j * inner;
      store(Rule{}(d, load(d, dy + at, m), load(d, y + at, m), total), d, dx + at, m);
    }
  }
};

/// dx = y (dy - total)
struct SoftmaxGrad {
  static constexpr bool weighted = true;
  template <class D, class V>
  HWY_INLINE V operator()(D, V dy, V y, V total) const {
    return hn::Mul(y, hn::Sub(dy, total));
  }
};

/// dx = dy - e^y total
struct LogSoftmaxGrad {
  static constexpr bool weighted = false;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V y, V total) const {
    return hn::NegMulAdd(exp_of(d, y), total, dy);
  }
};

/// Op on `count` consecutive rows if inner is 1, else on `count` neighbouring lines, as many at a time as a vector has lanes. An op of one
/// operand has no use for b.
template <class Op, class T>
void along_lines(const T* a, const T* b, T* y, std::int64_t count, std::int64_t n, std::int64_t inner) {
  if (inner == 1) {
    for (std::int64_t at = 0; at < count * n; at += n) Op::row(a + at, b + at, y + at, n);
    return;
  }
  const std::int64_t step = lanes(Wide<T>());
  for (std::int64_t i = 0; i < count; i += step) Op::lines(a + i, b + i, y + i, n, inner, std::min(step, count - i));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us.
constexpr std::int64_t grain = 32 * 1024;

template <class T>
void along_axis(const sdk::Call& call, void (*loop)(const T* a, const T* b, T* y, std::int64_t count, std::int64_t n, std::int64_t inner)) {
  const sdk::AxisView view = sdk::around_axis(call.inputs[0], call.attr<tenon_attributes_axis>().axis);
  const std::int64_t lines = view.outer * view.inner;
  if (view.n == 0) return;
  const T* const a = call.input<T>(0);
  const T* const b = call.input<T>(call.input_count - 1);
  T* const y = call.output<T>(0);
  call.host.parallel_for(lines, std::max<std::int64_t>(1, grain / view.n), [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      // Rows are consecutive to the end; neighbouring lines only within one outer index.
      const std::int64_t stop = view.inner == 1 ? end : std::min(end, (begin / view.inner + 1) * view.inner);
      const std::int64_t at = begin / view.inner * view.n * view.inner + begin % view.inner;
      loop(a + at, b + at, y + at, stop - begin, view.n, view.inner);
      begin = stop;
    }
  });
}

/// y = e^(x - max x) / sum e^(x - max x) along the axis
template <class T>
void softmax(const sdk::Call& call) {
  along_axis<T>(call, TENON_DISPATCH(along_lines<Softmax, T>));
}

/// dx = y (dy - sum dy y)
template <class T>
void softmax_grad(const sdk::Call& call) {
  along_axis<T>(call, TENON_DISPATCH(along_lines<Gradient<SoftmaxGrad>, T>));
}

/// y = x - max x - log sum e^(x - max x) along the axis
template <class T>
void log_softmax(const sdk::Call& call) {
  along_axis<T>(call, TENON_DISPATCH(along_lines<LogSoftmax, T>));
}

/// dx = dy - e^y sum dy
template <class T>
void log_softmax_grad(const sdk::Call& call) {
  along_axis<T>(call, TENON_DISPATCH(along_lines<Gradient<LogSoftmaxGrad>, T>));
}

constexpr sdk::Traits traits{.in_place = true};

}  // namespace

TENON_KERNEL_WITH(softmax, traits, float, double)
TENON_KERNEL_WITH(softmax_grad, traits, float, double)
TENON_KERNEL_WITH(log_softmax, traits, float, double)
TENON_KERNEL_WITH(log_softmax_grad, traits, float, double)

}  // namespace tenon::openblas
#endif
