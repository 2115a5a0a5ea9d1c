// SPDX-License-Identifier: Apache-2.0
// integer_epilogue.h - the nodes DequantizeLinear, Add, activation and QuantizeLinear after a product with i32 results, applied to a block
// of them while it is in the L1 cache. Each is rounded to f32 as if it ran by itself; activations are those of other epilogues.
#pragma once

#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "quantize/integer_tiles.h"

namespace tenon::openblas {

/// y = activation(sum scale[j] + bias[j] + residual[i, j]), or that quantised to bytes: saturate(round(y / y_scale) + y_zero_point), ties
/// to even, and 0 for NaN. Bias, residual and activation are optional.
struct IntegerEpilogue {
  const float* scale = nullptr;     ///< of columns; NULL: there is no epilogue
  bool one_scale = false;           ///< scale[0] is that of all columns
  const float* bias = nullptr;      ///< of columns
  const float* residual = nullptr;  ///< of the layout of y
  sdk::Activation activation = {};
  float* y = nullptr;             ///< the floats, unless they are quantised
  std::uint8_t* bytes = nullptr;  ///< of i8 or u8; NULL: floats are not quantised
  std::int64_t y_step = 0;        ///< between rows of either
  const float* y_scale = nullptr;
  std::int32_t y_zero_point = 0;
  bool is_signed = false;  ///< bytes are i8

  /// The epilogue of results that begin with this row and column.
  IntegerEpilogue from(std::int64_t row, std::int64_t column) const;
};

/// That of a call whose result of i32 becomes floats or bytes (sdk::Epilogue::scale) and has `columns` columns.
IntegerEpilogue integer_epilogue_of(const sdk::Call& call, std::int64_t columns);

/// Rows and columns of a block.
inline constexpr std::int64_t integer_block_rows = 128, integer_block_columns = integer_panel_width;

/// Makes floats or bytes of `rows` rows of integer_block_columns sums, of which the first `columns` are results.
void apply_integer_epilogue(const IntegerEpilogue& epilogue, const std::int32_t* sums, std::int64_t rows, std::int64_t columns);

}  // namespace tenon::openblas
