// SPDX-License-Identifier: Apache-2.0
// attention_rows.cpp - exponentials and sums of attention's scores, with vectors along the keys.
#include "simd/foreach_target.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reduce/softmax_lines.h"

#include "attention/attention_rows.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// The scores of n > 0 keys in place of the products; returns the largest.
template <class T>
T find_scores(const ScoreBlock<T>& block, std::int64_t row, T* scores, std::int64_t n) {
  const Wide<T> d;
  const auto lowest = hn::Set(d, -std::numeric_limits<T>::infinity()), scale = hn::Set(d, block.scale);
  const T* const mask = block.mask == nullptr ? nullptr : block.mask + row * block.mask_row;
  const auto single = mask == nullptr ? hn::Zero(d) : hn::Set(d, *mask);
  const bool varies = mask != nullptr && block.mask_key != 0;
  auto row_max = lowest;
  across<T>(n, [&](std::int64_t i, std::int64_t m) HWY_ATTR {
    const auto v = hn::MulAdd(load(d, scores + i, m), scale, varies ? load(d, mask + i, m) : single);
    store(v, d, scores + i, m);
    row_max = hn::Max(row_max, m < lanes(d) ? hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(m)), v, lowest) : v);
  });
  return hn::GetLane(hn::MaxOfLanes(d, row_max));
}

template <class T>
void scale_row(T* y, std::int64_t n, T by) {
  const Wide<T> d;
  const auto factor = hn::Set(d, by);
  for (std::int64_t i = 0; i < n; i += lanes(d)) store(hn::Mul(load(d, y + i, n - i), factor), d, y + i, n - i);
}

/// e^(x - row_max) for x <= row_max
template <class T>
struct Weight {
  T* x;
  T row_max;

  HWY_INLINE hn::Vec<Wide<T>> operator()(std::int64_t i, std::int64_t m) const {
    const Wide<T> d;
    const auto v = load(d, x + i, m, -std::numeric_limits<T>::infinity());
    const auto exponent = hn::Sub(v, hn::Set(d, row_max));
    hn::Vec<Wide<T>> e;
    if constexpr (sizeof(T) == 4) {
      e = exp_of_negative_f32(d, raised_to(d, exponent, -110));  // where e^x is 0 in f32
    } else {
      e = exp_of_minus_magnitude(d, exponent);
    }
    store(e, d, x + i, m);
    return e;
  }
};

// Rows whose maxima are found before the exponentials of any: the processor overlaps the reductions of several rows.
constexpr std::int64_t rows_at_once = 4;

template <class T>
void softmax_rows_forward(const ScoreBlock<T>& block, bool first, RowState<T>* states, T* y, std::int64_t size, std::int64_t y_step) {
  constexpr T nothing = -std::numeric_limits<T>::infinity();
  for (std::int64_t begin = 0; begin < block.rows; begin += rows_at_once) {
    const std::int64_t end = HWY_MIN(block.rows, begin + rows_at_once);
    T maxima[rows_at_once];
    for (std::int64_t row = begin; row < end; ++row) {
      if (first) states[row] = {nothing, 0};
      T* const scores = block.scores + row * block.keys;
      const std::int64_t n = block.seen_by(row);
      std::fill(scores + n, scores + block.keys, T(0));
      if (n > 0) maxima[row - begin] = std::max(states[row].row_max, find_scores(block, row, scores, n));
    }
    for (std::int64_t row = begin; row < end; ++row) {
      RowState<T>& state = states[row];
      const std::int64_t n = block.seen_by(row);
      if (n == 0) continue;
      // if every score is -infinity, any base gives weights of 0
      const T row_max = maxima[row - begin], base = row_max == nothing ? T(0) : row_max;
      const double sum = sum_in_blocks<T>(n, Weight<T>{block.scores + row * block.keys, base});
      // rescale earlier blocks to the new maximum
      if (!first && (row_max != state.row_max || std::isnan(row_max))) {
        const T change = std::exp(state.row_max - base);
        scale_row(y + row * y_step, size, change);
        state.sum *= double{change};
      }
      state = {row_max, state.sum + sum};
    }
  }
}

template <class T>
void normalise_all(std::int64_t rows, const RowState<T>* states, T* y, std::int64_t size, std::int64_t y_step, T* log_sum) {
  for (std::int64_t row = 0; row < rows; ++row, y += y_step) {
    const RowState<T>& state = states[row];
    const bool empty = state.sum == 0;
    if (empty) {
      std::fill_n(y, size, T(0));
    } else {
      scale_row(y, size, static_cast<T>(1 / state.sum));
    }
    if (log_sum != nullptr) {
      log_sum[row] = empty ? -std::numeric_limits<T>::infinity() : static_cast<T>(double{state.row_max} + std::log(state.sum));
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
void softmax_rows_backward(const ScoreBlock<T>& block, T* ds, const T* log_sum, const T* dy, const T* y, std::int64_t size) {
  const Wide<T> d;
  for (std::int64_t row = 0; row < block.rows; ++row, ds += block.keys, dy += size, y += size) {
    T* const scores = block.scores + row * block.keys;
    const std::int64_t n = log_sum[row] == -std::numeric_limits<T>::infinity() ? 0 : block.seen_by(row);
    std::fill(scores + n, scores + block.keys, T(0));
    std::fill(ds + n, ds + block.keys, T(0));
    if (n == 0) continue;
    find_scores(block, row, scores, n);
    const auto base = hn::Set(d, log_sum[row]);
    const auto weighted = hn::Set(d, static_cast<T>(sum_in_blocks<T>(size, ProductTerm<T>{dy, y})));
    for (std::int64_t i = 0; i < n; i += lanes(d)) {
      const auto p = exp_of(d, hn::Sub(load(d, scores + i, n - i), base));
      store(p, d, scores + i, n - i);
      store(hn::Mul(p, hn::Sub(load(d, ds + i, n - i), weighted)), d, ds + i, n - i);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

template <class T>
void softmax_block_forward(const ScoreBlock<T>& block, bool first, RowState<T>* states, T* y, std::int64_t size, std::int64_t y_step) {
  TENON_DISPATCH(softmax_rows_forward<T>)(block, first, states, y, size, y_step);
}
TENON_INSTANTIATE_FLOATS(softmax_block_forward)

template <class T>
void normalise_rows(std::int64_t rows, const RowState<T>* states, T* y, std::int64_t size, std::int64_t y_step, T* log_sum) {
  TENON_DISPATCH(normalise_all<T>)(rows, states, y, size, y_step, log_sum);
}
TENON_INSTANTIATE_FLOATS(normalise_rows)

template <class T>
void softmax_block_backward(const ScoreBlock<T>& block, T* ds, const T* log_sum, const T* dy, const T* y, std::int64_t size) {
  TENON_DISPATCH(softmax_rows_backward<T>)(block, ds, log_sum, dy, y, size);
}
TENON_INSTANTIATE_FLOATS(softmax_block_backward)

}  // namespace tenon::openblas
#endif
