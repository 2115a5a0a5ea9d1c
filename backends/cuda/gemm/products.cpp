// SPDX-License-Identifier: Apache-2.0
#include "gemm/products.h"

#include <limits>
#include <string>

#include "device/options.h"
#include "gemm/epilogue.h"
#include "gemm/fp8_products.h"
#include "gemm/product_naive.h"
#include "libraries/cublas_lt.h"
#include "movement/strided_copy.h"

namespace tenon::cuda {
namespace {

cudaDataType_t type_of(tenon_dtype dtype) {
  switch (dtype) {
    case TENON_DTYPE_F16:
      return CUDA_R_16F;
    case TENON_DTYPE_BF16:
      return CUDA_R_16BF;
    case TENON_DTYPE_F32:
      return CUDA_R_32F;
    default:
      return CUDA_R_64F;
  }
}

cublasComputeType_t compute_of(tenon_dtype dtype, std::uint32_t math) {
  if (dtype == TENON_DTYPE_F64) return CUBLAS_COMPUTE_64F;
  if (dtype != TENON_DTYPE_F32) return CUBLAS_COMPUTE_32F;
  switch (math) {
    case TENON_MATH_TF32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case TENON_MATH_BF16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
    default:
      return CUBLAS_COMPUTE_32F;
  }
}

const void* at(const void* data, std::int64_t elements, std::int64_t element_bytes) {
  return static_cast<const char*>(data) + elements * element_bytes;
}
std::uint64_t address_of(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

/// If all entries share one right matrix and the rows of the left ones are contiguous, merges the batch into a single product.
void merge_rows(Product& p) {
  if (p.batch.rank != 1 || p.batch.strides[1][0] != 0) return;
  sdk::MatrixView merged = p.a_view;
  if (merged.rows == 1) merged.row_stride = p.batch.strides[0][0];
  if (p.batch.strides[0][0] != merged.rows * merged.row_stride) return;
  merged.rows *= p.batch.count;
  if (!lt_matrix(merged)) return;
  p.a_view = merged;
  p.batch = {};
}

/// What a product by cuBLASLt has left, if anything.
void finish(Stream& stream, const Epilogue& rest) {
  if (rest.bias != nullptr || rest.activation != sdk::Activation::none || rest.relu_result != nullptr) apply_epilogue(stream, rest);
}

}  // namespace

void multiply(Stream& stream, Product p, void* workspace) {
  if (p.a_view.rows == 0 || p.b_view.columns == 0 || p.batch.count == 0) return;
  if (options_of(stream.device()).naive) return multiply_naively(stream, p);
  if (p.fp8.shape.k > 0) {
    bool bias_added = false;
    if (multiply_fp8(stream, p, workspace, bias_added)) {
      return finish(stream, {.dtype = p.dtype,
                             .rows = p.batch.count * p.a_view.rows,
                             .n = p.b_view.columns,
                             .y = p.y,
                             .bias = bias_added ? nullptr : p.bias,
                             .activation = p.activation,
                             .relu_result = p.relu_result});
    }
  }
  merge_rows(p);
  const std::int64_t m = p.a_view.rows, n = p.b_view.columns, k = p.a_view.columns;
  const std::int64_t element = sdk::size_of(p.dtype);
  const bool has_addend = p.c != nullptr && p.beta != 0;
  if (k == 0) {
    Epilogue all{.dtype = p.dtype,
                 .rows = p.batch.count * m,
                 .n = n,
                 .y = p.y,
                 .reads_y = false,
                 .bias = p.bias,
                 .activation = p.activation,
                 .relu_result = p.relu_result};
    if (has_addend) {
      all.c = p.c;
      all.c_row = n;
      all.c_column = 1;
      all.beta = p.beta;
    }
    return apply_epilogue(stream, all);
  }

  // cuBLASLt fuses a bias, but not in f64, and it assumes that a bias is aligned to 16 bytes. Its relu is max(x, 0), which turns NaN into
  // 0, so `apply_epilogue` handles activations.
  const bool fuses_bias = p.dtype != TENON_DTYPE_F64 && p.bias != nullptr && address_of(p.bias) % 16 == 0;
  LtDevice& device = stream.device().attached.get<LtDevice>(stream.device());
  // cuBLASLt supports lengths beyond 2^31, but not that many entries of a batch.
  const int dimensions = p.batch.rank;
  const bool in_one = dimensions > 0 && p.batch.sizes[dimensions - 1] <= std::numeric_limits<std::int32_t>::max();
  const std::int64_t together = in_one ? p.batch.sizes[dimensions - 1] : 1;
  const LtMatrix left = *lt_matrix(p.b_view), right = *lt_matrix(p.a_view);  // y' = b' a'
  const auto matrix = [&](const LtMatrix& x, std::int64_t stride, std::uint32_t alignment) {
    return LtProblem::Matrix{
        x.rows, x.columns, x.ld, stride, std::min(alignment, alignment_of(static_cast<std::uint64_t>(stride * element))), x.transposed};
  };
  for (std::int64_t entry = 0; entry < p.batch.count; entry += together) {
    std::int64_t rest_of_entry = entry, offsets[2] = {0, 0};
    for (int d = dimensions; d-- > 0; rest_of_entry /= p.batch.sizes[d]) {
      for (int side = 0; side < 2; ++side) offsets[side] += rest_of_entry % p.batch.sizes[d] * p.batch.strides[side][d];
    }
    LtOperands operands{};
    operands.a = at(p.b, offsets[1], element);
    operands.b = at(p.a, offsets[0], element);
    operands.d = const_cast<void*>(at(p.y, entry * m * n, element));
    operands.c = has_addend ? at(p.c, entry * m * n, element) : operands.d;
    operands.workspace = workspace;
    const std::int64_t stride_a = in_one ? p.batch.strides[0][dimensions - 1] : 0,
                       stride_b = in_one ? p.batch.strides[1][dimensions - 1] : 0;
    LtProblem problem{
        .type = type_of(p.dtype),
        .result_type = type_of(p.dtype),
        .compute = compute_of(p.dtype, p.math),
        .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
        .batch = static_cast<std::int32_t>(together),
        .a = matrix(left, stride_b, alignment_of(address_of(operands.a))),
        .b = matrix(right, stride_a, alignment_of(address_of(operands.b))),
        .d = matrix({n, m, n, false}, m * n, std::min(alignment_of(address_of(operands.d)), alignment_of(address_of(operands.c)))),
        .workspace_bytes = product_workspace_bytes(p.batch.count * m * n)};
    const double beta = has_addend ? p.beta : 0;
    bool bias_added = false;
    if (fuses_bias) {
      problem.epilogue = CUBLASLT_EPILOGUE_BIAS;
      operands.bias = p.bias;
      bias_added = device.multiply(stream, problem, operands, p.alpha, beta);
      problem.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
      operands.bias = nullptr;
    }
    if (!bias_added && !device.multiply(stream, problem, operands, p.alpha, beta)) {
      throw sdk::Error(TENON_UNSUPPORTED, "cuBLASLt has no algorithm for a product (" + std::to_string(m) + ", " + std::to_string(k) +
                                              ") by (" + std::to_string(k) + ", " + std::to_string(n) + ") of " + sdk::name_of(p.dtype));
    }
    finish(stream, {.dtype = p.dtype,
                    .rows = together * m,
                    .n = n,
                    .y = operands.d,
                    .bias = bias_added ? nullptr : p.bias,
                    .activation = p.activation,
                    .relu_result = p.relu_result == nullptr ? nullptr : at(p.relu_result, entry * m * n, element)});
  }
}

void copy_dense(Stream& stream, const sdk::Operand& x, void* to, sdk::Strides& strides) {
  strides = sdk::dense_strides(x.shape, x.rank);
  copy_strided(stream, static_cast<std::size_t>(sdk::size_of(x.dtype)),
               StridedCopy{x.shape, x.rank, x.data, sdk::strides_of(x), to, strides});
}

}  // namespace tenon::cuda
