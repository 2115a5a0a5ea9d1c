// attention_rows.h - what attention does to a block of scores between its products, row by row.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::openblas {

/// Scores of `rows` queries with `keys` keys, row after row.
template <class T>
struct ScoreBlock {
  T* scores = nullptr;
  std::int64_t rows = 0, keys = 0;
  /// Keys that row 0 sees; every further row sees `seen_step` more. Less than 0 is none, more than `keys` all.
  std::int64_t seen = 0, seen_step = 0;
  const T* mask = nullptr;  ///< added to the scores: row stride mask_row, key stride 0 or 1; NULL: nothing
  std::int64_t mask_row = 0, mask_key = 0;

  std::int64_t seen_by(std::int64_t row) const { return std::clamp<std::int64_t>(seen + row * seen_step, 0, keys); }
};

/// What a row knows of the keys so far. Source: Milakov, Gimelshein: Online normalizer calculation for softmax (2018).
template <class T>
struct RowState {
  T peak;      ///< the largest score
  double sum;  ///< of e^(score - peak)
};

/// Scores become e^(score + mask - peak), 0 for keys that are not seen; the states take the block in. With `size` elements of y per row,
/// rows of y are scaled to the new peak unless this is the first block.
void weigh_scores(const ScoreBlock<float>& block, bool first, RowState<float>* states, float* y, std::int64_t size);
void weigh_scores(const ScoreBlock<double>& block, bool first, RowState<double>* states, double* y, std::int64_t size);

/// y divided by the sums, log_sum = peak + log sum unless NULL; 0 and -infinity for a row that has seen nothing.
void finish_rows(std::int64_t rows, const RowState<float>* states, float* y, std::int64_t size, float* log_sum);
void finish_rows(std::int64_t rows, const RowState<double>* states, double* y, std::int64_t size, double* log_sum);

/// Scores become p = e^(score + mask - log_sum), slopes, which hold dy v', become p (slope - sum dy y); both 0 for keys that are not seen.
/// dy and y have `size` elements per row.
void slope_scores(const ScoreBlock<float>& block, float* slopes, const float* log_sum, const float* dy, const float* y, std::int64_t size);
void slope_scores(const ScoreBlock<double>& block, double* slopes, const double* log_sum, const double* dy, const double* y,
                  std::int64_t size);

}  // namespace tenon::openblas
