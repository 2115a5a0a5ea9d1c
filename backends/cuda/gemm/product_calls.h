// SPDX-License-Identifier: Apache-2.0
// product_calls.h - what the ops that are one matrix product have in common: their traits, the scratch memory of a call, and
// packed operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gemm/fp8_products.h"
#include "gemm/products.h"
#include "gemm/scratch_arena.h"
#include "gemm/small_calls.h"

namespace tenon::cuda {

/// How the addend beta c of a product gets to cuBLASLt: not at all, as a bias, as a matrix of y's layout, or written to y, in another
/// layout, before the product is added.
enum class Addend { none, bias, matrix, copied };

inline Addend addend_of(const SmallProduct& p, bool has_bias) {
  const std::int64_t m = p.a_view.rows, n = p.b_view.columns;
  if (p.beta == 0) return Addend::none;
  if (p.c_row == 0 && (p.c_column == 1 || n == 1) && p.beta == 1 && !has_bias) return Addend::bias;
  return (p.c_row == n || m == 1) && (p.c_column == 1 || n == 1) ? Addend::matrix : Addend::copied;
}

/// `product_of` is that of SmallCalls; `view_of` has the matrices of an operand with these strides, as the left or the right factor.
template <SmallProduct (*product_of)(const sdk::Call&),
          sdk::MatrixView (*view_of)(const sdk::Operand&, const std::int64_t* strides, bool left)>
struct ProductCalls : SmallCalls<product_of> {
  /// Traits::scratch: of a call that is not small the workspace of its product, and copies of operands that cuBLASLt cannot read.
  static std::size_t scratch(const sdk::Call& call) {
    if (ProductCalls::takes(call)) return 0;
    ScratchArena arena(nullptr);
    arena.allocate_bytes(product_workspace_bytes(call.outputs[0].count));
    fp8(call, arena);
    for (std::uint32_t i = 0; i < 2; ++i) {
      const sdk::Operand& x = call.inputs[i];
      if (packed(call, i) == nullptr && !lt_matrix(view_of(x, x.strides, i == 0))) arena.allocate_bytes(copy_bytes(x));
    }
    return arena.required_bytes();
  }

  /// Whether and how a call that is not small runs in FP8; its memory is allocated from the arena.
  static Fp8Use fp8(const sdk::Call& call, ScratchArena& arena) {
    Fp8Use use{.shape = fp8_shape_with(call, packed(call, right) != nullptr), .packed_b = packed(call, right)};
    if (use.shape.k > 0) use.memory = arena.allocate_bytes(fp8_scratch_bytes(use.shape));
    return use;
  }
  /// The packed copy of an operand, which is the right factor then; NULL: none.
  static const void* packed(const sdk::Call& call, std::uint32_t input) { return call.packed == nullptr ? nullptr : call.packed[input]; }

  /// Traits::pack_size: right factors that are constant, and the same for the whole batch, are quantised to FP8 once.
  static std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
    if (input != right || call.inputs[right].rank != 2 || ProductCalls::takes(call)) return 0;
    const Fp8Shape shape = fp8_shape_with(call, true);
    return shape.k > 0 ? Fp8Packed::size_bytes(shape) : 0;
  }
  static void pack(const sdk::Call& call, std::uint32_t, void* out_packed) {
    fp8_pack(stream_of(call), call.inputs[right], product_of(call).b_view, fp8_shape_with(call, true), out_packed);
  }
  /// Traits::pack_form: besides the operand, the copy depends on which of its dimensions the product sums along.
  static std::string pack_form(const sdk::Call& call, std::uint32_t) {
    const sdk::Operand& b = call.inputs[right];
    const sdk::MatrixView view = product_of(call).b_view;
    return view.rows == b.shape[0] && view.row_stride == b.strides[0] ? "fp8" : "fp8 transposed";
  }

  static constexpr sdk::Traits traits(bool (*column_sums)(const sdk::Call&) = nullptr) {
    return {.strided = true,
            .epilogue = true,
            .residual = true,
            .scratch = scratch,
            .pack_size = pack_size,
            .pack = pack,
            .pack_form = pack_form,
            .pack_donated = false,
            .epilogue_relu_grad = true,
            .run_together = ProductCalls::run,
            .together_when = ProductCalls::takes,
            .column_sums = column_sums};
  }

 private:
  static constexpr std::uint32_t right = 1;  ///< the input that is the right factor

  static Fp8Shape fp8_shape_with(const sdk::Call& call, bool b_packed) {
    if (call.device == nullptr) return {};
    const SmallProduct product = product_of(call);
    // Results that FP8 cannot compute are computed again, for which the addend must still be there.
    if (addend_of(product, call.epilogue.bias != nullptr) == Addend::copied) return {};
    Fp8Shape shape = fp8_shape(product);
    shape.b_packed = b_packed;
    return fp8_choice_of(static_cast<Device&>(*call.device)).takes(shape) ? shape : Fp8Shape{};
  }
};

}  // namespace tenon::cuda
