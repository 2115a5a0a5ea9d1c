// products.h - matrix products by cuBLASLt, for every op that comes down to one.
//
// f32 and narrower types sum in f32, f64 in f64. Call::math decides how f32 factors may be rounded: strict not at all.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "device.h"
#include "layout.h"
#include "matrix_view.h"

namespace tenon::cuda {

/// y = activation(alpha a b + beta c + bias) for every entry of a batch, y (..., m, n) dense.
struct Product {
  tenon_dtype dtype = TENON_DTYPE_NONE;  ///< of all operands: f16, bf16, f32, f64
  std::uint32_t math = TENON_MATH_STRICT;
  MatrixView a_view, b_view;  ///< (m, k), (k, n); lt_matrix() serves them
  Layout<2> batch{};          ///< where a and b lie for each entry; without dimensions: one entry
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
  double alpha = 1;
  double beta = 0;
  const void* c = nullptr;     ///< lies as y does, and may be it; NULL: none
  const void* bias = nullptr;  ///< (n); NULL: none
  sdk::Activation activation = sdk::Activation::none;
};

/// Of a call's scratch memory, which is aligned to 64: the first place that is aligned for a product's operand or workspace.
inline void* aligned(void* scratch) {
  return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(scratch) + 255) / 256 * 256);
}
inline std::size_t aligned_size(std::size_t size_bytes) {
  return (size_bytes + 255) / 256 * 256;
}

/// What a product with so many results wants of its call's scratch memory: cuBLASLt may cut long sums and keep the parts there, in f32 or
/// f64. 32 MiB is what NVIDIA recommends for its newer devices; a small result cannot fill them with 32 parts.
inline std::size_t product_workspace_bytes(std::int64_t results) {
  constexpr std::size_t recommended = std::size_t{32} << 20, least = std::size_t{256} << 10, parts = 32;
  if (static_cast<std::uint64_t>(results) >= recommended / (parts * sizeof(double))) return recommended;
  return least + aligned_size(static_cast<std::size_t>(results) * parts * sizeof(double));
}

/// `workspace`: product_workspace_bytes of the elements of y, aligned to 256.
void multiply(Stream& stream, Product product, void* workspace);

/// Bytes of a dense copy that a matrix whose view cuBLASLt cannot read needs.
inline std::size_t copy_bytes(const sdk::Operand& x) {
  return aligned_size(static_cast<std::size_t>(x.count * sdk::size_of(x.dtype)));
}
/// The copy's elements; `strides` becomes that of a dense x.
void copy_dense(Stream& stream, const sdk::Operand& x, void* to, sdk::Strides& strides);

}  // namespace tenon::cuda
