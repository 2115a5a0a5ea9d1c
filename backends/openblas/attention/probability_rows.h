// SPDX-License-Identifier: Apache-2.0
// probability_rows.h - rows of sums that become quantised probabilities.
#pragma once

#include <cstdint>

namespace tenon::openblas {

/// p = saturate(round(softmax(factor scale (sums + addend) + mask) / p_scale) + zero_point) of `rows` rows of n sums, with the bits that
/// DequantizeLinear, Mul, Add, Softmax and QuantizeLinear have one by one.
struct ProbabilityRows {
  static constexpr std::int64_t max_rows = 48;

  std::int64_t rows = 0, n = 0;
  std::int32_t* sums = nullptr;           ///< rows one after another; f32 replaces them
  const std::int32_t* addends = nullptr;  ///< of rows
  float scale = 1;
  const float* factor = nullptr;  ///< NULL: 1
  const float* mask = nullptr;    ///< element i of row r at mask[r mask_row + i], or at mask[r mask_row] for all i; NULL: none
  std::int64_t mask_row = 0;
  bool one_mask = false;
  float p_scale = 1;
  std::int32_t zero_point = 0;
  void* p = nullptr;  ///< i8 or u8
  std::int64_t p_step = 0;
  std::int32_t* p_sums = nullptr;  ///< of the rows of p, which are computed, too
};

}  // namespace tenon::openblas
