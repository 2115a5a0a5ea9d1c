// SPDX-License-Identifier: Apache-2.0
// integer_products.h - products with matrices of 8-bit integers that are packed in panels, divided among the threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "gemm/panels.h"
#include "quantize/integer_epilogue.h"
#include "quantize/integer_tiles.h"

namespace tenon::openblas {

/// The operands of an op by index. Its result is i32, or the requantised bytes of operands 1, 4, 6, 7 and 8: the scales of a and b, scale
/// and zero point of y, and an optional bias.
struct IntegerOperands {
  std::uint32_t a, a_zero_point, b, b_zero_point;
  bool requantised;
};
inline constexpr IntegerOperands sum_operands{0, 2, 1, 3, false}, requantised_operands{0, 2, 3, 5, true};

/// What turns weights into i8, modulo 256: x ^ 0x80 of u8.
inline std::uint8_t flip_to_signed(tenon_dtype dtype) {
  return dtype == TENON_DTYPE_U8 ? 0x80 : 0;
}

/// Element i of zero points; 0 of an absent operand.
std::int32_t zero_point_at(const sdk::Call& call, std::uint32_t operand, std::int64_t i);
/// Whether weights are i8 and their zero points are 0.
bool has_symmetric_weights(const sdk::Call& call, const IntegerOperands& at);
/// IntegerTiles::column_factor of columns [first_column, first_column + columns), with 0 up to whole panels: zero points of weights that
/// flip_to_signed turned into i8, times -1. Returns whether any is not 0.
bool fill_column_factors(const sdk::Call& call, const IntegerOperands& at, std::int64_t first_column, std::int64_t columns,
                         std::int32_t* out_factor);

/// The lists of a requantisation of `columns` columns, in out_bias and out_factor, padded to whole panels: bias[j] is the op's bias less
/// what the zero point of a contributes, column_sums being those of the weights.
void fill_requantisation(const sdk::Call& call, const IntegerOperands& at, std::int64_t first_column, std::int64_t columns,
                         const std::int32_t* column_sums, std::int32_t* out_bias, float* out_factor);
/// Zero point and bounds of the result; the lists and y are not set.
IntegerRequantisation requantisation_of(const sdk::Call& call);

// Functions that take a host divide their work among its threads; without one they run on the calling thread.

/// The panels of a (k, columns) matrix, then the sums of their columns.
struct IntegerPanels {
  const std::int8_t* panels = nullptr;
  const std::int32_t* column_sums = nullptr;
};

/// Columns of whole panels.
inline std::int64_t padded_columns(std::int64_t columns) {
  return sdk::round_up(columns, integer_panel_width);
}
inline std::size_t integer_panels_bytes(std::int64_t k, std::int64_t columns) {
  const std::int64_t bytes = integer_panel_bytes(k) + integer_panel_width * static_cast<std::int64_t>(sizeof(std::int32_t));
  return static_cast<std::size_t>(padded_columns(columns) / integer_panel_width * bytes);
}
IntegerPanels integer_panels_at(const void* packed, std::int64_t k, std::int64_t columns);

/// Packs the bytes of `from`, each ^ flip, into integer_panels_bytes(k, columns). With line_step, which is 0 or a multiple of
/// integer_group, the rows of one line of taps begin at multiples of it along k, with zeros between lines.
void pack_integer_panels(const sdk::Host* host, const PanelSource<std::uint8_t>& from, std::uint8_t flip, void* out_packed,
                         std::int64_t line_step = 0);

/// Copies rows of k bytes to rows of padded_k(k) bytes, with zeros at their ends.
void copy_integer_rows(const sdk::Host* host, const std::uint8_t* a, std::int64_t rows, std::int64_t k, std::uint8_t* out_rows);

/// The sums of rows of k elements of u8 or i8, `step` apart, on the calling thread.
void sum_integer_rows(const std::uint8_t* a, bool a_signed, std::int64_t step, std::int64_t rows, std::int64_t k, std::int32_t* out_sums);

/// The product. With an epilogue, its results are those of the epilogue, and product.y is not used.
void multiply_integers(const sdk::Host* host, const IntegerTiles& product, const IntegerEpilogue& epilogue = {});

}  // namespace tenon::openblas
