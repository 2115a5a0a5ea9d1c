// attention_rows.cpp - exponentials and sums of attention's scores, in vectors along the keys.
#include "instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention_rows.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "softmax_lines.h"

#include "attention_rows.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// scores += mask over n keys
template <class T>
void add_mask(const ScoreBlock<T>& block, std::int64_t row, T* scores, std::int64_t n) {
  const Wide<T> d;
  const T* const mask = block.mask + row * block.mask_row;
  const auto single = hn::Set(d, *mask);
  for (std::int64_t i = 0; i < n; i += lanes(d)) {
    const auto more = block.mask_key == 0 ? single : load(d, mask + i, n - i);
    store(hn::Add(load(d, scores + i, n - i), more), d, scores + i, n - i);
  }
}

template <class T>
void scale_row(T* y, std::int64_t n, T by) {
  const Wide<T> d;
  const auto factor = hn::Set(d, by);
  for (std::int64_t i = 0; i < n; i += lanes(d)) store(hn::Mul(load(d, y + i, n - i), factor), d, y + i, n - i);
}

/// e^(x - peak) for x <= peak
template <class T>
struct Weight {
  T* x;
  T peak;

  HWY_INLINE hn::Vec<Wide<T>> operator()(std::int64_t i, std::int64_t m) const {
    const Wide<T> d;
    const auto v = load(d, x + i, m, -std::numeric_limits<T>::infinity());
    const auto e = exp_of_minus_magnitude(d, hn::Sub(v, hn::Set(d, peak)));
    store(e, d, x + i, m);
    return e;
  }
};

template <class T>
void weigh_rows(const ScoreBlock<T>& block, bool first, RowState<T>* states, T* y, std::int64_t size) {
  constexpr T nothing = -std::numeric_limits<T>::infinity();
  for (std::int64_t row = 0; row < block.rows; ++row, y += size) {
    RowState<T>& state = states[row];
    if (first) state = {nothing, 0};
    T* const scores = block.scores + row * block.keys;
    const std::int64_t n = block.seen_by(row);
    std::fill(scores + n, scores + block.keys, T(0));
    if (n == 0) continue;
    if (block.mask != nullptr) add_mask(block, row, scores, n);
    const T peak = std::max(state.peak, max_of_row(scores, n));
    // where every score is -infinity any peak gives weights of 0
    const T base = peak == nothing ? T(0) : peak;
    const double sum = sum_in_blocks<T>(n, Weight<T>{scores, base});
    if (peak != state.peak || std::isnan(peak)) {
      const T change = std::exp(state.peak - base);
      if (!first) scale_row(y, size, change);
      state.sum *= double{change};
    }
    state = {peak, state.sum + sum};
  }
}

template <class T>
void divide_rows(std::int64_t rows, const RowState<T>* states, T* y, std::int64_t size, T* log_sum) {
  for (std::int64_t row = 0; row < rows; ++row, y += size) {
    const RowState<T>& state = states[row];
    const bool empty = state.sum == 0;
    if (empty) {
      std::fill_n(y, size, T(0));
    } else {
      scale_row(y, size, static_cast<T>(1 / state.sum));
    }
    if (log_sum != nullptr) {
      log_sum[row] = empty ? -std::numeric_limits<T>::infinity() : static_cast<T>(double{state.peak} + std::log(state.sum));
    }
  }
}

template <class T>
struct ProductTerm {
  const T* a;
  const T* b;
  HWY_INLINE hn::Vec<Wide<T>> operator()(std::int64_t i, std::int64_t m) const {
    const Wide<T> d;
    return hn::Mul(load(d, a + i, m), load(d, b + i, m));
  }
};

template <class T>
void slope_rows(const ScoreBlock<T>& block, T* slopes, const T* log_sum, const T* dy, const T* y, std::int64_t size) {
  const Wide<T> d;
  for (std::int64_t row = 0; row < block.rows; ++row, slopes += block.keys, dy += size, y += size) {
    T* const scores = block.scores + row * block.keys;
    const std::int64_t n = log_sum[row] == -std::numeric_limits<T>::infinity() ? 0 : block.seen_by(row);
    std::fill(scores + n, scores + block.keys, T(0));
    std::fill(slopes + n, slopes + block.keys, T(0));
    if (n == 0) continue;
    if (block.mask != nullptr) add_mask(block, row, scores, n);
    const auto base = hn::Set(d, log_sum[row]);
    const auto weighted = hn::Set(d, static_cast<T>(sum_in_blocks<T>(size, ProductTerm<T>{dy, y})));
    for (std::int64_t i = 0; i < n; i += lanes(d)) {
      const auto p = exp_of(d, hn::Sub(load(d, scores + i, n - i), base));
      store(p, d, scores + i, n - i);
      store(hn::Mul(p, hn::Sub(load(d, slopes + i, n - i), weighted)), d, slopes + i, n - i);
    }
  }
}

}  // namespace

void weigh_f32(const ScoreBlock<float>& block, bool first, RowState<float>* states, float* y, std::int64_t size) {
  weigh_rows(block, first, states, y, size);
}
void weigh_f64(const ScoreBlock<double>& block, bool first, RowState<double>* states, double* y, std::int64_t size) {
  weigh_rows(block, first, states, y, size);
}
void finish_f32(std::int64_t rows, const RowState<float>* states, float* y, std::int64_t size, float* log_sum) {
  divide_rows(rows, states, y, size, log_sum);
}
void finish_f64(std::int64_t rows, const RowState<double>* states, double* y, std::int64_t size, double* log_sum) {
  divide_rows(rows, states, y, size, log_sum);
}
void slope_f32(const ScoreBlock<float>& block, float* slopes, const float* log_sum, const float* dy, const float* y, std::int64_t size) {
  slope_rows(block, slopes, log_sum, dy, y, size);
}
void slope_f64(const ScoreBlock<double>& block, double* slopes, const double* log_sum, const double* dy, const double* y,
               std::int64_t size) {
  slope_rows(block, slopes, log_sum, dy, y, size);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

void weigh_scores(const ScoreBlock<float>& block, bool first, RowState<float>* states, float* y, std::int64_t size) {
  TENON_BEST(weigh_f32)(block, first, states, y, size);
}
void weigh_scores(const ScoreBlock<double>& block, bool first, RowState<double>* states, double* y, std::int64_t size) {
  TENON_BEST(weigh_f64)(block, first, states, y, size);
}
void finish_rows(std::int64_t rows, const RowState<float>* states, float* y, std::int64_t size, float* log_sum) {
  TENON_BEST(finish_f32)(rows, states, y, size, log_sum);
}
void finish_rows(std::int64_t rows, const RowState<double>* states, double* y, std::int64_t size, double* log_sum) {
  TENON_BEST(finish_f64)(rows, states, y, size, log_sum);
}
void slope_scores(const ScoreBlock<float>& block, float* slopes, const float* log_sum, const float* dy, const float* y, std::int64_t size) {
  TENON_BEST(slope_f32)(block, slopes, log_sum, dy, y, size);
}
void slope_scores(const ScoreBlock<double>& block, double* slopes, const double* log_sum, const double* dy, const double* y,
                  std::int64_t size) {
  TENON_BEST(slope_f64)(block, slopes, log_sum, dy, y, size);
}

}  // namespace tenon::openblas
#endif
