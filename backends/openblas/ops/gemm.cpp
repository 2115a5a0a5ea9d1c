// SPDX-License-Identifier: Apache-2.0
// ops/gemm.cpp - y = alpha op(a) op(b) + beta c through OpenBLAS.
#include "elementwise/strided_copy.h"
#include "gemm/products.h"

namespace tenon::openblas {
namespace {

/// op(x): x or its transpose.
MatrixView view_of(const sdk::Operand& x, bool transposed) {
  const MatrixView view{x.shape[0], x.shape[1], x.strides[0], x.strides[1]};
  return transposed ? view.transposed() : view;
}

MatrixView dense_view(const sdk::Operand& x, bool transposed) {
  const MatrixView view{x.shape[0], x.shape[1], x.shape[1], 1};
  return transposed ? view.transposed() : view;
}

std::size_t scratch(const sdk::Call& call) {
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < 2; ++i) {
    const sdk::Operand& x = call.inputs[i];
    if (!view_of(x, false).fits_blas()) bytes += copy_bytes(x, x.dtype == TENON_DTYPE_F64 ? sizeof(double) : sizeof(float));
  }
  return bytes;
}

/// y = alpha a' b' + beta c, where ' transposes if its flag is set and c is broadcast to y.
///
/// Shapes  a' (m, k), b' (k, n), c any that broadcasts to (m, n), y (m, n).
template <class T>
void gemm(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_gemm>();
  const bool trans[2] = {attributes.trans_a != 0, attributes.trans_b != 0};
  MatrixView views[2];
  const T* data[2];
  char* copies = static_cast<char*>(call.scratch);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const sdk::Operand& x = call.inputs[i];
    views[i] = view_of(x, trans[i]);
    data[i] = x.as<const T>();
    if (views[i].fits_blas()) continue;
    sdk::Operand copy = x;
    copy.data = copies;
    copies += copy_bytes(x, sizeof(T));
    copy_strided(call.host, x, copy, sizeof(T));
    views[i] = dense_view(x, trans[i]);
    data[i] = copy.as<const T>();
  }
  check_sizes("gemm", views[0].rows, views[1].columns, views[0].columns);

  Product<T> product{views[0], views[1], static_cast<T>(attributes.alpha), data[0], data[1], call.output<T>(0), {}};
  if (call.has_input(2) && attributes.beta != 0) {
    const sdk::Operand& c = call.inputs[2];
    product.epilogue.c = c.as<const T>();
    product.epilogue.beta = static_cast<T>(attributes.beta);
    if (c.rank >= 1 && c.shape[c.rank - 1] != 1) product.epilogue.c_column = c.strides[c.rank - 1];
    if (c.rank >= 2 && c.shape[c.rank - 2] != 1) product.epilogue.c_row = c.strides[c.rank - 2];
  }
  if (call.epilogue.bias != nullptr) product.epilogue.bias = call.epilogue.bias->as<const T>();
  product.epilogue.activation = call.epilogue.activation;
  multiply(call.host, call.deterministic, product, {});
}

constexpr sdk::Traits traits{.strided = true, .epilogue = true, .scratch = scratch};

}  // namespace

TENON_KERNEL_WITH(gemm, traits, float, double)

}  // namespace tenon::openblas
