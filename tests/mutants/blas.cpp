// SPDX-License-Identifier: Apache-2.0
// BLAS routines that misread their arguments.
#include "mutant.h"

namespace tenon::mutants {
namespace {

const tenon_blas_table& unmodified() {
  return *real().blas;
}

template <class T>
T host_number(const tenon_scalar& scalar) {
  T value{};
  std::memcpy(&value, bytes_at(scalar.address), sizeof value);
  return value;
}

/// Computes C = 0 C first, which keeps NaN.
template <class T>
void multiply_by_zero(std::uint64_t c, std::uint32_t layout, std::int64_t m, std::int64_t n, std::int64_t ldc) {
  const bool rows = layout == TENON_LAYOUT_ROW_MAJOR;
  auto* elements = reinterpret_cast<T*>(static_cast<std::uintptr_t>(c));
  for (std::int64_t i = 0; i < (rows ? m : n); ++i) {
    for (std::int64_t j = 0; j < (rows ? n : m); ++j) elements[i * ldc + j] *= T{0};
  }
}

tenon_status gemm(tenon_device* device, tenon_stream* stream, tenon_dtype dtype, std::uint32_t layout, std::uint32_t uplo,
                  std::uint32_t trans_a, std::uint32_t trans_b, std::int64_t m, std::int64_t n, std::int64_t k, const tenon_scalar* alpha,
                  std::uint64_t a, std::int64_t lda, std::uint64_t b, std::int64_t ldb, const tenon_scalar* beta, std::uint64_t c,
                  std::int64_t ldc, tenon_error* error) {
  tenon_scalar factor = *beta;
  static const float one_f32 = 1;
  static const double one_f64 = 1;
  if (is(Mutation::blas_reads_c_under_beta_zero) && factor.on_device == 0) {
    if (dtype == TENON_DTYPE_F32 && host_number<float>(factor) == 0) {
      multiply_by_zero<float>(c, layout, m, n, ldc);
      factor.address = reinterpret_cast<std::uintptr_t>(&one_f32);
    } else if (dtype == TENON_DTYPE_F64 && host_number<double>(factor) == 0) {
      multiply_by_zero<double>(c, layout, m, n, ldc);
      factor.address = reinterpret_cast<std::uintptr_t>(&one_f64);
    }
  }
  if (is(Mutation::blas_wrong_lda)) {
    const bool plain = trans_a == TENON_NO_TRANS || trans_a == TENON_CONJ_NO_TRANS;
    lda = plain == (layout == TENON_LAYOUT_ROW_MAJOR) ? k : m;
    if (lda < 1) lda = 1;
  }
  if (is(Mutation::blas_ignores_conjugate)) {
    if (trans_a == TENON_CONJ_TRANS) trans_a = TENON_TRANS;
    if (trans_b == TENON_CONJ_TRANS) trans_b = TENON_TRANS;
  }
  return unmodified().gemm(device, stream, dtype, layout, uplo, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, &factor, c, ldc, error);
}

tenon_status axpy(tenon_device* device, tenon_stream* stream, tenon_dtype dtype, std::int64_t n, const tenon_scalar* alpha, std::uint64_t x,
                  std::int64_t incx, std::uint64_t y, std::int64_t incy, tenon_error* error) {
  return unmodified().axpy(device, stream, dtype, n, alpha, x, incx < 0 ? -incx : incx, y, incy, error);
}

tenon_status iamax(tenon_device* device, tenon_stream* stream, tenon_dtype dtype, std::int64_t n, std::uint64_t x, std::int64_t incx,
                   const tenon_scalar* out_result, tenon_error* error) {
  const tenon_status status = unmodified().iamax(device, stream, dtype, n, x, incx, out_result, error);
  if (status != TENON_OK) return status;
  std::int64_t index = 0;
  std::memcpy(&index, bytes_at(out_result->address), sizeof index);
  ++index;  // Fortran's
  std::memcpy(bytes_at(out_result->address), &index, sizeof index);
  return status;
}

tenon_status trmv(tenon_device* device, tenon_stream* stream, tenon_dtype dtype, std::uint32_t layout, std::uint32_t uplo,
                  std::uint32_t trans, std::uint32_t, std::int64_t n, std::int64_t k, std::uint64_t a, std::int64_t lda, std::uint64_t x,
                  std::int64_t incx, tenon_error* error) {
  return unmodified().trmv(device, stream, dtype, layout, uplo, trans, TENON_NON_UNIT, n, k, a, lda, x, incx, error);
}

}  // namespace

void spoil_blas(tenon_backend_table& table) {
  static tenon_blas_table blas;
  if (table.blas == nullptr) return;
  // BLAS expects the unmodified streams.
  if (is_asynchronous()) {
    table.blas = nullptr;
    return;
  }
  blas = *table.blas;
  blas.gemm = gemm;
  if (is(Mutation::blas_negative_increment)) blas.axpy = axpy;
  if (is(Mutation::blas_counts_from_one)) blas.iamax = iamax;
  if (is(Mutation::blas_reads_unit_diagonal)) blas.trmv = trmv;
  if (is(Mutation::blas_leaves_a_slot_empty)) blas.dot = nullptr;
  table.blas = &blas;
}

}  // namespace tenon::mutants
