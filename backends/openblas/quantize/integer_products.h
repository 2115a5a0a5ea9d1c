// SPDX-License-Identifier: Apache-2.0
// integer_products.h - products with matrices of 8-bit integers that are packed in panels, divided among the threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "gemm/panels.h"
#include "quantize/integer_tiles.h"

namespace tenon::openblas {

/// What is added, modulo 256, to turn an operand into u8 (a) or i8 (b): x ^ 0x80 for the other type.
inline std::uint8_t flip_to_unsigned(tenon_dtype dtype) {
  return dtype == TENON_DTYPE_I8 ? 0x80 : 0;
}
inline std::uint8_t flip_to_signed(tenon_dtype dtype) {
  return dtype == TENON_DTYPE_U8 ? 0x80 : 0;
}

/// Element i of zero points of i8 or u8 as the converted operand has it: + 128 for an i8 that became u8, - 128 for a u8 that became i8.
/// Of an absent operand: that of 0.
std::int32_t zero_point_of_unsigned(const sdk::Call& call, std::uint32_t operand, tenon_dtype dtype, std::int64_t i);
std::int32_t zero_point_of_signed(const sdk::Call& call, std::uint32_t operand, tenon_dtype dtype, std::int64_t i);

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

/// Packs the bytes of `from`, each ^ flip, into integer_panels_bytes(k, columns).
void pack_integer_panels(const sdk::Host& host, const PanelSource<std::uint8_t>& from, std::uint8_t flip, void* out_packed);

/// Copies rows of k bytes, each ^ flip, to rows of round_up(k, 4) bytes padded with 0.
void copy_integer_rows(const sdk::Host& host, const std::uint8_t* a, std::int64_t rows, std::int64_t k, std::uint8_t flip,
                       std::uint8_t* out_rows);

/// The sums of rows of k elements, `step` apart, on the calling thread.
void sum_integer_rows(const std::uint8_t* a, std::int64_t step, std::int64_t rows, std::int64_t k, std::int32_t* out_sums);

/// The product by all threads.
void multiply_integers(const sdk::Host& host, const IntegerTiles& product);

}  // namespace tenon::openblas
