// SPDX-License-Identifier: Apache-2.0
// product_calls.h - what the ops that are one matrix product have in common: their traits, and the scratch memory of a call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gemm/products.h"
#include "gemm/scratch_arena.h"
#include "gemm/small_calls.h"

namespace tenon::cuda {

/// `product_of` is that of SmallCalls; `view_of` has the matrices of an operand with these strides, as the left or the right factor.
template <SmallProduct (*product_of)(const sdk::Call&),
          sdk::MatrixView (*view_of)(const sdk::Operand&, const std::int64_t* strides, bool left)>
struct ProductCalls : SmallCalls<product_of> {
  /// Traits::scratch: of a call that is not small the workspace of its product, and copies of operands that cuBLASLt cannot read.
  static std::size_t scratch(const sdk::Call& call) {
    if (ProductCalls::takes(call)) return 0;
    ScratchArena arena(nullptr);
    arena.allocate_bytes(product_workspace_bytes(call.outputs[0].count));
    for (std::uint32_t i = 0; i < 2; ++i) {
      const sdk::Operand& x = call.inputs[i];
      if (!lt_matrix(view_of(x, x.strides, i == 0))) arena.allocate_bytes(copy_bytes(x));
    }
    return arena.required_bytes();
  }

  static constexpr sdk::Traits traits(bool (*column_sums)(const sdk::Call&) = nullptr) {
    return {.strided = true,
            .epilogue = true,
            .residual = true,
            .scratch = scratch,
            .epilogue_relu_grad = true,
            .run_together = ProductCalls::run,
            .together_when = ProductCalls::takes,
            .column_sums = column_sums};
  }
};

}  // namespace tenon::cuda
