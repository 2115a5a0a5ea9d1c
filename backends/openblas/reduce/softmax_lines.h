// SPDX-License-Identifier: Apache-2.0
// softmax_lines.h - the exponential sums of softmax, log-softmax and the cross-entropy loss, for one instruction set. A line is the
// elements along the axis. It is contiguous (a row), or has stride `inner`; then neighbouring lines are processed together, one per lane.
#if defined(TENON_OPENBLAS_SOFTMAX_LINES_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_SOFTMAX_LINES_H
#undef TENON_OPENBLAS_SOFTMAX_LINES_H
#else
#define TENON_OPENBLAS_SOFTMAX_LINES_H
#endif

#include <cmath>
#include <cstdint>
#include <limits>

#include "simd/partial_vectors.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

// Vectors that are added in T before their sum is added in f64: keeps f32 sums of any length within a few roundings.
constexpr std::int64_t sum_block = 16;

/// The sum in f64 of term(i, m), a vector of T for elements [i, i + m) with zeros in the remaining lanes, over i < n.
template <class T, class Term>
HWY_INLINE double sum_in_blocks(std::int64_t n, const Term& term) {
  const Wide<T> d;
  const std::int64_t step = lanes(d);
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += sum_block * step) {
    const std::int64_t end = HWY_MIN(n, begin + sum_block * step);
    auto sum = hn::Zero(d);
    for (std::int64_t i = begin; i < end; i += step) sum = hn::Add(sum, term(i, HWY_MIN(step, end - i)));
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
  return total;
}

template <class T>
HWY_INLINE T max_of_row(const T* x, std::int64_t n) {
  const Wide<T> d;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  auto row_max = hn::Set(d, lowest);
  for (std::int64_t i = 0; i < n; i += lanes(d)) row_max = hn::Max(row_max, load(d, x + i, n - i, lowest));
  return hn::GetLane(hn::MaxOfLanes(d, row_max));
}

/// e^x of what the maximum of a line was subtracted from: at most 0. A line with NaN, whose maximum may be wrong, has a NaN among its
/// terms.
template <class D, class V>
HWY_INLINE V exp_below_max(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return exp_of_negative_f32(d, raised_to(d, x, -110));  // where e^x is 0 in f32
  } else {
    return exp_of(d, x);
  }
}

/// The terms e^(x - row_max) of a row, also stored to `terms` unless that is NULL; `terms` may be x.
template <class T>
struct ExpTerm {
  const T* x;
  T* terms;
  T row_max;

  HWY_INLINE hn::Vec<Wide<T>> operator()(std::int64_t i, std::int64_t m) const {
    const Wide<T> d;
    // Lanes after the end hold -infinity, whose exponential is 0; with an infinite row_max they are NaN like the whole row.
    const auto v = load(d, x + i, m, -std::numeric_limits<T>::infinity());
    const auto e = exp_below_max(d, hn::Sub(v, hn::Set(d, row_max)));
    if (terms != nullptr) store(e, d, terms + i, m);
    return e;
  }
};

/// The terms that log-softmax subtracts: log p = (x - row_max) - log_sum.
template <class T>
struct LogNormaliser {
  T row_max;
  T log_sum;
};

template <class T>
HWY_INLINE LogNormaliser<T> normalise_row(const T* x, std::int64_t n) {
  const T row_max = max_of_row(x, n);
  return {row_max, static_cast<T>(std::log(sum_in_blocks<T>(n, ExpTerm<T>{x, nullptr, row_max})))};
}

template <class T>
HWY_INLINE void log_softmax_row(const T* x, T* y, std::int64_t n, const LogNormaliser<T>& by) {
  const Wide<T> d;
  const auto row_max = hn::Set(d, by.row_max);
  const auto log_sum = hn::Set(d, by.log_sum);
  for (std::int64_t i = 0; i < n; i += lanes(d)) {
    store(hn::Sub(hn::Sub(load(d, x + i, n - i), row_max), log_sum), d, y + i, n - i);
  }
}

/// The sum of term(j) over j < n, lane by lane, in two levels so that the error stays small without f64.
template <class T, class Term>
HWY_INLINE hn::Vec<Wide<T>> sum_of_lines(std::int64_t n, const Term& term) {
  const Wide<T> d;
  auto total = hn::Zero(d);
  for (std::int64_t begin = 0; begin < n; begin += 64) {
    auto sum = hn::Zero(d);
    for (std::int64_t j = begin; j < HWY_MIN(n, begin + 64); ++j) sum = hn::Add(sum, term(j));
    total = hn::Add(total, sum);
  }
  return total;
}

/// The largest element of each of the first m lines.
template <class T>
HWY_INLINE hn::Vec<Wide<T>> max_of_lines(const T* x, std::int64_t n, std::int64_t inner, std::int64_t m) {
  const Wide<T> d;
  auto row_max = hn::Set(d, -std::numeric_limits<T>::infinity());
  for (std::int64_t j = 0; j < n; ++j) row_max = hn::Max(row_max, load(d, x + j * inner, m));
  return row_max;
}

template <class T>
struct LineExpTerm {
  const T* x;
  T* terms;  // may be NULL, may be x
  std::int64_t inner, m;
  hn::Vec<Wide<T>> row_max;

  HWY_INLINE hn::Vec<Wide<T>> operator()(std::int64_t j) const {
    const Wide<T> d;
    const auto e = exp_below_max(d, hn::Sub(load(d, x + j * inner, m), row_max));
    if (terms != nullptr) store(e, d, terms + j * inner, m);
    return e;
  }
};

/// log sum e^(x - row_max) of each line. The logarithm is scalar: there is one per line.
template <class T>
HWY_INLINE hn::Vec<Wide<T>> log_sum_of_lines(const T* x, std::int64_t n, std::int64_t inner, std::int64_t m, hn::Vec<Wide<T>> row_max) {
  const Wide<T> d;
  HWY_ALIGN T sums[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(sum_of_lines<T>(n, LineExpTerm<T>{x, nullptr, inner, m, row_max}), d, sums);
  for (std::int64_t i = 0; i < lanes(d); ++i) sums[i] = std::log(sums[i]);
  return hn::Load(d, sums);
}

template <class T>
HWY_INLINE void log_softmax_lines(const T* x, T* y, std::int64_t n, std::int64_t inner, std::int64_t m, hn::Vec<Wide<T>> row_max,
                                  hn::Vec<Wide<T>> log_sum) {
  const Wide<T> d;
  for (std::int64_t j = 0; j < n; ++j) {
    store(hn::Sub(hn::Sub(load(d, x + j * inner, m), row_max), log_sum), d, y + j * inner, m);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
