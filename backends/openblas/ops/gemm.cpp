// SPDX-License-Identifier: Apache-2.0
// ops/gemm.cpp - y = alpha op(a) op(b) + beta c. Packed weights and small products are multiplied by our own tiles, all else by
// OpenBLAS.
#include <string>

#include <tenon/sdk/scratch_arena.h>

#include "elementwise/strided_copy.h"
#include "gemm/bf16_products.h"
#include "gemm/packed_products.h"
#include "gemm/product_types.h"
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

/// Whether c is one row of n contiguous elements.
bool is_row(const sdk::Operand& c, std::int64_t n) {
  return c.rank >= 1 && c.count == n && c.shape[c.rank - 1] == n && (n == 1 || c.strides[c.rank - 1] == 1);
}

constexpr std::uint32_t weights = 1;  // the operand that is packed

bool is_packed(const sdk::Call& call) {
  return call.packed != nullptr && call.packed[weights] != nullptr;
}

std::size_t scratch_bytes_of_copy(std::int64_t elements) {
  return sdk::aligned_size(static_cast<std::size_t>(elements) * sizeof(sdk::BFloat16));
}

/// Whether c is added as a bias.
bool is_bias(const sdk::Call& call) {
  return call.epilogue.bias == nullptr && call.attr<tenon_attributes_gemm>().beta == 1 && is_row(call.inputs[2], call.outputs[0].shape[1]);
}

/// The product in bf16. c is its bias, or a matrix that is dense or expands().
Bf16Product bf16_product(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_gemm>();
  Bf16Product product;
  product.a_view = view_of(call.inputs[0], attributes.trans_a != 0);
  product.b_view = view_of(call.inputs[weights], attributes.trans_b != 0);
  product.a = call.input<sdk::BFloat16>(0);
  product.b = call.input<sdk::BFloat16>(weights);
  if (is_packed(call)) product.panels = static_cast<const sdk::BFloat16*>(call.packed[weights]);
  product.y = call.output<sdk::BFloat16>(0);
  product.alpha = static_cast<float>(attributes.alpha);
  product.beta = static_cast<float>(attributes.beta);
  product.activation = call.epilogue.activation;
  product.relu_result = relu_result_of<sdk::BFloat16>(call);
  if (call.epilogue.bias != nullptr) product.bias = call.epilogue.bias->as<const sdk::BFloat16>();
  if (!call.has_input(2) || attributes.beta == 0) return product;
  (is_bias(call) ? product.bias : product.c) = call.input<sdk::BFloat16>(2);
  return product;
}

/// Whether c is copied to a dense matrix.
bool expands(const sdk::Call& call) {
  const bool adds = call.has_input(2) && call.attr<tenon_attributes_gemm>().beta != 0;
  return adds && !is_bias(call) && !(call.inputs[2].dense && call.inputs[2].count == call.outputs[0].count);
}

std::size_t bf16_scratch(const sdk::Call& call) {
  const std::int64_t copied = expands(call) ? call.outputs[0].count : 0;
  return scratch_bytes_of_copy(copied) + bf16_product_scratch(call.host, bf16_product(call), 1);
}

void gemm_bf16(const sdk::Call& call) {
  Bf16Product product = bf16_product(call);
  char* scratch = static_cast<char*>(call.scratch);
  if (expands(call)) {
    sdk::Operand copy = call.outputs[0];
    copy.data = scratch;
    copy_strided(call.host, call.inputs[2], copy, sizeof(sdk::BFloat16));
    product.c = copy.as<const sdk::BFloat16>();
    scratch += scratch_bytes_of_copy(copy.count);
  }
  multiply(call.host, product, {}, scratch);
}

std::size_t scratch(const sdk::Call& call) {
  if (call.inputs[0].dtype == TENON_DTYPE_BF16) return bf16_scratch(call);
  sdk::ScratchArena arena(nullptr);
  for (std::uint32_t i = 0; i < 2 && !is_packed(call); ++i) {
    const sdk::Operand& x = call.inputs[i];
    if (!fits_blas(view_of(x, false))) arena.allocate_bytes(static_cast<std::size_t>(x.count * sdk::size_of(x.dtype)));
  }
  return arena.required_bytes();
}

/// op(a) has contiguous rows, and the epilogue of panels can add c.
bool can_pack(const sdk::Call& call) {
  if (call.inputs[0].dtype == TENON_DTYPE_BF16) return true;
  const auto& attributes = call.attr<tenon_attributes_gemm>();
  const sdk::MatrixView a = view_of(call.inputs[0], attributes.trans_a != 0);
  if (attributes.alpha != 1 || (a.column_stride != 1 && a.columns != 1)) return false;
  const bool adds = call.has_input(2) && attributes.beta != 0;
  return !adds || (attributes.beta == 1 && call.epilogue.bias == nullptr &&
                   is_row(call.inputs[2], view_of(call.inputs[weights], attributes.trans_b != 0).columns));
}

std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
  if (input != weights || !can_pack(call)) return 0;
  const auto& attributes = call.attr<tenon_attributes_gemm>();
  const sdk::MatrixView b = view_of(call.inputs[weights], attributes.trans_b != 0);
  const std::int64_t rows = view_of(call.inputs[0], attributes.trans_a != 0).rows;
  return with_product_type(call.inputs[0].dtype, [&]<class T>(T) { return packed_matrix_bytes<T>(call.host, b, rows); });
}

void pack(const sdk::Call& call, std::uint32_t, void* out_packed) {
  const sdk::MatrixView b = view_of(call.inputs[weights], call.attr<tenon_attributes_gemm>().trans_b != 0);
  with_product_type(call.inputs[0].dtype,
                    [&]<class T>(T) { pack_matrix(call.host, b, call.input<T>(weights), static_cast<T*>(out_packed)); });
}

std::string pack_form(const sdk::Call& call, std::uint32_t) {
  return call.attr<tenon_attributes_gemm>().trans_b != 0 ? "panels of the transpose" : "panels";
}

/// y = op(a) op(b) + c with packed b.
template <class T>
void gemm_packed(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_gemm>();
  const sdk::MatrixView a = view_of(call.inputs[0], attributes.trans_a != 0);
  PanelProduct<T> product;
  product.rows = a.rows;
  product.k = a.columns;
  product.columns = call.outputs[0].shape[1];
  product.a = call.input<T>(0);
  product.a_step = a.row_stride;
  product.panels = static_cast<const T*>(call.packed[weights]);
  product.y = call.output<T>(0);
  product.y_step = product.columns;
  if (call.has_input(2) && attributes.beta != 0) product.bias = call.input<T>(2);
  if (call.epilogue.bias != nullptr) product.bias = call.epilogue.bias->as<const T>();
  product.activation = call.epilogue.activation;
  product.relu_result = relu_result_of<T>(call);
  multiply_packed(call.host, product);
}

/// y = alpha a' b' + beta c, where ' transposes if its flag is set and c is broadcast to y.
///
/// Shapes  a' (m, k), b' (k, n), c any that broadcasts to (m, n), y (m, n).
template <class T>
void gemm(const sdk::Call& call) {
  if (is_packed(call)) return gemm_packed<T>(call);
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
  product.epilogue.relu_result = relu_result_of<T>(call);
  multiply(call.host, call.deterministic, product, {});
}

template <>
void gemm<sdk::BFloat16>(const sdk::Call& call) {
  gemm_bf16(call);
}

constexpr sdk::Traits traits{.strided = true,
                             .epilogue = true,
                             .activations = sdk::all_activations,
                             .scratch = scratch,
                             .pack_size = pack_size,
                             .pack = pack,
                             .pack_form = pack_form,
                             .pack_donated = false,
                             .epilogue_relu_grad = true};

}  // namespace

TENON_KERNEL_WITH(gemm, traits, sdk::BFloat16, float, double)

}  // namespace tenon::openblas
