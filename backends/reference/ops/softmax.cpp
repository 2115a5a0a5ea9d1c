// SPDX-License-Identifier: Apache-2.0
// Softmax, its logarithm, and their gradients, along one axis.
#include <tenon/sdk/kernel.h>

#include <cmath>
#include <limits>

namespace tenon::reference {
namespace {

/// The elements of an operand along the axis, one line of n at a time.
struct Lines {
  std::int64_t outer, n, inner;

  explicit Lines(const sdk::Call& call) {
    const sdk::AxisView view = sdk::around_axis(call.inputs[0], call.attr<tenon_attributes_axis>().axis);
    outer = view.outer;
    n = view.n;
    inner = view.inner;
  }
  /// body(first): the line's elements are first, first + inner, ..., n of them. No lines if n is 0.
  template <class Body>
  void for_each(Body&& body) const {
    for (std::int64_t o = 0; o < outer && n > 0; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) body(o * n * inner + i);
    }
  }
  /// Sum over the line's elements of term(index).
  template <class Term>
  double sum(std::int64_t first, Term&& term) const {
    double total = 0;
    for (std::int64_t j = 0; j < n; ++j) total += term(first + j * inner);
    return total;
  }
};

/// max x of a line. NaN is skipped; it propagates through its exponential.
template <class T>
double row_max_of(const T* x, const Lines& lines, std::int64_t first) {
  double row_max = -std::numeric_limits<double>::infinity();
  for (std::int64_t j = 0; j < lines.n; ++j) {
    const double value = x[first + j * lines.inner];
    if (value > row_max) row_max = value;
  }
  return row_max;
}

/// y = exp(x - max x) / sum exp(x - max x), along the axis.
///
/// Shapes  x, y dense; y may be x. An axis of size 0 writes nothing.
/// Dtypes  f32, f64; everything up to the final rounding is f64.
/// Source  Goodfellow, Bengio, Courville: Deep Learning (2016), section 4.1 (why the maximum is subtracted).
template <class T>
void softmax(const sdk::Call& call) {
  const Lines lines(call);
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  lines.for_each([&](std::int64_t first) {
    const double row_max = row_max_of(x, lines, first);
    const double total = lines.sum(first, [&](std::int64_t i) { return std::exp(x[i] - row_max); });
    for (std::int64_t j = 0; j < lines.n; ++j) {
      const std::int64_t i = first + j * lines.inner;
      y[i] = static_cast<T>(std::exp(x[i] - row_max) / total);
    }
  });
}

/// dx = y (dy - sum(dy y)), the sum along the axis. dx may be dy or y.
template <class T>
void softmax_grad(const sdk::Call& call) {
  const Lines lines(call);
  const T* dy = call.input<T>(0);
  const T* y = call.input<T>(1);
  T* dx = call.output<T>(0);
  lines.for_each([&](std::int64_t first) {
    const double dot = lines.sum(first, [&](std::int64_t i) { return double{dy[i]} * double{y[i]}; });
    for (std::int64_t j = 0; j < lines.n; ++j) {
      const std::int64_t i = first + j * lines.inner;
      dx[i] = static_cast<T>(double{y[i]} * (dy[i] - dot));
    }
  });
}

/// y = x - max x - log(sum exp(x - max x)), along the axis. y may be x.
template <class T>
void log_softmax(const sdk::Call& call) {
  const Lines lines(call);
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  lines.for_each([&](std::int64_t first) {
    const double row_max = row_max_of(x, lines, first);
    const double log_total = std::log(lines.sum(first, [&](std::int64_t i) { return std::exp(x[i] - row_max); }));
    for (std::int64_t j = 0; j < lines.n; ++j) {
      const std::int64_t i = first + j * lines.inner;
      y[i] = static_cast<T>(x[i] - row_max - log_total);
    }
  });
}

/// dx = dy - exp(y) sum(dy), the sum along the axis. dx may be dy or y.
template <class T>
void log_softmax_grad(const sdk::Call& call) {
  const Lines lines(call);
  const T* dy = call.input<T>(0);
  const T* y = call.input<T>(1);
  T* dx = call.output<T>(0);
  lines.for_each([&](std::int64_t first) {
    const double total = lines.sum(first, [&](std::int64_t i) { return double{dy[i]}; });
    for (std::int64_t j = 0; j < lines.n; ++j) {
      const std::int64_t i = first + j * lines.inner;
      dx[i] = static_cast<T>(dy[i] - std::exp(double{y[i]}) * total);
    }
  });
}

}  // namespace
TENON_KERNEL_WITH(softmax, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(softmax_grad, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(log_softmax, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(log_softmax_grad, (sdk::Traits{.in_place = true}), float, double)
}  // namespace tenon::reference
