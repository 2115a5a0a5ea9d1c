// SPDX-License-Identifier: Apache-2.0
// NumPy's matmul: batches, broadcasting, vectors as operands.
#include <algorithm>

#include "gemm/products.h"

namespace tenon::opencl {
namespace {

/// The matrices of an operand, without its batch. A vector is a row as the left operand and a column as the right one.
sdk::MatrixView view_of(const sdk::Operand& x, bool left) {
  if (x.rank == 1) {
    const sdk::MatrixView row{1, x.shape[0], 0, x.strides[0]};
    return left ? row : row.transposed();
  }
  const std::uint32_t b = x.rank - 2;
  return {x.shape[b], x.shape[b + 1], x.strides[b], x.strides[b + 1]};
}

/// The broadcast leading dimensions of both sides.
Layout batch_of(const sdk::Call& call) {
  sdk::Operand batches[2];
  std::uint32_t rank = 0;
  for (std::uint32_t side = 0; side < 2; ++side) {
    const sdk::Operand& x = call.inputs[side];
    batches[side].rank = x.rank > 2 ? x.rank - 2 : 0;
    batches[side].shape = x.shape;
    batches[side].strides = x.strides;
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

/// y = a b for every entry of the batch.
///
/// Shapes  a (..., m, k), b (..., k, n), y (..., m, n), leading dimensions broadcast; a (k) is (1, k), b (k) is (k, 1), and y lacks
///         the dimension that they lack.
template <class T>
void matmul(const sdk::Call& call) {
  Product<T> product;
  product.a_view = view_of(call.inputs[0], true);
  product.b_view = view_of(call.inputs[1], false);
  product.batch = batch_of(call);
  product.a = call.input<T>(0);
  product.b = call.input<T>(1);
  product.y = call.output<T>(0);
  multiply(stream_of(call), product);
}

}  // namespace
TENON_KERNEL_WITH(matmul, (sdk::Traits{.strided = true}), float, double)
}  // namespace tenon::opencl
