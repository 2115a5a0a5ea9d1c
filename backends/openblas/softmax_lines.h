// softmax_lines.h - the exponential sums behind softmax, log-softmax and the cross-entropy loss, for one instruction set. A line is the
// elements along the axis: adjacent ones (a row), or a bundle of neighbouring lines, one per lane, whose elements lie `inner` apart.
#if defined(TENON_OPENBLAS_SOFTMAX_LINES_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_SOFTMAX_LINES_H
#undef TENON_OPENBLAS_SOFTMAX_LINES_H
#else
#define TENON_OPENBLAS_SOFTMAX_LINES_H
#endif

#include <cmath>
#include <cstdint>
#include <limits>

#include "parts.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

// Registers that are added in T before their sum is carried on in f64: keeps f32 sums of any length within a few roundings.
constexpr std::int64_t sum_block = 16;

/// Sum over i < n of term(register, i, m) in f64, where term gives a register of T for elements [i, i + m) with zeros behind.
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
  auto peak = hn::Set(d, lowest);
  for (std::int64_t i = 0; i < n; i += lanes(d)) peak = hn::Max(peak, load(d, x + i, n - i, lowest));
  return hn::GetLane(hn::MaxOfLanes(d, peak));
}

/// Adds up e^(x - peak) over a row and leaves the terms in `terms` unless that is NULL. It may be x.
template <class T>
struct ExpTerm {
  const T* x;
  T* terms;
  T peak;

  HWY_INLINE hn::Vec<Wide<T>> operator()(std::int64_t i, std::int64_t m) const {
    const Wide<T> d;
    // Lanes behind the end hold -infinity, of which the exponential is 0; with an infinite peak they are NaN like the whole row.
    const auto v = load(d, x + i, m, -std::numeric_limits<T>::infinity());
    const auto e = exp_of(d, hn::Sub(v, hn::Set(d, peak)));
    if (terms != nullptr) store(e, d, terms + i, m);
    return e;
  }
};

/// What log-softmax subtracts: log p = (x - peak) - log_sum.
template <class T>
struct LogNormaliser {
  T peak;
  T log_sum;
};

template <class T>
HWY_INLINE LogNormaliser<T> normalise_row(const T* x, std::int64_t n) {
  const T peak = max_of_row(x, n);
  return {peak, static_cast<T>(std::log(sum_in_blocks<T>(n, ExpTerm<T>{x, nullptr, peak})))};
}

template <class T>
HWY_INLINE void log_softmax_row(const T* x, T* y, std::int64_t n, const LogNormaliser<T>& by) {
  const Wide<T> d;
  const auto peak = hn::Set(d, by.peak);
  const auto log_sum = hn::Set(d, by.log_sum);
  for (std::int64_t i = 0; i < n; i += lanes(d)) {
    store(hn::Sub(hn::Sub(load(d, x + i, n - i), peak), log_sum), d, y + i, n - i);
  }
}

/// Sum of term(j) over j < n, lane by lane: short sums first, then their sum, so that the error stays small without f64.
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
  auto peak = hn::Set(d, -std::numeric_limits<T>::infinity());
  for (std::int64_t j = 0; j < n; ++j) peak = hn::Max(peak, load(d, x + j * inner, m));
  return peak;
}

template <class T>
struct LineExpTerm {
  const T* x;
  T* terms;  // may be NULL, may be x
  std::int64_t inner, m;
  hn::Vec<Wide<T>> peak;

  HWY_INLINE hn::Vec<Wide<T>> operator()(std::int64_t j) const {
    const Wide<T> d;
    const auto e = exp_of(d, hn::Sub(load(d, x + j * inner, m), peak));
    if (terms != nullptr) store(e, d, terms + j * inner, m);
    return e;
  }
};

/// The logarithm of the sum for the lines, one by one: there is only one for each line.
template <class T>
HWY_INLINE hn::Vec<Wide<T>> log_sum_of_lines(const T* x, std::int64_t n, std::int64_t inner, std::int64_t m, hn::Vec<Wide<T>> peak) {
  const Wide<T> d;
  HWY_ALIGN T sums[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(sum_of_lines<T>(n, LineExpTerm<T>{x, nullptr, inner, m, peak}), d, sums);
  for (std::int64_t i = 0; i < lanes(d); ++i) sums[i] = std::log(sums[i]);
  return hn::Load(d, sums);
}

template <class T>
HWY_INLINE void log_softmax_lines(const T* x, T* y, std::int64_t n, std::int64_t inner, std::int64_t m, hn::Vec<Wide<T>> peak,
                                  hn::Vec<Wide<T>> log_sum) {
  const Wide<T> d;
  for (std::int64_t j = 0; j < n; ++j) {
    store(hn::Sub(hn::Sub(load(d, x + j * inner, m), peak), log_sum), d, y + j * inner, m);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
