// SPDX-License-Identifier: Apache-2.0
// attention_rows.h - the softmax of attention and its gradient on a block of scores, row by row.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::openblas {

/// Products q k' of `rows` queries with `keys` keys, row-major. A score is scale product + mask.
template <class T>
struct ScoreBlock {
  T* scores = nullptr;  ///< the products at first, then what replaces them
  T scale = 1;
  std::int64_t rows = 0, keys = 0;
  /// Keys that row 0 attends to; every further row attends to `seen_step` more. The count is clamped to [0, keys].
  std::int64_t seen = 0, seen_step = 0;
  const T* mask = nullptr;  ///< row stride mask_row, key stride mask_key, 0 or 1; NULL: no mask
  std::int64_t mask_row = 0, mask_key = 0;

  std::int64_t seen_by(std::int64_t row) const { return std::clamp<std::int64_t>(seen + row * seen_step, 0, keys); }
};

/// The running softmax of a row. Source: Milakov, Gimelshein: Online normalizer calculation for softmax (2018).
template <class T>
struct RowState {
  T row_max;   ///< the largest score
  double sum;  ///< of e^(score - row_max)
};

/// Replaces the products by e^(score - row_max), 0 for keys that are not seen, and updates the states. Unless this is the first block,
/// rows of y, of `size` elements each and y_step apart, are rescaled to the new row_max.
template <class T>
void softmax_block_forward(const ScoreBlock<T>& block, bool first, RowState<T>* states, T* y, std::int64_t size, std::int64_t y_step);

/// Divides y by the sums; log_sum = row_max + log sum, unless NULL. A row that has seen no key gets 0 and -infinity.
template <class T>
void normalise_rows(std::int64_t rows, const RowState<T>* states, T* y, std::int64_t size, std::int64_t y_step, T* log_sum);

/// Replaces the products by p = e^(score - log_sum) and ds, which holds dy v', by p (ds - sum dy y); both are 0 for keys that are not
/// seen. dy and y have `size` elements per row.
template <class T>
void softmax_block_backward(const ScoreBlock<T>& block, T* ds, const T* log_sum, const T* dy, const T* y, std::int64_t size);

}  // namespace tenon::openblas
