// SPDX-License-Identifier: Apache-2.0
// ops/reduce.cpp - reductions over any axes. Sums and products of floats are accumulated in f64.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "reduce/reduction_kernels.h"

namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us.
constexpr std::int64_t grain = 128 * 1024;
constexpr std::int64_t exponential_grain = 16 * 1024;

template <class T, class Finish>
void add_up(const sdk::Call& call, Term term, const Finish& finish) {
  reduce<Total>(call, grain, sum_kernels<T>(term), finish);
}

struct Add {
  template <class T>
  static T joined(T a, T b) {
    return a + b;
  }
  static constexpr int start = 0;
};
struct Multiply {
  template <class T>
  static T joined(T a, T b) {
    return a * b;
  }
  static constexpr int start = 1;
};
/// Combines partial sums or products; integers wrap.
template <class T, class Operation>
struct Combine {
  static T neutral() { return Operation::start; }
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      using Bits = std::make_unsigned_t<T>;
      return static_cast<T>(Operation::joined(static_cast<Bits>(a), static_cast<Bits>(b)));
    } else {
      return Operation::joined(a, b);
    }
  }
};

/// Combines partial maxima or minima; NaN propagates.
template <class T, bool largest>
struct Better {
  static T neutral() {
    using Limits = std::numeric_limits<T>;
    if constexpr (Limits::has_infinity) {
      return largest ? -Limits::infinity() : Limits::infinity();
    } else {
      return largest ? Limits::lowest() : Limits::max();
    }
  }
  T operator()(T a, T b) const {
    if constexpr (!std::is_integral_v<T>) {
      if (std::isnan(a) || std::isnan(b)) return a + b;
    }
    return largest ? std::max(a, b) : std::min(a, b);
  }
};

constexpr auto as_it_is = [](auto x) { return x; };

/// y = sum of x over the axes, over all if none is given; 0 if there are no elements. Integers wrap.
template <class T>
void reduce_sum(const sdk::Call& call) {
  if constexpr (std::is_integral_v<T>) {
    reduce<Joined<T, Combine<T, Add>>>(call, grain, wrapping_kernels<T>(Term::value), as_it_is);
  } else {
    add_up<T>(call, Term::value, as_it_is);
  }
}

/// y = mean of x over the axes, over all if none is given; NaN if there are no elements
template <class T>
void reduce_mean(const sdk::Call& call) {
  const std::int64_t results = call.outputs[0].count;
  const auto terms = static_cast<double>(results == 0 ? 0 : call.inputs[0].count / results);
  add_up<T>(call, Term::value, [terms](double sum) { return terms == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / terms; });
}

/// y = largest x over the axes, over all if none is given; NaN propagates
template <class T>
void reduce_max(const sdk::Call& call) {
  reduce<Joined<T, Better<T, true>>>(call, grain, extreme_kernels<T>(true), as_it_is);
}

/// y = smallest x over the axes, over all if none is given; NaN propagates
template <class T>
void reduce_min(const sdk::Call& call) {
  reduce<Joined<T, Better<T, false>>>(call, grain, extreme_kernels<T>(false), as_it_is);
}

/// y = product of x over the axes, over all if none is given; 1 if there are no elements. Integers wrap.
template <class T>
void reduce_prod(const sdk::Call& call) {
  if constexpr (std::is_integral_v<T>) {
    reduce<Joined<T, Combine<T, Multiply>>>(call, grain, wrapping_kernels<T>(Term::factor), as_it_is);
  } else {
    reduce<Joined<double, Combine<double, Multiply>>>(call, grain, sum_kernels<T>(Term::factor), as_it_is);
  }
}

/// y = sum |x| over the axes, over all if none is given
template <class T>
void reduce_l1(const sdk::Call& call) {
  add_up<T>(call, Term::magnitude, as_it_is);
}

/// y = sum x^2 over the axes, over all if none is given
template <class T>
void reduce_sum_square(const sdk::Call& call) {
  add_up<T>(call, Term::square, as_it_is);
}

/// The norm that gives element `result` of y, with elements scaled by the power of two next to the largest.
double scaled_norm(const sdk::Call& call, std::int64_t result) {
  const ReductionMethod method = method_of(call, grain);
  const double* const x = call.input<double>(0) + method.kept.offsets(result)[0];
  const auto for_each = [&](auto&& body) {
    for_each_run(method.reduced, 0, method.reduced.count, [&](const std::array<std::int64_t, 1>& at, std::int64_t, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) body(x[at[0] + i * method.reduced.run_stride(0)]);
    });
  };
  // find the largest magnitude
  double largest = 0;
  for_each([&](double value) {
    if (std::isnan(value) || std::fabs(value) > largest) largest = std::fabs(value);
  });
  if (largest == 0 || !std::isfinite(largest)) return largest;
  // sum the scaled squares
  const int exponent = std::ilogb(largest);
  Total squares;
  for_each([&](double value) {
    const double scaled = std::ldexp(value, -exponent);
    squares.add(scaled * scaled);
  });
  return std::ldexp(std::sqrt(squares.value()), exponent);
}

/// y = sqrt(sum x^2) over the axes, over all if none is given. Squares of f32 fit f64. Where squares of f64 overflow or underflow, or
/// nearly so, the norm is recomputed with scaled elements.
template <class T>
void reduce_l2(const sdk::Call& call) {
  add_up<T>(call, Term::square, [](double squares) { return std::sqrt(squares); });
  if constexpr (sizeof(T) == 8) {
    T* const y = call.output<T>(0);
    for (std::int64_t i = 0; i < call.outputs[0].count; ++i) {
      if (!(y[i] > 1e-140 && y[i] < 1e150) && call.inputs[0].count > 0) y[i] = scaled_norm(call, i);
    }
  }
}

/// y = row_max + log(sum exp(x - row_max)) over the axes, over all if none is given; -inf if there are no elements
template <class T>
void reduce_log_sum_exp(const sdk::Call& call) {
  reduce<Joined<ScaledSum, AddScaled>>(call, exponential_grain, exponential_kernels<T>(),
                                       [](const ScaledSum& s) { return s.row_max + std::log(s.sum); });
}

const char* refuse_empty(const sdk::Call& call) {
  return call.inputs[0].count == 0 && call.outputs[0].count > 0 ? "the axes have no element to choose from" : nullptr;
}

/// A partial result has at most 8 bytes.
constexpr sdk::Traits traits{.strided = true, .scratch = reduction_scratch<double, grain>};
constexpr sdk::Traits choosing{.strided = true, .scratch = reduction_scratch<double, grain>, .refuse = refuse_empty};
constexpr sdk::Traits exponential{.strided = true, .scratch = reduction_scratch<ScaledSum, exponential_grain>};

}  // namespace

TENON_KERNEL_WITH(reduce_sum, traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(reduce_mean, traits, float, double)
TENON_KERNEL_WITH(reduce_max, choosing, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(reduce_min, choosing, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(reduce_prod, traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(reduce_l1, traits, float, double)
TENON_KERNEL_WITH(reduce_l2, traits, float, double)
TENON_KERNEL_WITH(reduce_sum_square, traits, float, double)
TENON_KERNEL_WITH(reduce_log_sum_exp, exponential, float, double)

}  // namespace tenon::openblas
