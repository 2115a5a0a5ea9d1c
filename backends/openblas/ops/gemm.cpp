// SPDX-License-Identifier: Apache-2.0
// ops/gemm.cpp - y = alpha op(a) op(b) + beta c through OpenBLAS.
#include <tenon/sdk/scratch_arena.h>

#include "elementwise/strided_copy.h"
#include "gemm/products.h"

namespace tenon::openblas {
namespace {

/// op(x): x or its transpose.
sdk::MatrixView view_of(const sdk::Operand& x, bool transposed) {
  const sdk::MatrixView view{x.shape[0], x.shape[1], x.strides[0], x.strides[1]};
  return transposed ? view.transposed() : view;
}

sdk::MatrixView dense_view(const sdk::Operand& x, bool transposed) {
  const sdk::MatrixView view{x.shape[0], x.shape[1], x.shape[1], 1};
  return transposed ? view.transposed() : view;
}

std::size_t scratch(const sdk::Call& call) {
  sdk::ScratchArena arena(nullptr);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const sdk::Operand& x = call.inputs[i];
    if (!fits_blas(view_of(x, false))) arena.allocate_bytes(static_cast<std::size_t>(x.count * sdk::size_of(x.dtype)));
  }
  return arena.required_bytes();
}

/// y = alpha a' b' + beta c, where ' transposes if its flag is set and c is broadcast to y.
///
/// Shapes  a' (m, k), b' (k, n), c any that broadcasts to (m, n), y (m, n).
template <class T>
void gemm(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_gemm>();
  const bool trans[2] = {attributes.trans_a != 0, attributes.trans_b != 0};
  sdk::MatrixView views[2];
  const T* data[2];
  sdk::ScratchArena arena(call.scratch);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const sdk::Operand& x = call.inputs[i];
    views[i] = view_of(x, trans[i]);
    data[i] = x.as<const T>();
    if (fits_blas(views[i])) continue;
    sdk::Operand copy = x;
    copy.data = arena.allocate<T>(x.count);
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
