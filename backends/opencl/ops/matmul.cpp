// SPDX-License-Identifier: Apache-2.0
// NumPy's matmul: batches, broadcasting, vectors as operands.
#include "gemm/products.h"
#include "gemm/stacks.h"

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

/// y = a b for every entry of the batch.
///
/// Shapes  a (..., m, k), b (..., k, n), y (..., m, n), leading dimensions broadcast; a (k) is (1, k), b (k) is (k, 1), and y lacks
///         the dimension that they lack.
template <class T>
void matmul(const sdk::Call& call) {
  Product<T> product;
  product.a_view = view_of(call.inputs[0], true);
  product.b_view = view_of(call.inputs[1], false);
  product.batch = stack_of(call.inputs[0], call.inputs[1]);
  product.a = call.input<T>(0);
  product.b = call.input<T>(1);
  product.y = call.output<T>(0);
  multiply(stream_of(call), product);
}

}  // namespace
TENON_KERNEL_WITH(matmul, (sdk::Traits{.strided = true}), float, double)
}  // namespace tenon::opencl
