// SPDX-License-Identifier: Apache-2.0
// attention_rows.h - the softmax of attention and its gradient on a block of scores, row by row.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::openblas {

/// Scores of `rows` queries with `keys` keys, row-major.
template <class T>
struct ScoreBlock {
  T* scores = nullptr;
  std::int64_t rows = 0, keys = 0;
  /// Keys that row 0 attends to; every further row attends to `seen_step` more. The count is clamped to [0, keys].
  std::int64_t seen = 0, seen_step = 0;
  const T* mask = nullptr;  ///< added to the scores: row stride mask_row, key stride mask_key, 0 or 1; NULL: no mask
  std::int64_t mask_row = 0, mask_key = 0;

  std::int64_t seen_by(std::int64_t row) const { return std::clamp<std::int64_t>(seen + row * seen_step, 0, keys); }
};

/// The running softmax of a row. Source: Milakov, Gimelshein: Online normalizer calculation for softmax (2018).
template <class T>
struct RowState {
  T row_max;   ///< the largest score
  double sum;  ///< of e^(score - row_max)
};

/// Replaces scores by e^(score + mask - row_max), 0 for keys that are not seen, and updates the states. Unless this is the first block,
/// rows of y, of `size` elements each, are rescaled to the new row_max.
void softmax_block_forward(const ScoreBlock<float>& block, bool first, RowState<float>* states, float* y, std::int64_t size);
void softmax_block_forward(const ScoreBlock<double>& block, bool first, RowState<double>* states, double* y, std::int64_t size);

/// Divides y by the sums; log_sum = row_max + log sum, unless NULL. A row that has seen no key gets 0 and -infinity.
void normalise_rows(std::int64_t rows, const RowState<float>* states, float* y, std::int64_t size, float* log_sum);
void normalise_rows(std::int64_t rows, const RowState<double>* states, double* y, std::int64_t size, double* log_sum);

/// Replaces scores by p = e^(score + mask - log_sum) and ds, which holds dy v', by p (ds - sum dy y); both are 0 for keys that are not
/// seen. dy and y have `size` elements per row.
void softmax_block_backward(const ScoreBlock<float>& block, float* ds, const float* log_sum, const float* dy, const float* y,
                            std::int64_t size);
void softmax_block_backward(const ScoreBlock<double>& block, double* ds, const double* log_sum, const double* dy, const double* y,
                            std::int64_t size);

}  // namespace tenon::openblas
