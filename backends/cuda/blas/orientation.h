// SPDX-License-Identifier: Apache-2.0
// blas/orientation.h - a matrix in row-major order is its transpose in column-major order, the only one that cuBLAS supports. Host side:
// maps flags to those of the transpose.
#pragma once

#include <cublas_api.h>

#include <cstdint>

#include <tenon/backend.h>

namespace tenon::cuda::blas {

/// op(A) for cuBLAS. `conjugate`: the result of op is conjugated as well, because cuBLAS lacks plain conj(A).
struct Operation {
  cublasOperation_t op = CUBLAS_OP_N;
  bool conjugate = false;
};

/// For matrices that are all transposed together, such as the factors and the result of a product: (A B)' = B' A'.
/// Real matrices are their own conjugates.
constexpr Operation operation(std::uint32_t trans, bool is_complex) {
  switch (trans) {
    case TENON_TRANS:
      return {CUBLAS_OP_T};
    case TENON_CONJ_TRANS:
      return {is_complex ? CUBLAS_OP_C : CUBLAS_OP_T};
    case TENON_CONJ_NO_TRANS:
      return {CUBLAS_OP_N, is_complex};
    default:
      return {CUBLAS_OP_N};
  }
}

/// For a matrix with operands that are not transposed with it, such as vectors: expresses op(A) in terms of A'.
constexpr Operation operation(std::uint32_t layout, std::uint32_t trans, bool is_complex) {
  if (layout == TENON_LAYOUT_COLUMN_MAJOR) return operation(trans, is_complex);
  switch (trans) {
    case TENON_TRANS:
      return {CUBLAS_OP_N};
    case TENON_CONJ_TRANS:
      return {CUBLAS_OP_N, is_complex};
    case TENON_CONJ_NO_TRANS:
      return {is_complex ? CUBLAS_OP_C : CUBLAS_OP_T};
    default:
      return {CUBLAS_OP_T};
  }
}

constexpr bool transposes(std::uint32_t trans) {
  return trans == TENON_TRANS || trans == TENON_CONJ_TRANS;
}
constexpr cublasFillMode_t triangle(std::uint32_t layout, std::uint32_t uplo) {
  return (uplo == TENON_UPPER) == (layout == TENON_LAYOUT_COLUMN_MAJOR) ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
}
constexpr cublasSideMode_t side_of(std::uint32_t layout, std::uint32_t side) {
  return (side == TENON_LEFT) == (layout == TENON_LAYOUT_COLUMN_MAJOR) ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
}
constexpr cublasDiagType_t diagonal(std::uint32_t diag) {
  return diag == TENON_UNIT ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
}

/// For C = op(A) op(A)' and similar: C' needs the opposite operation on A'. Symmetric routines take N and T, Hermitian ones N and C.
constexpr cublasOperation_t rank_operation(std::uint32_t layout, std::uint32_t trans, bool hermitian) {
  const bool transposed = transposes(trans) == (layout == TENON_LAYOUT_COLUMN_MAJOR);
  return !transposed ? CUBLAS_OP_N : hermitian ? CUBLAS_OP_C : CUBLAS_OP_T;
}

/// Two values, swapped for row-major order.
template <class T>
struct Pair {
  T first, second;
};
template <class T>
constexpr Pair<T> in_order(std::uint32_t layout, T first, T second) {
  return layout == TENON_LAYOUT_COLUMN_MAJOR ? Pair<T>{first, second} : Pair<T>{second, first};
}

}  // namespace tenon::cuda::blas
