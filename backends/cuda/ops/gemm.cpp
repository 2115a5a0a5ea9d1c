// SPDX-License-Identifier: Apache-2.0
// ops/gemm.cpp - y = alpha op(a) op(b) + beta c: small ones by a kernel of our own, the others through cuBLASLt.
#include "gemm/epilogue.h"
#include "gemm/product_calls.h"
#include "kernel/launch.h"

namespace tenon::cuda {
namespace {

/// The same for both factors.
sdk::MatrixView view_of(const sdk::Operand& x, const std::int64_t* strides, bool = true) {
  return {x.shape[0], x.shape[1], strides[0], strides[1]};
}

/// The strides of c, broadcast to y.
struct AddendStrides {
  std::int64_t row = 0, column = 0;
  explicit AddendStrides(const sdk::Operand& c) {
    if (c.rank >= 1 && c.shape[c.rank - 1] != 1) column = c.strides[c.rank - 1];
    if (c.rank >= 2 && c.shape[c.rank - 2] != 1) row = c.strides[c.rank - 2];
  }
};

SmallProduct small_product(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_gemm>();
  const sdk::Operand &a = call.inputs[0], &b = call.inputs[1];
  const sdk::MatrixView a_view = view_of(a, a.strides), b_view = view_of(b, b.strides);
  SmallProduct product{.dtype = a.dtype,
                       .a_view = attributes.trans_a != 0 ? a_view.transposed() : a_view,
                       .b_view = attributes.trans_b != 0 ? b_view.transposed() : b_view,
                       .a = a.data,
                       .b = b.data,
                       .y = call.outputs[0].data,
                       .alpha = attributes.alpha};
  product.set_epilogue(call.epilogue);
  if (call.has_output(1)) product.column_sums = call.outputs[1].data;
  if (call.has_input(2)) {
    const AddendStrides strides(call.inputs[2]);
    product.beta = attributes.beta;
    product.c = call.inputs[2].data;
    product.c_row = strides.row;
    product.c_column = strides.column;
  }
  return product;
}

using Calls = ProductCalls<small_product, view_of>;

/// Only blocks that compute results sum columns.
bool sums_columns(const sdk::Call& call) {
  return call.outputs[0].count > 0 && Calls::takes(call);
}

/// y = alpha a' b' + beta c, where ' transposes if its flag is set and c is broadcast to y; as Traits::column_sums, the sums of b's
/// columns.
///
/// Shapes  a' (m, k), b' (k, n), c any that broadcasts to (m, n), y (m, n), sums (n).
template <class T>
void gemm(const sdk::Call& call) {
  if (Calls::takes(call)) return Calls::run(&call, 1);
  const auto& attributes = call.attr<tenon_attributes_gemm>();
  const bool trans[2] = {attributes.trans_a != 0, attributes.trans_b != 0};
  Stream& stream = stream_of(call);
  ScratchArena arena(call.scratch);
  void* const workspace = arena.allocate_bytes(product_workspace_bytes(call.outputs[0].count));
  const Fp8Use fp8 = Calls::fp8(call, arena);
  sdk::MatrixView views[2];
  const void* data[2];
  for (std::uint32_t i = 0; i < 2; ++i) {
    const sdk::Operand& x = call.inputs[i];
    if (Calls::packed(call, i) != nullptr) {
      const Fp8Packed b(Calls::packed(call, i), fp8.shape);
      data[i] = b.elements;
      views[i] = b.view;
      continue;
    }
    sdk::Strides strides = sdk::strides_of(x);
    data[i] = x.data;
    if (!lt_matrix(view_of(x, x.strides))) {
      void* const copy = arena.allocate_bytes(copy_bytes(x));
      copy_dense(stream, x, copy, strides);
      data[i] = copy;
    }
    const sdk::MatrixView view = view_of(x, strides.data());
    views[i] = trans[i] ? view.transposed() : view;
  }

  Product product{.dtype = sdk::dtype_of<T>,
                  .math = call.math,
                  .a_view = views[0],
                  .b_view = views[1],
                  .a = data[0],
                  .b = data[1],
                  .y = call.outputs[0].data,
                  .alpha = static_cast<double>(attributes.alpha),
                  .activation = call.epilogue.activation,
                  .fp8 = fp8};
  if (call.epilogue.bias != nullptr) product.bias = call.epilogue.bias->data;
  if (call.epilogue.relu_result != nullptr) product.relu_result = call.epilogue.relu_result->data;
  const SmallProduct described = small_product(call);
  const Addend addend = addend_of(described, call.epilogue.bias != nullptr);
  if (addend == Addend::bias) {
    product.bias = described.c;
  } else if (addend != Addend::none) {
    product.beta = described.beta;
    product.c = described.c;
  }
  if (addend == Addend::copied) {
    // The sum is rounded once, as with the other addends; a residual is added to the rounded sum.
    apply_epilogue(stream, {.dtype = product.dtype,
                            .rows = views[0].rows,
                            .n = views[1].columns,
                            .y = product.y,
                            .reads_y = false,
                            .c = described.c,
                            .c_row = described.c_row,
                            .c_column = described.c_column,
                            .beta = 1});
    product.c = product.y;
  }
  if (call.epilogue.residual == nullptr) return multiply(stream, product, workspace);
  const void* const residual = call.epilogue.residual->data;
  if (product.c == nullptr) {
    product.c = residual;
    product.beta = 1;
    return multiply(stream, product, workspace);
  }
  product.activation = {};
  product.relu_result = nullptr;
  multiply(stream, product, workspace);
  const std::int64_t n = views[1].columns;
  apply_epilogue(stream, {.dtype = product.dtype,
                          .rows = views[0].rows,
                          .n = n,
                          .y = product.y,
                          .c = residual,
                          .c_row = n,
                          .c_column = 1,
                          .beta = 1,
                          .activation = call.epilogue.activation,
                          .relu_result = call.epilogue.relu_result == nullptr ? nullptr : call.epilogue.relu_result->data});
}

}  // namespace

TENON_KERNEL_WITH(gemm, Calls::traits(sums_columns), sdk::Half, sdk::BFloat16, float, double)

}  // namespace tenon::cuda
