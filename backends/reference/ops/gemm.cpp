// SPDX-License-Identifier: Apache-2.0
// The general matrix product: scaled, transposed, with an addend.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/strided.h>

namespace tenon::reference {
namespace {

/// y = alpha op(a) op(b) + beta c, op(x) = x or its transpose
///
/// Shapes      op(a) (m, k), op(b) (k, n), y (m, n); c broadcasts to (m, n), or is absent.
/// Dtypes      f32, f64; everything up to the final rounding is f64.
/// Attributes  trans_a, trans_b: 0 or 1. alpha, beta: beta = 0 does not read c.
template <class T>
void gemm(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_gemm>();
  const sdk::Operand& a = call.inputs[0];
  const sdk::Operand& b = call.inputs[1];
  const sdk::Operand& y = call.outputs[0];
  const std::int64_t m = y.shape[0], n = y.shape[1];
  const std::int64_t depth = a.shape[attributes.trans_a ? 0 : 1];
  const std::int64_t a_row = a.strides[attributes.trans_a ? 1 : 0], a_column = a.strides[attributes.trans_a ? 0 : 1];
  const std::int64_t b_row = b.strides[attributes.trans_b ? 1 : 0], b_column = b.strides[attributes.trans_b ? 0 : 1];
  const bool adds = call.has_input(2) && attributes.beta != 0;
  const sdk::Strides c_strides = adds ? sdk::broadcast_strides(call.inputs[2], 2) : sdk::Strides{};
  const T* from_a = call.input<T>(0);
  const T* from_b = call.input<T>(1);
  const T* from_c = adds ? call.input<T>(2) : nullptr;
  T* out = call.output<T>(0);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) {
        sum += double{from_a[i * a_row + k * a_column]} * double{from_b[k * b_row + j * b_column]};
      }
      double result = attributes.alpha * sum;
      if (adds) result += attributes.beta * double{from_c[i * c_strides[0] + j * c_strides[1]]};
      *out++ = static_cast<T>(result);
    }
  }
}

}  // namespace
TENON_KERNEL_WITH(gemm, (sdk::Traits{.strided = true}), float, double)
}  // namespace tenon::reference
