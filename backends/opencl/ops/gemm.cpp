// SPDX-License-Identifier: Apache-2.0
#include "gemm/products.h"
#include "kernel/copy.h"

namespace tenon::opencl {
namespace {

sdk::MatrixView view_of(const sdk::Operand& x, bool transposed) {
  const sdk::MatrixView view{x.shape[0], x.shape[1], x.strides[0], x.strides[1]};
  return transposed ? view.transposed() : view;
}

/// y = alpha a' b' + beta c, where ' transposes if its flag is set and c is broadcast to y.
///
/// Shapes  a' (m, k), b' (k, n), c any that broadcasts to (m, n), y (m, n).
template <class T>
void gemm(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_gemm>();
  const sdk::Operand& y = call.outputs[0];
  Product<T> product;
  product.a_view = view_of(call.inputs[0], a.trans_a != 0);
  product.b_view = view_of(call.inputs[1], a.trans_b != 0);
  product.a = call.input<T>(0);
  product.b = call.input<T>(1);
  product.y = call.output<T>(0);
  product.alpha = static_cast<T>(a.alpha);
  if (call.has_input(2) && a.beta != 0 && y.count > 0) {
    // A product adds to its own result: c is written there first.
    copy_strided<T>(call,
                    {y.shape, y.rank, call.inputs[2].data, sdk::broadcast_strides(call.inputs[2], y.rank), product.y, sdk::strides_of(y)});
    product.beta = static_cast<T>(a.beta);
  }
  multiply(stream_of(call), product);
}

}  // namespace
TENON_KERNEL_WITH(gemm, (sdk::Traits{.strided = true}), float, double)
}  // namespace tenon::opencl
