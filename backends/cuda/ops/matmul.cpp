// SPDX-License-Identifier: Apache-2.0
// ops/matmul.cpp - NumPy's matmul: batches, broadcasting, vectors as operands. Small ones by a kernel of our own, the others through
// cuBLASLt.
#include <array>

#include "gemm/product_calls.h"
#include "kernel/launch.h"

namespace tenon::cuda {
namespace {

/// The matrices of an operand, without its batch. A vector is a row as the left operand and a column as the right one.
sdk::MatrixView view_of(const sdk::Operand& x, const std::int64_t* strides, bool left) {
  if (x.rank == 1) {
    const sdk::MatrixView row{1, x.shape[0], 0, strides[0]};
    return left ? row : row.transposed();
  }
  const std::uint32_t b = x.rank - 2;
  return {x.shape[b], x.shape[b + 1], strides[b], strides[b + 1]};
}

/// The broadcast leading dimensions of both sides.
Layout<2> batch_of(const sdk::Operand (&x)[2], const std::array<sdk::Strides, 2>& strides) {
  sdk::Operand batches[2];
  std::uint32_t rank = 0;
  for (int side = 0; side < 2; ++side) {
    batches[side].rank = x[side].rank > 2 ? x[side].rank - 2 : 0;
    batches[side].shape = x[side].shape;
    batches[side].strides = strides[static_cast<std::size_t>(side)].data();
    rank = std::max(rank, batches[side].rank);
  }
  std::int64_t shape[TENON_MAX_RANK];
  for (std::uint32_t d = 0; d < rank; ++d) {
    shape[d] = 1;
    for (const sdk::Operand& batch : batches) {
      const std::uint32_t missing = rank - batch.rank;
      if (d >= missing && batch.shape[d - missing] != 1) shape[d] = batch.shape[d - missing];
    }
  }
  return collapse<2>(shape, rank, {sdk::broadcast_strides(batches[0], rank), sdk::broadcast_strides(batches[1], rank)});
}

SmallProduct small_product(const sdk::Call& call) {
  const sdk::Operand &a = call.inputs[0], &b = call.inputs[1];
  const Layout<2> batch = batch_of({a, b}, {sdk::strides_of(a), sdk::strides_of(b)});
  if (batch.rank > 1) return {};
  SmallProduct product{.dtype = a.dtype,
                       .a_view = view_of(a, a.strides, true),
                       .b_view = view_of(b, b.strides, false),
                       .batch = batch.count,
                       .a_step = batch.strides[0][0],
                       .b_step = batch.strides[1][0],
                       .a = a.data,
                       .b = b.data,
                       .y = call.outputs[0].data};
  if (b.rank == 1) {  // the last dimension of y, along which a bias is added, is m
    std::swap(product.a_view, product.b_view);
    product.a_view = product.a_view.transposed();
    product.b_view = product.b_view.transposed();
    std::swap(product.a_step, product.b_step);
    std::swap(product.a, product.b);
  }
  product.set_epilogue(call.epilogue);
  return product;
}

using Calls = ProductCalls<small_product, view_of>;

/// y = a b for every entry of the batch.
///
/// Shapes  a (..., m, k), b (..., k, n), y (..., m, n), leading dimensions broadcast; a (k) is (1, k), b (k) is (k, 1), and y lacks
///         the dimension that they lack.
template <class T>
void matmul(const sdk::Call& call) {
  if (Calls::takes(call)) return Calls::run(&call, 1);
  Stream& stream = stream_of(call);
  ScratchArena arena(call.scratch);
  void* const workspace = arena.allocate_bytes(product_workspace_bytes(call.outputs[0].count));
  const Fp8Use fp8 = Calls::fp8(call, arena);
  sdk::Operand x[2] = {call.inputs[0], call.inputs[1]};
  std::array<sdk::Strides, 2> strides{};
  sdk::MatrixView views[2];
  for (std::uint32_t i = 0; i < 2; ++i) {
    strides[i] = sdk::strides_of(x[i]);
    if (Calls::packed(call, i) != nullptr) {
      const Fp8Packed b(Calls::packed(call, i), fp8.shape);
      x[i].data = const_cast<void*>(b.elements);
      strides[i][0] = b.view.row_stride;
      strides[i][1] = b.view.column_stride;
    } else if (!lt_matrix(view_of(x[i], x[i].strides, i == 0))) {
      x[i].data = arena.allocate_bytes(copy_bytes(x[i]));
      copy_dense(stream, call.inputs[i], x[i].data, strides[i]);
    }
    views[i] = view_of(x[i], strides[i].data(), i == 0);
  }

  Product product{.dtype = sdk::dtype_of<T>,
                  .math = call.math,
                  .a_view = views[0],
                  .b_view = views[1],
                  .batch = batch_of(x, strides),
                  .a = x[0].data,
                  .b = x[1].data,
                  .y = call.outputs[0].data,
                  .activation = call.epilogue.activation,
                  .fp8 = fp8};
  if (x[1].rank == 1) {
    // The last dimension of y, along which a bias is added, is m: computes y = (b' a')' as a row.
    product.a_view = views[1].transposed();
    product.b_view = views[0].transposed();
    std::swap(product.a, product.b);
    for (int d = 0; d < product.batch.rank; ++d) std::swap(product.batch.strides[0][d], product.batch.strides[1][d]);
  }
  if (call.epilogue.bias != nullptr) product.bias = call.epilogue.bias->data;
  if (call.epilogue.relu_result != nullptr) product.relu_result = call.epilogue.relu_result->data;
  if (call.epilogue.residual != nullptr) {
    product.c = call.epilogue.residual->data;
    product.beta = 1;
  }
  multiply(stream, product, workspace);
}

}  // namespace

TENON_KERNEL_WITH(matmul, Calls::traits(), sdk::Half, sdk::BFloat16, float, double)

}  // namespace tenon::cuda
