// SPDX-License-Identifier: Apache-2.0
// fp8_products.h - matrix products of f16 and bf16 by cuBLASLt's products of FP8 (ADR 94).
//
// Both factors are quantised to E4M3, each with one scale from the largest of its present absolute values, which stays on the device. Sums
// are in f32, promoted as they go ("fast accumulation" is off). Results that have a NaN or an infinity among their terms, or all of them
// where the scales leave the range of f32, are computed again from the factors themselves.
#pragma once

#include <cstddef>

#include "gemm/fp8_choice.h"
#include "gemm/fp8_state.h"
#include "gemm/products.h"

namespace tenon::cuda {

/// Bytes of Fp8Use::memory, aligned to product_alignment.
std::size_t fp8_scratch_bytes(const Fp8Shape& shape);

/// A right factor (k, n) that has been quantised before: its state, its codes, and its elements as (n, k), for what FP8 cannot compute.
struct Fp8Packed {
  /// Aligned to 64, as the memory of packed operands is.
  static std::size_t size_bytes(const Fp8Shape& shape);
  Fp8Packed(const void* memory, const Fp8Shape& shape);

  const Fp8State* state;
  const void* codes;
  const void* elements;
  sdk::MatrixView view;  ///< of the elements, as (k, n)
};
/// Writes the packed copy of a factor (k, n) with any strides.
void fp8_pack(Stream& stream, const sdk::Operand& b, const sdk::MatrixView& view, const Fp8Shape& shape, void* memory);

/// y = alpha a b + beta c + bias, without activation and relu_result: a product with Product::fp8, enqueued in FP8. False, doing nothing,
/// if its addresses do not allow that or cuBLASLt has no algorithm for it. `out_bias_added`: whether the bias has been added.
bool multiply_fp8(Stream& stream, const Product& product, void* workspace, bool& out_bias_added);

}  // namespace tenon::cuda
