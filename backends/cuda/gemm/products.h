// SPDX-License-Identifier: Apache-2.0
// products.h - matrix products by cuBLASLt, for every op that is lowered to one.
//
// f32 and narrower types accumulate in f32, f64 in f64. Call::math decides how f32 factors may be rounded; strict: not at all.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/matrix_view.h>
#include <tenon/sdk/rounding.h>

#include "device/device.h"
#include "gemm/fp8_choice.h"
#include "gemm/matrix_view.h"
#include "kernel/layout.h"

namespace tenon::cuda {

/// That a product runs in FP8, where its addresses allow it.
struct Fp8Use {
  Fp8Shape shape = {};             ///< of Fp8Choice, with k = 0: it does not
  void* memory = nullptr;          ///< fp8_scratch_bytes, aligned to product_alignment
  const void* packed_b = nullptr;  ///< the memory of an Fp8Packed; NULL: b is quantised
};

/// y = relu_grad(activation(alpha a b + beta c + bias)) for every entry of a batch, y (..., m, n) dense.
struct Product {
  tenon_dtype dtype = TENON_DTYPE_NONE;  ///< of all operands: f16, bf16, f32, f64
  std::uint32_t math = TENON_MATH_STRICT;
  sdk::MatrixView a_view, b_view;  ///< (m, k), (k, n); lt_matrix() must accept them
  Layout<2> batch{};               ///< offsets of a and b for each entry; rank 0: one entry
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
  double alpha = 1;
  double beta = 0;
  const void* c = nullptr;     ///< same layout as y, may alias y; NULL: none
  const void* bias = nullptr;  ///< (n); NULL: none
  sdk::Activation activation = {};
  const void* relu_result = nullptr;  ///< of the layout of y, as of sdk::Epilogue; NULL: none
  Fp8Use fp8 = {};
};

/// The alignment in bytes of a product's copied operands and workspace.
inline constexpr std::size_t product_alignment = 256;

/// Scratch bytes for a product with this many results: cuBLASLt may split long sums and store the partial sums there, in f32 or f64. NVIDIA
/// recommends 32 MiB for newer devices; a small result cannot fill them with 32 parts.
inline std::size_t product_workspace_bytes(std::int64_t results) {
  constexpr std::size_t recommended = std::size_t{32} << 20, minimum = std::size_t{256} << 10, parts = 32;
  if (static_cast<std::uint64_t>(results) >= recommended / (parts * sizeof(double))) return recommended;
  return minimum + sdk::aligned_size(static_cast<std::size_t>(results) * parts * sizeof(double), product_alignment);
}

/// `workspace`: product_workspace_bytes of the elements of y, aligned to 256.
void multiply(Stream& stream, Product product, void* workspace);

/// Bytes of the dense copy of a matrix whose strides cuBLASLt cannot read.
inline std::size_t copy_bytes(const sdk::Operand& x) {
  return static_cast<std::size_t>(x.count * sdk::size_of(x.dtype));
}
/// Copies the elements of x to `to`; `strides` receives the strides of a dense x.
void copy_dense(Stream& stream, const sdk::Operand& x, void* to, sdk::Strides& strides);

}  // namespace tenon::cuda
