// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/blas.h - BLAS routines of a CPU backend: a function template over the routine's
// arguments, and a last line that registers it.
//
//   template <class T>
//   void axpy(const sdk::arguments::axpy<T>& p) { ... }
//   TENON_BLAS_ROUTINE(axpy)
//
// A routine is offered in the dtypes of its line in tenon/blas.def. The files are blas/level1.cpp,
// level2.cpp and level3.cpp of the backend, all three or none: tools/cmake/backend.cmake then
// writes the table. Addresses are host pointers here and scalars are read before the call, so this
// is for devices with host-addressable memory; a GPU backend fills its tenon_blas_table itself.
#pragma once

#include <complex>
#include <cstdint>
#include <tuple>

#include <tenon/backend.h>
#include <tenon/sdk/host.h>

namespace tenon::sdk {

/// f32 for f32 and c64, f64 for f64 and c128.
template <class T>
struct RealOf {
  using Type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using Type = T;
};
template <class T>
using Real = typename RealOf<T>::Type;
template <class T>
inline constexpr bool is_complex = !std::is_same_v<T, Real<T>>;

/// The destination of a scalar result.
struct Result {
  void* address = nullptr;
  template <class R>
  void set(R value) const {
    *static_cast<R*>(address) = value;
  }
};

/// The arguments of each signature class of tenon/blas.def, with the names and the order of the
/// ABI's slots. The core has checked them: sizes are 0 or more, increments are not 0, leading
/// dimensions cover their rows or columns, and addresses are not NULL where something is read or
/// written. Vectors: element i at x[i * incx], counted from the array's end where incx is negative.
/// layout, trans, uplo, diag and side are TENON_* constants.
namespace arguments {

template <class T>
struct rotg {
  const Host* host;
  T *a, *b;
  Real<T>* c;
  T* s;
};
template <class T>
struct rotmg {
  const Host* host;
  T *d1, *d2, *x1;
  const T* y1;
  T* param;  ///< 5 numbers
};
template <class T>
struct rot {
  const Host* host;
  std::int64_t n;
  T* x;
  std::int64_t incx;
  T* y;
  std::int64_t incy;
  Real<T> c;
  T s;
};
template <class T>
struct rotm {
  const Host* host;
  std::int64_t n;
  T* x;
  std::int64_t incx;
  T* y;
  std::int64_t incy;
  const T* param;  ///< 5 numbers
};
template <class T>
struct xy {
  const Host* host;
  std::int64_t n;
  T* x;  ///< copy reads it
  std::int64_t incx;
  T* y;
  std::int64_t incy;
};
template <class T>
struct scal {
  const Host* host;
  std::int64_t n;
  T alpha;  ///< rscal: its imaginary part is 0
  T* x;
  std::int64_t incx;
};
template <class T>
struct axpy {
  const Host* host;
  std::int64_t n;
  T alpha;
  const T* x;
  std::int64_t incx;
  T* y;
  std::int64_t incy;
};
template <class T>
struct axpby {
  const Host* host;
  std::int64_t n;
  T alpha;
  const T* x;
  std::int64_t incx;
  T beta;
  T* y;
  std::int64_t incy;
};
template <class T>
struct dot {
  const Host* host;
  std::int64_t n;
  T alpha;  ///< sdsdot; 0 if none was given
  const T* x;
  std::int64_t incx;
  const T* y;
  std::int64_t incy;
  Result result;  ///< T; dsdot: double
};
template <class T>
struct reduce {
  const Host* host;
  std::int64_t n;
  const T* x;
  std::int64_t incx;  ///< > 0
  Result result;      ///< nrm2, asum: Real<T>; iamax, iamin: std::int64_t
};
template <class T>
struct gemv {
  const Host* host;
  std::uint32_t layout, trans;
  std::int64_t m, n, kl, ku;  ///< kl, ku: gbmv
  T alpha;
  const T* a;
  std::int64_t lda;
  const T* x;
  std::int64_t incx;
  T beta;
  T* y;
  std::int64_t incy;
};
template <class T>
struct symv {
  const Host* host;
  std::uint32_t layout, uplo;
  std::int64_t n, k;  ///< k: sbmv, hbmv
  T alpha;
  const T* a;
  std::int64_t lda;
  const T* x;
  std::int64_t incx;
  T beta;
  T* y;
  std::int64_t incy;
};
template <class T>
struct trmv {
  const Host* host;
  std::uint32_t layout, uplo, trans, diag;
  std::int64_t n, k;  ///< k: tbmv, tbsv
  const T* a;
  std::int64_t lda;
  T* x;
  std::int64_t incx;
};
template <class T>
struct ger {
  const Host* host;
  std::uint32_t layout;
  std::int64_t m, n;
  T alpha;
  const T* x;
  std::int64_t incx;
  const T* y;
  std::int64_t incy;
  T* a;
  std::int64_t lda;
};
template <class T>
struct syr {
  const Host* host;
  std::uint32_t layout, uplo;
  std::int64_t n;
  T alpha;  ///< her, hpr: its imaginary part is 0
  const T* x;
  std::int64_t incx;
  const T* y;  ///< the rank-2 updates
  std::int64_t incy;
  T* a;
  std::int64_t lda;
};
template <class T>
struct gemm {
  const Host* host;
  std::uint32_t layout, uplo;  ///< uplo: gemmt, whose m is n
  std::uint32_t trans_a, trans_b;
  std::int64_t m, n, k;
  T alpha;
  const T* a;
  std::int64_t lda;
  const T* b;
  std::int64_t ldb;
  T beta;
  T* c;
  std::int64_t ldc;
};
template <class T>
struct symm {
  const Host* host;
  std::uint32_t layout, side, uplo;
  std::int64_t m, n;
  T alpha;
  const T* a;
  std::int64_t lda;
  const T* b;
  std::int64_t ldb;
  T beta;
  T* c;
  std::int64_t ldc;
};
template <class T>
struct syrk {
  const Host* host;
  std::uint32_t layout, uplo, trans;
  std::int64_t n, k;
  T alpha;  ///< herk: its imaginary part is 0
  const T* a;
  std::int64_t lda;
  const T* b;  ///< syr2k, her2k
  std::int64_t ldb;
  T beta;  ///< herk, her2k: its imaginary part is 0
  T* c;
  std::int64_t ldc;
};
template <class T>
struct trmm {
  const Host* host;
  std::uint32_t layout, side, uplo, trans, diag;
  std::int64_t m, n;
  T alpha;
  const T* a;
  std::int64_t lda;
  T* b;
  std::int64_t ldb;
};
template <class T>
struct geam {
  const Host* host;
  std::uint32_t layout, trans_a, trans_b;
  std::int64_t m, n;
  T alpha;
  const T* a;
  std::int64_t lda;
  T beta;
  const T* b;
  std::int64_t ldb;
  T* c;
  std::int64_t ldc;
};
template <class T>
struct dgmm {
  const Host* host;
  std::uint32_t layout, side;
  std::int64_t m, n;
  const T* a;
  std::int64_t lda;
  const T* x;
  std::int64_t incx;
  T* c;
  std::int64_t ldc;
};
template <class T>
struct gemm_batched {
  const Host* host;
  std::uint32_t layout, trans_a, trans_b;
  std::int64_t m, n, k;
  T alpha;
  const std::uint64_t* a;  ///< `batch` addresses each
  std::int64_t lda;
  const std::uint64_t* b;
  std::int64_t ldb;
  T beta;
  const std::uint64_t* c;
  std::int64_t ldc;
  std::int64_t batch;

  /// The i-th product.
  gemm<T> product(std::int64_t i) const {
    return {host, layout, 0, trans_a, trans_b, m, n, k, alpha, at<const T>(a, i), lda, at<const T>(b, i), ldb, beta, at<T>(c, i), ldc};
  }

 private:
  template <class P>
  static P* at(const std::uint64_t* addresses, std::int64_t i) {
    return reinterpret_cast<P*>(static_cast<std::uintptr_t>(addresses[i]));
  }
};
template <class T>
struct gemm_strided_batched {
  const Host* host;
  std::uint32_t layout, trans_a, trans_b;
  std::int64_t m, n, k;
  T alpha;
  const T* a;
  std::int64_t lda, stride_a;  ///< strides in elements
  const T* b;
  std::int64_t ldb, stride_b;
  T beta;
  T* c;
  std::int64_t ldc, stride_c;
  std::int64_t batch;

  /// The i-th product.
  gemm<T> product(std::int64_t i) const {
    return {
        host, layout, 0, trans_a, trans_b, m, n, k, alpha, at(a, i * stride_a), lda, at(b, i * stride_b), ldb, beta, at(c, i * stride_c),
        ldc};
  }

 private:
  /// An operand that is not read may be NULL and stays NULL.
  template <class P>
  static P* at(P* first, std::int64_t offset) {
    return first == nullptr ? nullptr : first + offset;
  }
};

}  // namespace arguments

namespace detail {
/// The host of an SDK device.
const Host& host_of(const tenon_device* device);
/// Converts the current exception to a status and its message.
tenon_status report_current_exception(tenon_error* error) noexcept;
[[noreturn]] void refuse_blas_dtype(const char* routine, tenon_dtype dtype);

template <class T>
struct BlasDType;
template <>
struct BlasDType<float> {
  static constexpr tenon_dtype value = TENON_DTYPE_F32;
};
template <>
struct BlasDType<double> {
  static constexpr tenon_dtype value = TENON_DTYPE_F64;
};
template <>
struct BlasDType<std::complex<float>> {
  static constexpr tenon_dtype value = TENON_DTYPE_C64;
};
template <>
struct BlasDType<std::complex<double>> {
  static constexpr tenon_dtype value = TENON_DTYPE_C128;
};

/// Calls make.operator()<T>() for the dtype's T.
template <class... Types, class Body>
tenon_status run_blas(const char* routine, std::tuple<Types...>, tenon_dtype dtype, tenon_error* error, const Body& body) noexcept {
  try {
    if (!((dtype == BlasDType<Types>::value && (body.template operator()<Types>(), true)) || ...)) refuse_blas_dtype(routine, dtype);
    return TENON_OK;
  } catch (...) {
    return report_current_exception(error);
  }
}

template <class T>
T* pointer(std::uint64_t address) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}
template <class T>
T number(const tenon_scalar* scalar) {
  return scalar == nullptr ? T(0) : *pointer<const T>(scalar->address);
}
inline Result result(const tenon_scalar* scalar) {
  return {pointer<void>(scalar->address)};
}

using Types_s = std::tuple<float>;
using Types_sd = std::tuple<float, double>;
using Types_cz = std::tuple<std::complex<float>, std::complex<double>>;
using Types_sdcz = std::tuple<float, double, std::complex<float>, std::complex<double>>;

/// Scalars that are real although the routine's operands are complex.
struct RealScalars {
  bool alpha = false, beta = false;
};
constexpr bool same_name(const char* a, const char* b) {
  for (; *a != 0 || *b != 0; ++a, ++b) {
    if (*a != *b) return false;
  }
  return true;
}
constexpr RealScalars real_scalars(const char* routine) {
  const auto is = [&](const char* name) { return same_name(routine, name); };
  return {is("rscal") || is("her") || is("hpr") || is("herk"), is("herk") || is("her2k")};
}
template <class T, bool IsReal>
T scalar(const tenon_scalar* given) {
  if constexpr (IsReal) {
    return T(number<Real<T>>(given));
  } else {
    return number<T>(given);
  }
}

// One slot for each signature class: converts the ABI's arguments and calls Routine::run<T>.
#define TENON_BLAS_SLOT_BEGIN                               \
  const Host* const host = &host_of(device);                \
  (void)stream;                                             \
  constexpr RealScalars real = real_scalars(Routine::name); \
  (void)real;                                               \
  return run_blas(Routine::name, typename Routine::Types{}, dtype, error, [&]<class T>() {
#define TENON_BLAS_SLOT_END \
  });

template <class Routine>
tenon_status slot_rotg(TENON_BLAS_HEAD, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t s, std::uint32_t,
                       tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::rotg<T>{host, pointer<T>(a), pointer<T>(b), pointer<Real<T>>(c), pointer<T>(s)});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_rotmg(TENON_BLAS_HEAD, std::uint64_t d1, std::uint64_t d2, std::uint64_t x1, std::uint64_t y1, std::uint64_t param,
                        std::uint32_t, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::rotmg<T>{host, pointer<T>(d1), pointer<T>(d2), pointer<T>(x1), pointer<const T>(y1), pointer<T>(param)});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_rot(TENON_BLAS_HEAD, std::int64_t n, std::uint64_t x, std::int64_t incx, std::uint64_t y, std::int64_t incy,
                      const tenon_scalar* c, const tenon_scalar* s, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::rot<T>{host, n, pointer<T>(x), incx, pointer<T>(y), incy, number<Real<T>>(c), number<T>(s)});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_rotm(TENON_BLAS_HEAD, std::int64_t n, std::uint64_t x, std::int64_t incx, std::uint64_t y, std::int64_t incy,
                       const tenon_scalar* param, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::rotm<T>{host, n, pointer<T>(x), incx, pointer<T>(y), incy, pointer<const T>(param->address)});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_xy(TENON_BLAS_HEAD, std::int64_t n, std::uint64_t x, std::int64_t incx, std::uint64_t y, std::int64_t incy,
                     tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::xy<T>{host, n, pointer<T>(x), incx, pointer<T>(y), incy});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_scal(TENON_BLAS_HEAD, std::int64_t n, const tenon_scalar* alpha, std::uint64_t x, std::int64_t incx, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::scal<T>{host, n, scalar<T, real.alpha>(alpha), pointer<T>(x), incx});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_axpy(TENON_BLAS_HEAD, std::int64_t n, const tenon_scalar* alpha, std::uint64_t x, std::int64_t incx, std::uint64_t y,
                       std::int64_t incy, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::axpy<T>{host, n, number<T>(alpha), pointer<const T>(x), incx, pointer<T>(y), incy});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_axpby(TENON_BLAS_HEAD, std::int64_t n, const tenon_scalar* alpha, std::uint64_t x, std::int64_t incx,
                        const tenon_scalar* beta, std::uint64_t y, std::int64_t incy, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::axpby<T>{host, n, number<T>(alpha), pointer<const T>(x), incx, number<T>(beta), pointer<T>(y), incy});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_dot(TENON_BLAS_HEAD, std::int64_t n, const tenon_scalar* alpha, std::uint64_t x, std::int64_t incx, std::uint64_t y,
                      std::int64_t incy, const tenon_scalar* out_result, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::dot<T>{host, n, number<T>(alpha), pointer<const T>(x), incx, pointer<const T>(y), incy, result(out_result)});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_reduce(TENON_BLAS_HEAD, std::int64_t n, std::uint64_t x, std::int64_t incx, const tenon_scalar* out_result,
                         tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::reduce<T>{host, n, pointer<const T>(x), incx, result(out_result)});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_gemv(TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t trans, std::int64_t m, std::int64_t n, std::int64_t kl,
                       std::int64_t ku, const tenon_scalar* alpha, std::uint64_t a, std::int64_t lda, std::uint64_t x, std::int64_t incx,
                       const tenon_scalar* beta, std::uint64_t y, std::int64_t incy, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::gemv<T>{host, layout, trans, m, n, kl, ku, number<T>(alpha), pointer<const T>(a), lda, pointer<const T>(x), incx,
                                  number<T>(beta), pointer<T>(y), incy});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_symv(TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, std::int64_t k, const tenon_scalar* alpha,
                       std::uint64_t a, std::int64_t lda, std::uint64_t x, std::int64_t incx, const tenon_scalar* beta, std::uint64_t y,
                       std::int64_t incy, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::symv<T>{host, layout, uplo, n, k, number<T>(alpha), pointer<const T>(a), lda, pointer<const T>(x), incx,
                                  number<T>(beta), pointer<T>(y), incy});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_trmv(TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::uint32_t diag, std::int64_t n,
                       std::int64_t k, std::uint64_t a, std::int64_t lda, std::uint64_t x, std::int64_t incx, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::trmv<T>{host, layout, uplo, trans, diag, n, k, pointer<const T>(a), lda, pointer<T>(x), incx});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_ger(TENON_BLAS_HEAD, std::uint32_t layout, std::int64_t m, std::int64_t n, const tenon_scalar* alpha, std::uint64_t x,
                      std::int64_t incx, std::uint64_t y, std::int64_t incy, std::uint64_t a, std::int64_t lda, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(
      arguments::ger<T>{host, layout, m, n, number<T>(alpha), pointer<const T>(x), incx, pointer<const T>(y), incy, pointer<T>(a), lda});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_syr(TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, const tenon_scalar* alpha, std::uint64_t x,
                      std::int64_t incx, std::uint64_t y, std::int64_t incy, std::uint64_t a, std::int64_t lda, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::syr<T>{host, layout, uplo, n, scalar<T, real.alpha>(alpha), pointer<const T>(x), incx, pointer<const T>(y), incy,
                                 pointer<T>(a), lda});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_gemm(TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans_a, std::uint32_t trans_b,
                       std::int64_t m, std::int64_t n, std::int64_t k, const tenon_scalar* alpha, std::uint64_t a, std::int64_t lda,
                       std::uint64_t b, std::int64_t ldb, const tenon_scalar* beta, std::uint64_t c, std::int64_t ldc, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::gemm<T>{host, layout, uplo, trans_a, trans_b, m, n, k, number<T>(alpha), pointer<const T>(a), lda,
                                  pointer<const T>(b), ldb, number<T>(beta), pointer<T>(c), ldc});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_symm(TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t side, std::uint32_t uplo, std::int64_t m, std::int64_t n,
                       const tenon_scalar* alpha, std::uint64_t a, std::int64_t lda, std::uint64_t b, std::int64_t ldb,
                       const tenon_scalar* beta, std::uint64_t c, std::int64_t ldc, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::symm<T>{host, layout, side, uplo, m, n, number<T>(alpha), pointer<const T>(a), lda, pointer<const T>(b), ldb,
                                  number<T>(beta), pointer<T>(c), ldc});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_syrk(TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::int64_t n, std::int64_t k,
                       const tenon_scalar* alpha, std::uint64_t a, std::int64_t lda, std::uint64_t b, std::int64_t ldb,
                       const tenon_scalar* beta, std::uint64_t c, std::int64_t ldc, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::syrk<T>{host, layout, uplo, trans, n, k, scalar<T, real.alpha>(alpha), pointer<const T>(a), lda,
                                  pointer<const T>(b), ldb, scalar<T, real.beta>(beta), pointer<T>(c), ldc});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_trmm(TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t side, std::uint32_t uplo, std::uint32_t trans,
                       std::uint32_t diag, std::int64_t m, std::int64_t n, const tenon_scalar* alpha, std::uint64_t a, std::int64_t lda,
                       std::uint64_t b, std::int64_t ldb, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(
      arguments::trmm<T>{host, layout, side, uplo, trans, diag, m, n, number<T>(alpha), pointer<const T>(a), lda, pointer<T>(b), ldb});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_geam(TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t trans_a, std::uint32_t trans_b, std::int64_t m, std::int64_t n,
                       const tenon_scalar* alpha, std::uint64_t a, std::int64_t lda, const tenon_scalar* beta, std::uint64_t b,
                       std::int64_t ldb, std::uint64_t c, std::int64_t ldc, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::geam<T>{host, layout, trans_a, trans_b, m, n, number<T>(alpha), pointer<const T>(a), lda, number<T>(beta),
                                  pointer<const T>(b), ldb, pointer<T>(c), ldc});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_dgmm(TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t side, std::int64_t m, std::int64_t n, std::uint64_t a,
                       std::int64_t lda, std::uint64_t x, std::int64_t incx, std::uint64_t c, std::int64_t ldc, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::dgmm<T>{host, layout, side, m, n, pointer<const T>(a), lda, pointer<const T>(x), incx, pointer<T>(c), ldc});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_gemm_batched(TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t trans_a, std::uint32_t trans_b, std::int64_t m,
                               std::int64_t n, std::int64_t k, const tenon_scalar* alpha, const std::uint64_t* a, std::int64_t lda,
                               const std::uint64_t* b, std::int64_t ldb, const tenon_scalar* beta, const std::uint64_t* c, std::int64_t ldc,
                               std::int64_t batch, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::gemm_batched<T>{host, layout, trans_a, trans_b, m, n, k, number<T>(alpha), a, lda, b, ldb, number<T>(beta), c,
                                          ldc, batch});
  TENON_BLAS_SLOT_END
}
template <class Routine>
tenon_status slot_gemm_strided_batched(TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t trans_a, std::uint32_t trans_b, std::int64_t m,
                                       std::int64_t n, std::int64_t k, const tenon_scalar* alpha, std::uint64_t a, std::int64_t lda,
                                       std::int64_t stride_a, std::uint64_t b, std::int64_t ldb, std::int64_t stride_b,
                                       const tenon_scalar* beta, std::uint64_t c, std::int64_t ldc, std::int64_t stride_c,
                                       std::int64_t batch, tenon_error* error) {
  TENON_BLAS_SLOT_BEGIN
  Routine::run(arguments::gemm_strided_batched<T>{host, layout, trans_a, trans_b, m, n, k, number<T>(alpha), pointer<const T>(a), lda,
                                                  stride_a, pointer<const T>(b), ldb, stride_b, number<T>(beta), pointer<T>(c), ldc,
                                                  stride_c, batch});
  TENON_BLAS_SLOT_END
}
#undef TENON_BLAS_SLOT_BEGIN
#undef TENON_BLAS_SLOT_END

/// A line of blas.def: `Blas_gemm`.
#define TENON_BLAS(id, routine, level, signature, dtypes)                           \
  struct Blas_##routine {                                                           \
    using Types = Types_##dtypes;                                                   \
    static constexpr const char* name = #routine;                                   \
    template <class Routine>                                                        \
    static constexpr tenon_blas_##signature##_fn slot = &slot_##signature<Routine>; \
  };
#include <tenon/blas.def>
#undef TENON_BLAS

}  // namespace detail
}  // namespace tenon::sdk

/// Registers the function template `routine` of this namespace: its slot of the table, guarded, for
/// the dtypes of its line in blas.def.
#define TENON_BLAS_ROUTINE(routine)                                \
  namespace {                                                      \
  struct RoutineOf_##routine {                                     \
    using Types = ::tenon::sdk::detail::Blas_##routine::Types;     \
    static constexpr const char* name = #routine;                  \
    template <class Arguments>                                     \
    static void run(const Arguments& arguments) {                  \
      routine(arguments);                                          \
    }                                                              \
  };                                                               \
  }                                                                \
  extern const decltype(tenon_blas_table::routine) blas_##routine; \
  const decltype(tenon_blas_table::routine) blas_##routine = ::tenon::sdk::detail::Blas_##routine::slot<RoutineOf_##routine>;
