// SPDX-License-Identifier: Apache-2.0
// ops/matmul.cpp - NumPy's matmul: batches, broadcasting, vectors as operands. Packed weights and small products are multiplied by our own
// tiles, all else by OpenBLAS.
#include <limits>
#include <string>

#include <tenon/sdk/scratch_arena.h>

#include "elementwise/strided_copy.h"
#include "gemm/bf16_products.h"
#include "gemm/packed_products.h"
#include "gemm/product_types.h"
#include "gemm/products.h"

namespace tenon::openblas {
namespace {

/// One operand: its matrix and its batch dimensions. A vector is a row as the left operand and a column as the right one.
struct Side {
  sdk::MatrixView view;
  std::uint32_t batch_rank = 0;
  const std::int64_t* batch_shape = nullptr;
  const std::int64_t* batch_strides = nullptr;
};

Side side_of(const sdk::Operand& x, bool left) {
  if (x.rank == 1) {
    const sdk::MatrixView row{1, x.shape[0], 0, x.strides[0]};
    return {left ? row : row.transposed()};
  }
  const std::uint32_t b = x.rank - 2;
  return {{x.shape[b], x.shape[b + 1], x.strides[b], x.strides[b + 1]}, b, x.shape, x.strides};
}

/// The batch of the result: leading dimensions of both sides, broadcast.
StridedLoop<2> batch_of(const Side& a, const Side& b) {
  const Side* sides[2] = {&a, &b};
  const std::uint32_t rank = std::max(a.batch_rank, b.batch_rank);
  sdk::Operand operands[2];
  for (int k = 0; k < 2; ++k) {
    operands[k].rank = sides[k]->batch_rank;
    operands[k].shape = sides[k]->batch_shape;
    operands[k].strides = sides[k]->batch_strides;
  }
  std::int64_t shape[TENON_MAX_RANK];
  sdk::Operand result;
  result.shape = shape;
  result.rank = rank;
  result.count = 1;
  for (std::uint32_t i = 0; i < rank; ++i) {
    shape[i] = 1;
    for (const Side* side : sides) {
      const std::uint32_t missing = rank - side->batch_rank;
      if (i >= missing && side->batch_shape[i - missing] != 1) shape[i] = side->batch_shape[i - missing];
    }
    result.count *= shape[i];
  }
  return strided_loop_over<2>(result, {&operands[0], &operands[1]});
}

/// Merges the batch into a single product if the right matrix is the same for all and the rows of the left ones are evenly spaced.
void merge_rows(StridedLoop<2>& batch, sdk::MatrixView& a) {
  const bool one_right = batch.rank == 1 && batch.strides[1][0] == 0;
  if (!one_right || batch.count <= 1) return;
  if (a.rows == 1) a.row_stride = batch.strides[0][0];
  if (batch.strides[0][0] != a.rows * a.row_stride) return;
  sdk::MatrixView merged = a;
  merged.rows *= batch.count;
  if (!fits_blas(merged) || merged.rows > std::numeric_limits<int>::max()) return;
  a = merged;
  batch = {};
}

constexpr std::uint32_t weights = 1;  // the operand that is packed

/// Whether the epilogue's bias runs along the rows of the product: the last dimension of y where b is a vector.
bool adds_along_rows(const sdk::Call& call) {
  return call.epilogue.bias != nullptr && call.inputs[weights].rank == 1;
}

/// Whether the right matrix was or will be packed.
bool is_packed(const sdk::Call& call) {
  return call.packed != nullptr && call.packed[weights] != nullptr;
}

/// The product in bf16 for each entry of out_batch; one of all rows where merge_rows allows it.
Bf16Product bf16_product(const sdk::Call& call, StridedLoop<2>& out_batch) {
  const sdk::Epilogue& epilogue = call.epilogue;
  // a b + c with a vector b is b' a' + c', since a bias runs along rows of the product.
  const bool swaps = call.inputs[weights].rank == 1 && (epilogue.bias != nullptr || epilogue.residual != nullptr);
  const std::uint32_t left = swaps ? 1 : 0, right = 1 - left;
  Side a = side_of(call.inputs[left], !swaps), b = side_of(call.inputs[right], swaps);
  if (swaps) {
    a.view = a.view.transposed();
    b.view = b.view.transposed();
  }
  out_batch = batch_of(a, b);
  Bf16Product product;
  product.a_view = a.view;
  product.b_view = b.view;
  product.a = call.input<sdk::BFloat16>(left);
  product.b = call.input<sdk::BFloat16>(right);
  if (is_packed(call)) product.panels = static_cast<const sdk::BFloat16*>(call.packed[weights]);
  product.y = call.output<sdk::BFloat16>(0);
  product.activation = epilogue.activation;
  product.relu_result = relu_result_of<sdk::BFloat16>(call);
  if (epilogue.bias != nullptr) product.bias = epilogue.bias->as<const sdk::BFloat16>();
  if (epilogue.residual != nullptr) product.c = epilogue.residual->as<const sdk::BFloat16>();
  merge_rows(out_batch, product.a_view);
  return product;
}

void matmul_bf16(const sdk::Call& call) {
  StridedLoop<2> batch;
  const Bf16Product product = bf16_product(call, batch);
  multiply(call.host, product, batch, call.scratch);
}

std::size_t scratch(const sdk::Call& call) {
  if (call.inputs[0].dtype == TENON_DTYPE_BF16) {
    StridedLoop<2> batch;
    const Bf16Product product = bf16_product(call, batch);
    return bf16_product_scratch(call.host, product, batch.count);
  }
  sdk::ScratchArena arena(nullptr);
  for (std::uint32_t i = 0; i < 2 && !is_packed(call); ++i) {
    const sdk::Operand& x = call.inputs[i];
    if (!fits_blas(side_of(x, i == 0).view)) arena.allocate_bytes(static_cast<std::size_t>(x.count * sdk::size_of(x.dtype)));
  }
  return arena.required_bytes();
}

/// One matrix b for all rows of a, whose rows are contiguous: what is packed if b is constant.
bool can_pack(const sdk::Call& call) {
  const sdk::Operand& a = call.inputs[0];
  const bool copies = call.inputs[0].dtype == TENON_DTYPE_BF16;  // where its rows are not
  return call.inputs[weights].rank == 2 && (copies || a.strides[a.rank - 1] == 1 || a.shape[a.rank - 1] == 1);
}

/// Rows of all products of a with one matrix.
std::int64_t rows_of(const sdk::Operand& a) {
  std::int64_t rows = 1;
  for (std::uint32_t i = 0; i + 1 < a.rank; ++i) rows *= a.shape[i];
  return rows;
}

std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
  if (input != weights || !can_pack(call)) return 0;
  const sdk::MatrixView b = side_of(call.inputs[weights], false).view;
  const std::int64_t rows = rows_of(call.inputs[0]);
  return with_product_type(call.inputs[0].dtype, [&]<class T>(T) { return packed_matrix_bytes<T>(call.host, b, rows); });
}

void pack(const sdk::Call& call, std::uint32_t, void* out_packed) {
  const sdk::MatrixView b = side_of(call.inputs[weights], false).view;
  with_product_type(call.inputs[0].dtype,
                    [&]<class T>(T) { pack_matrix(call.host, b, call.input<T>(weights), static_cast<T*>(out_packed)); });
}

std::string pack_form(const sdk::Call&, std::uint32_t) {
  return "panels";
}

template <class T>
const T* residual_of(const sdk::Call& call) {
  return call.epilogue.residual == nullptr ? nullptr : call.epilogue.residual->as<const T>();
}

/// y = a b with packed b.
template <class T>
void matmul_packed(const sdk::Call& call) {
  const Side side = side_of(call.inputs[0], true);
  sdk::MatrixView a = side.view;
  StridedLoop<2> batch = batch_of(side, side_of(call.inputs[weights], false));
  merge_rows(batch, a);
  PanelProduct<T> product;
  product.rows = a.rows;
  product.k = a.columns;
  product.columns = call.inputs[weights].shape[1];
  product.a_step = a.row_stride;
  product.panels = static_cast<const T*>(call.packed[weights]);
  product.y_step = product.columns;
  product.bias = call.epilogue.bias == nullptr ? nullptr : call.epilogue.bias->as<const T>();
  product.activation = call.epilogue.activation;
  const T *const residual = residual_of<T>(call), *const relu_result = relu_result_of<T>(call);
  for (std::int64_t entry = 0; entry < batch.count; ++entry) {
    const std::int64_t at = entry * product.rows * product.columns;
    product.a = call.input<T>(0) + batch.offsets(entry)[0];
    product.y = call.output<T>(0) + at;
    product.residual = residual == nullptr ? nullptr : residual + at;
    product.relu_result = relu_result == nullptr ? nullptr : relu_result + at;
    multiply_packed(call.host, product);
  }
}

/// y = a b for every entry of the batch.
///
/// Shapes  a (..., m, k), b (..., k, n), y (..., m, n), leading dimensions broadcast; a (k) is (1, k), b (k) is (k, 1), and y lacks
///         the dimension that they lack.
template <class T>
void matmul(const sdk::Call& call) {
  if (is_packed(call)) return matmul_packed<T>(call);
  Side sides[2];
  const T* data[2];
  std::int64_t strides[2][TENON_MAX_RANK];
  sdk::ScratchArena arena(call.scratch);
  for (std::uint32_t i = 0; i < 2; ++i) {
    sdk::Operand x = call.inputs[i];
    sides[i] = side_of(x, i == 0);
    if (!fits_blas(sides[i].view)) {
      x.data = arena.allocate<T>(x.count);
      copy_strided(call.host, call.inputs[i], x, sizeof(T));
      std::int64_t stride = 1;
      for (std::uint32_t d = x.rank; d-- > 0; stride *= x.shape[d]) strides[i][d] = stride;
      x.strides = strides[i];
      sides[i] = side_of(x, i == 0);
    }
    data[i] = x.as<const T>();
  }
  sdk::MatrixView a = sides[0].view;
  const sdk::MatrixView b = sides[1].view;
  StridedLoop<2> batch = batch_of(sides[0], sides[1]);
  check_sizes("matmul", a.rows, b.columns, a.columns);

  Epilogue<T> epilogue;
  epilogue.activation = call.epilogue.activation;
  epilogue.residual = residual_of<T>(call);
  epilogue.relu_result = relu_result_of<T>(call);
  const T* const bias = call.epilogue.bias == nullptr ? nullptr : call.epilogue.bias->as<const T>();
  if (adds_along_rows(call)) {
    epilogue.c = bias;
    epilogue.c_row = 1;
    epilogue.beta = 1;
  } else {
    epilogue.bias = bias;
    merge_rows(batch, a);
  }
  const Product<T> product{a, b, T(1), data[0], data[1], call.output<T>(0), epilogue};
  multiply(call.host, call.deterministic, product, batch);
}

template <>
void matmul<sdk::BFloat16>(const sdk::Call& call) {
  matmul_bf16(call);
}

constexpr sdk::Traits traits{.strided = true,
                             .epilogue = true,
                             .residual = true,
                             .activations = sdk::all_activations,
                             .scratch = scratch,
                             .pack_size = pack_size,
                             .pack = pack,
                             .pack_form = pack_form,
                             .pack_donated = false,
                             .epilogue_relu_grad = true};

}  // namespace

TENON_KERNEL_WITH(matmul, traits, sdk::BFloat16, float, double)

}  // namespace tenon::openblas
