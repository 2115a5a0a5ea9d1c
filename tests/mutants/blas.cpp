// SPDX-License-Identifier: Apache-2.0
// BLAS routines that misread their arguments, or what the call states.
#include "mutant.h"

#include <cmath>
#include <vector>

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

/// A copy of A with 10 bits of mantissa.
std::vector<float> as_tf32(const tenon_blas_gemm_args& args) {
  const bool plain = args.trans_a == TENON_NO_TRANS || args.trans_a == TENON_CONJ_NO_TRANS;
  const std::int64_t lines = plain == (args.layout == TENON_LAYOUT_ROW_MAJOR) ? args.m : args.k;
  std::vector<float> copy(static_cast<std::size_t>(lines * args.lda));
  const std::size_t last = copy.empty() ? 0 : (copy.size() - static_cast<std::size_t>(args.lda)) * sizeof(float);
  const std::int64_t line = plain == (args.layout == TENON_LAYOUT_ROW_MAJOR) ? args.k : args.m;
  std::memcpy(copy.data(), bytes_at(args.a), last + static_cast<std::size_t>(line) * sizeof(float));
  for (float& element : copy) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &element, sizeof bits);
    bits &= ~std::uint32_t{(1U << 13) - 1};
    std::memcpy(&element, &bits, sizeof bits);
  }
  return copy;
}

tenon_status gemm(const tenon_blas_call* call, const tenon_blas_gemm_args* given, tenon_error* error) {
  tenon_blas_call how = *call;
  tenon_blas_gemm_args args = *given;
  if (is(Mutation::blas_wants_its_own_size) && given->struct_size != sizeof args) return say(error, TENON_INVALID_ARGUMENT, "another size");
  if (is(Mutation::blas_ignores_needs)) how.needs = 0;
  if (is(Mutation::blas_any_math_will_do) && how.math > TENON_MATH_BF16) how.math = TENON_MATH_STRICT;
  static const float one_f32 = 1;
  static const double one_f64 = 1;
  if (is(Mutation::blas_reads_c_under_beta_zero) && args.beta.on_device == 0) {
    if (how.dtype == TENON_DTYPE_F32 && host_number<float>(args.beta) == 0) {
      multiply_by_zero<float>(args.c, args.layout, args.m, args.n, args.ldc);
      args.beta.address = reinterpret_cast<std::uintptr_t>(&one_f32);
    } else if (how.dtype == TENON_DTYPE_F64 && host_number<double>(args.beta) == 0) {
      multiply_by_zero<double>(args.c, args.layout, args.m, args.n, args.ldc);
      args.beta.address = reinterpret_cast<std::uintptr_t>(&one_f64);
    }
  }
  if (is(Mutation::blas_wrong_lda)) {
    const bool plain = args.trans_a == TENON_NO_TRANS || args.trans_a == TENON_CONJ_NO_TRANS;
    args.lda = plain == (args.layout == TENON_LAYOUT_ROW_MAJOR) ? args.k : args.m;
    if (args.lda < 1) args.lda = 1;
  }
  if (is(Mutation::blas_ignores_conjugate)) {
    if (args.trans_a == TENON_CONJ_TRANS) args.trans_a = TENON_TRANS;
    if (args.trans_b == TENON_CONJ_TRANS) args.trans_b = TENON_TRANS;
  }
  std::vector<float> rounded;
  if (is(Mutation::blas_tf32_under_strict) && how.dtype == TENON_DTYPE_F32 && args.m > 0 && args.k > 0 && args.a != 0) {
    rounded = as_tf32(args);
    args.a = reinterpret_cast<std::uintptr_t>(rounded.data());
  }
  return unmodified().gemm(&how, &args, error);
}

tenon_status axpy(const tenon_blas_call* call, const tenon_blas_axpy_args* given, tenon_error* error) {
  tenon_blas_axpy_args args = *given;
  if (is(Mutation::blas_refuses_a_dtype) && call->dtype == TENON_DTYPE_C64) return say(error, TENON_UNSUPPORTED, "not for c64");
  if (is(Mutation::blas_negative_increment) && args.incx < 0) args.incx = -args.incx;
  return unmodified().axpy(call, &args, error);
}

/// Adds the halves in an order that depends on the number of threads, whatever was asked.
tenon_status asum(const tenon_blas_call* call, const tenon_blas_reduce_args* args, tenon_error* error) {
  const tenon_status status = unmodified().asum(call, args, error);
  if (status != TENON_OK || call->dtype != TENON_DTYPE_F32 || args->result.on_device != 0) return status;
  const tenon_host* const host = host_of(call->device);
  float sum = 0;
  std::memcpy(&sum, bytes_at(args->result.address), sizeof sum);
  if (host->thread_count(host->context, call->run) == 1) sum = std::nextafter(sum, 2 * sum);
  std::memcpy(bytes_at(args->result.address), &sum, sizeof sum);
  return status;
}

tenon_status iamax(const tenon_blas_call* call, const tenon_blas_reduce_args* args, tenon_error* error) {
  const tenon_status status = unmodified().iamax(call, args, error);
  if (status != TENON_OK) return status;
  std::int64_t index = 0;
  std::memcpy(&index, bytes_at(args->result.address), sizeof index);
  ++index;  // Fortran's
  std::memcpy(bytes_at(args->result.address), &index, sizeof index);
  return status;
}

tenon_status trmv(const tenon_blas_call* call, const tenon_blas_trmv_args* given, tenon_error* error) {
  tenon_blas_trmv_args args = *given;
  args.diag = TENON_NON_UNIT;
  return unmodified().trmv(call, &args, error);
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
  blas.axpy = axpy;
  if (is(Mutation::blas_sums_as_threads_are)) blas.asum = asum;
  if (is(Mutation::blas_counts_from_one)) blas.iamax = iamax;
  if (is(Mutation::blas_reads_unit_diagonal)) blas.trmv = trmv;
  if (is(Mutation::blas_leaves_a_slot_empty)) blas.dot = nullptr, blas.dot_dtypes = 0;
  if (is(Mutation::blas_lacks_a_dtype)) blas.dot_dtypes = TENON_DTYPES_s;
  if (is(Mutation::blas_slot_without_dtypes)) blas.dot_dtypes = 0;
  table.blas = &blas;
}

}  // namespace tenon::mutants
