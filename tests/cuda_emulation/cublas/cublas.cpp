// SPDX-License-Identifier: Apache-2.0
// cuBLAS as documented, with the reference backend's routines: column-major, scalars in host or device memory, work in stream order. It has
// exactly the functions that backends/cuda/libraries/cublas_functions.h lists.
#include <control.h>
#include <handle_memory.h>
#include <libraries/cublas_functions.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>

#include <tenon/sdk/blas.h>

// SDK functions that the reference backend's routines need.
namespace tenon::sdk::detail {
const Host& host_of(const tenon_device*) {
  static const Host host;
  return host;
}
tenon_status report_current_exception(tenon_error*) noexcept {
  return TENON_INTERNAL;
}
void refuse_blas_call(const char*, const tenon_blas_call&) {
  throw std::exception();
}
}  // namespace tenon::sdk::detail

namespace tenon::reference {
#define TENON_BLAS(id, routine, level, signature, dtypes) extern const tenon_blas_##signature##_fn blas_##routine;
#include <tenon/blas.def>
#undef TENON_BLAS
}  // namespace tenon::reference

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t mode = CUBLAS_POINTER_MODE_HOST;
  void* workspace = nullptr;
  tenon::emulation::HandleMemory memory = {};
};

namespace {

using namespace tenon::reference;

constexpr std::uint32_t column_major = TENON_LAYOUT_COLUMN_MAJOR;

template <class T>
constexpr tenon_dtype dtype_of = TENON_DTYPE_NONE;
template <>
constexpr tenon_dtype dtype_of<float> = TENON_DTYPE_F32;
template <>
constexpr tenon_dtype dtype_of<double> = TENON_DTYPE_F64;
template <>
constexpr tenon_dtype dtype_of<cuComplex> = TENON_DTYPE_C64;
template <>
constexpr tenon_dtype dtype_of<cuDoubleComplex> = TENON_DTYPE_C128;

/// A scalar input: read at the call in host mode, when the work runs in device mode.
template <class S>
struct Read {
  S value{};
  const S* address = nullptr;
};
template <class S>
Read<S> read(cublasHandle_t handle, const S* scalar) {
  return handle->mode == CUBLAS_POINTER_MODE_HOST ? Read<S>{*scalar, nullptr} : Read<S>{{}, scalar};
}
template <class S>
bool is_zero(cublasHandle_t handle, const S* scalar) {
  static constexpr S zero{};
  return handle->mode == CUBLAS_POINTER_MODE_HOST && std::memcmp(scalar, &zero, sizeof zero) == 0;
}
/// A scalar output: written before the call returns in host mode.
template <class S>
struct Written {
  S* address;
};

template <class T>
std::uint64_t address(T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// An argument of a reference slot.
struct Argument {
  std::uint64_t value;
  tenon_scalar scalar;
};
template <class A>
Argument argument(const A& value) {
  return {static_cast<std::uint64_t>(value), {}};
}
template <class T>
Argument argument(T* pointer) {
  return {address(pointer), {}};
}
Argument argument(std::nullptr_t) {
  return {};
}
template <class S>
Argument argument(const Read<S>& scalar) {
  return {0, {address(scalar.address == nullptr ? &scalar.value : scalar.address), 0, 0}};
}
template <class S>
Argument argument(const Written<S>& scalar) {
  return {0, {address(scalar.address), 0, 0}};
}

// The record of a reference slot, from arguments in the order of its fields.
#define TENON_BLAS_ARGS(signature, fields)                              \
  void fill(tenon_blas_##signature##_args& out, const Argument* next) { \
    out.struct_size = sizeof out;                                       \
    fields                                                              \
  }
#define TENON_FLAG(name) out.name = static_cast<std::uint32_t>(next++->value);
#define TENON_SIZE(name) out.name = static_cast<std::int64_t>(next++->value);
#define TENON_IN(name) out.name = next++->value;
#define TENON_OUT(name) out.name = next++->value;
#define TENON_LIST(name) out.name = reinterpret_cast<const std::uint64_t*>(next++->value);
#define TENON_SCALAR(name) out.name = next++->scalar;
#define TENON_REAL_SCALAR(name) out.name = next++->scalar;
#define TENON_NUMBERS(name) out.name = next++->scalar;
#define TENON_REAL_NUMBER(name) out.name = next++->scalar;
#define TENON_RESULT(name) out.name = next++->scalar;
#define TENON_RESERVED out.reserved = 0;
#include <tenon/blas_args.def>

/// slot(arguments...), now.
template <class T, class Args, class... A>
void call(tenon_status (*slot)(const tenon_blas_call*, const Args*, tenon_error*), const A&... arguments) {
  tenon_blas_call common{};
  common.struct_size = sizeof common;
  common.dtype = dtype_of<T>;
  const Argument list[] = {argument(arguments)...};
  Args args;
  fill(args, list);
  slot(&common, &args, nullptr);
}

cublasStatus_t enqueue(cublasHandle_t handle, bool waits, std::function<void()> work) {
  if (tenon::emulation::enqueue(handle->stream, std::move(work)) != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (waits && cudaStreamSynchronize(handle->stream) != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  return CUBLAS_STATUS_SUCCESS;
}

template <class A>
constexpr bool is_written = false;
template <class S>
constexpr bool is_written<Written<S>> = true;

/// slot(arguments...) in stream order.
template <class T, class Slot, class... A>
cublasStatus_t run(cublasHandle_t handle, Slot slot, A... arguments) {
  const bool waits = (is_written<A> || ...) && handle->mode == CUBLAS_POINTER_MODE_HOST;
  return enqueue(handle, waits, [=] { call<T>(slot, arguments...); });
}

std::uint32_t trans(cublasOperation_t op) {
  return op == CUBLAS_OP_N ? TENON_NO_TRANS : op == CUBLAS_OP_T ? TENON_TRANS : TENON_CONJ_TRANS;
}
std::uint32_t uplo(cublasFillMode_t fill) {
  return fill == CUBLAS_FILL_MODE_UPPER ? TENON_UPPER : TENON_LOWER;
}
std::uint32_t side(cublasSideMode_t mode) {
  return mode == CUBLAS_SIDE_LEFT ? TENON_LEFT : TENON_RIGHT;
}
std::uint32_t diag(cublasDiagType_t type) {
  return type == CUBLAS_DIAG_UNIT ? TENON_UNIT : TENON_NON_UNIT;
}

bool known(cublasOperation_t op) {
  return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}
/// True if ld is valid for op of a (rows, columns) matrix.
bool reaches(std::int64_t ld, cublasOperation_t op, std::int64_t rows, std::int64_t columns) {
  return ld >= std::max<std::int64_t>(1, op == CUBLAS_OP_N ? rows : columns);
}
bool is_product(cublasOperation_t ta, cublasOperation_t tb, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t lda,
                std::int64_t ldb, std::int64_t ldc) {
  return known(ta) && known(tb) && m >= 0 && n >= 0 && k >= 0 && reaches(lda, ta, m, k) && reaches(ldb, tb, k, n) &&
         reaches(ldc, CUBLAS_OP_N, m, n);
}

/// The reference counts from 0, cuBLAS from 1.
template <class T, class Slot>
cublasStatus_t run_place(cublasHandle_t handle, Slot slot, std::int64_t n, const T* x, std::int64_t incx, std::int64_t* result) {
  return enqueue(handle, handle->mode == CUBLAS_POINTER_MODE_HOST, [=] {
    call<T>(slot, n, x, incx, Written<std::int64_t>{result});
    *result += 1;
  });
}

template <class T>
cublasStatus_t run_batched(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, std::int64_t m, std::int64_t n,
                           std::int64_t k, Read<T> alpha, const T* const* a, std::int64_t lda, const T* const* b, std::int64_t ldb,
                           Read<T> beta, T* const* c, std::int64_t ldc, std::int64_t batch) {
  if (!is_product(ta, tb, m, n, k, lda, ldb, ldc)) return CUBLAS_STATUS_INVALID_VALUE;
  return enqueue(handle, false, [=] {
    for (std::int64_t i = 0; i < batch; ++i) {
      call<T>(blas_gemm, column_major, 0, trans(ta), trans(tb), m, n, k, alpha, a[i], lda, b[i], ldb, beta, c[i], ldc);
    }
  });
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  *value = type == MAJOR_VERSION ? CUBLAS_VER_MAJOR : type == MINOR_VERSION ? CUBLAS_VER_MINOR : CUBLAS_VER_PATCH;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  auto made = std::make_unique<cublasContext>();
  if (!made->memory.allocated()) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = made.release();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  handle->workspace = nullptr;  // as documented
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t) {
  if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  handle->workspace = workspace;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  handle->mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) {
  return CUBLAS_STATUS_SUCCESS;
}

// cuBLAS 13.1 multiplies by alpha = 0 in these routines, also NaN, and reads operands that may be NULL. No result is that of the
// reference then, so such a call is an error here.
#define NOT_WITH_ZERO(alpha) \
  if (is_zero(handle, alpha)) return CUBLAS_STATUS_NOT_SUPPORTED;
// One macro for each routine of the list: T is the element type, R the corresponding real type.
#define HEAD cublasHandle_t handle
#define XY(T) const T *x, std::int64_t incx, T *y, std::int64_t incy
#define ROUTINE_rotg(name, T, R)                                                                  \
  cublasStatus_t name(HEAD, T* a, T* b, R* c, T* s) {                                             \
    return run<T>(handle, blas_rotg, Written<T>{a}, Written<T>{b}, Written<R>{c}, Written<T>{s}); \
  }
#define ROUTINE_rotmg(name, T, R)                                                                                               \
  cublasStatus_t name(HEAD, T* d1, T* d2, T* x1, const T* y1, T* param) {                                                       \
    return run<T>(handle, blas_rotmg, Written<T>{d1}, Written<T>{d2}, Written<T>{x1}, Written<const T>{y1}, Written<T>{param}); \
  }
#define ROUTINE_rot(name, T, R)                                                                                         \
  cublasStatus_t name(HEAD, std::int64_t n, T* x, std::int64_t incx, T* y, std::int64_t incy, const R* c, const T* s) { \
    return run<T>(handle, blas_rot, n, x, incx, y, incy, read(handle, c), read(handle, s));                             \
  }
#define ROUTINE_rotm(name, T, R)                                                                                \
  cublasStatus_t name(HEAD, std::int64_t n, T* x, std::int64_t incx, T* y, std::int64_t incy, const T* param) { \
    struct Param {                                                                                              \
      T at[5];                                                                                                  \
    };                                                                                                          \
    return run<T>(handle, blas_rotm, n, x, incx, y, incy, read(handle, reinterpret_cast<const Param*>(param))); \
  }
#define ROUTINE_swap(name, T, R)                                                                \
  cublasStatus_t name(HEAD, std::int64_t n, T* x, std::int64_t incx, T* y, std::int64_t incy) { \
    return run<T>(handle, blas_swap, n, x, incx, y, incy);                                      \
  }
#define ROUTINE_scal(name, T, R)                                                       \
  cublasStatus_t name(HEAD, std::int64_t n, const T* alpha, T* x, std::int64_t incx) { \
    return run<T>(handle, blas_scal, n, read(handle, alpha), x, incx);                 \
  }
#define ROUTINE_rscal(name, T, R)                                                      \
  cublasStatus_t name(HEAD, std::int64_t n, const R* alpha, T* x, std::int64_t incx) { \
    return run<T>(handle, blas_rscal, n, read(handle, alpha), x, incx);                \
  }
#define ROUTINE_copy(name, T, R)                           \
  cublasStatus_t name(HEAD, std::int64_t n, XY(T)) {       \
    return run<T>(handle, blas_copy, n, x, incx, y, incy); \
  }
#define ROUTINE_axpy(name, T, R)                                                \
  cublasStatus_t name(HEAD, std::int64_t n, const T* alpha, XY(T)) {            \
    return run<T>(handle, blas_axpy, n, read(handle, alpha), x, incx, y, incy); \
  }
#define DOT(routine, name, T)                                                                                          \
  cublasStatus_t name(HEAD, std::int64_t n, const T* x, std::int64_t incx, const T* y, std::int64_t incy, T* result) { \
    return run<T>(handle, blas_##routine, n, nullptr, x, incx, y, incy, Written<T>{result});                           \
  }
#define ROUTINE_dot(name, T, R) DOT(dot, name, T)
#define ROUTINE_dotu(name, T, R) DOT(dotu, name, T)
#define ROUTINE_dotc(name, T, R) DOT(dotc, name, T)
#define REDUCE(routine, name, T, R)                                                     \
  cublasStatus_t name(HEAD, std::int64_t n, const T* x, std::int64_t incx, R* result) { \
    return run<T>(handle, blas_##routine, n, x, incx, Written<R>{result});              \
  }
#define ROUTINE_asum(name, T, R) REDUCE(asum, name, T, R)
#define PLACE(routine, name, T)                                                                    \
  cublasStatus_t name(HEAD, std::int64_t n, const T* x, std::int64_t incx, std::int64_t* result) { \
    return run_place(handle, blas_##routine, n, x, incx, result);                                  \
  }
#define ROUTINE_iamax(name, T, R) PLACE(iamax, name, T)
#define ROUTINE_iamin(name, T, R) PLACE(iamin, name, T)

#define A_X(T) const T *a, std::int64_t lda, const T *x, std::int64_t incx
#define ROUTINE_gemv(name, T, R)                                                                                                      \
  cublasStatus_t name(HEAD, cublasOperation_t op, std::int64_t m, std::int64_t n, const T* alpha, A_X(T), const T* beta, T* y,        \
                      std::int64_t incy) {                                                                                            \
    if (!known(op) || !reaches(lda, CUBLAS_OP_N, m, n)) return CUBLAS_STATUS_INVALID_VALUE;                                           \
    return run<T>(handle, blas_gemv, column_major, trans(op), m, n, std::int64_t{0}, std::int64_t{0}, read(handle, alpha), a, lda, x, \
                  incx, read(handle, beta), y, incy);                                                                                 \
  }
#define ROUTINE_gbmv(name, T, R)                                                                                                         \
  cublasStatus_t name(HEAD, cublasOperation_t op, std::int64_t m, std::int64_t n, std::int64_t kl, std::int64_t ku, const T* alpha,      \
                      A_X(T), const T* beta, T* y, std::int64_t incy) {                                                                  \
    if (!known(op)) return CUBLAS_STATUS_INVALID_VALUE;                                                                                  \
    NOT_WITH_ZERO(alpha)                                                                                                                 \
    return run<T>(handle, blas_gbmv, column_major, trans(op), m, n, kl, ku, read(handle, alpha), a, lda, x, incx, read(handle, beta), y, \
                  incy);                                                                                                                 \
  }
#define SYMMETRIC_WHOLE(routine, name, T)                                                                                            \
  cublasStatus_t name(HEAD, cublasFillMode_t fill, std::int64_t n, const T* alpha, A_X(T), const T* beta, T* y, std::int64_t incy) { \
    NOT_WITH_ZERO(alpha)                                                                                                             \
    return run<T>(handle, blas_##routine, column_major, uplo(fill), n, std::int64_t{0}, read(handle, alpha), a, lda, x, incx,        \
                  read(handle, beta), y, incy);                                                                                      \
  }
#define SYMMETRIC_BAND(routine, name, T)                                                                                               \
  cublasStatus_t name(HEAD, cublasFillMode_t fill, std::int64_t n, std::int64_t k, const T* alpha, A_X(T), const T* beta, T* y,        \
                      std::int64_t incy) {                                                                                             \
    NOT_WITH_ZERO(alpha)                                                                                                               \
    return run<T>(handle, blas_##routine, column_major, uplo(fill), n, k, read(handle, alpha), a, lda, x, incx, read(handle, beta), y, \
                  incy);                                                                                                               \
  }
#define SYMMETRIC_PACKED(routine, name, T)                                                                                                \
  cublasStatus_t name(HEAD, cublasFillMode_t fill, std::int64_t n, const T* alpha, const T* a, const T* x, std::int64_t incx,             \
                      const T* beta, T* y, std::int64_t incy) {                                                                           \
    return run<T>(handle, blas_##routine, column_major, uplo(fill), n, std::int64_t{0}, read(handle, alpha), a, std::int64_t{0}, x, incx, \
                  read(handle, beta), y, incy);                                                                                           \
  }
#define ROUTINE_symv(name, T, R) SYMMETRIC_WHOLE(symv, name, T)
#define ROUTINE_hemv(name, T, R) SYMMETRIC_WHOLE(hemv, name, T)
#define ROUTINE_sbmv(name, T, R) SYMMETRIC_BAND(sbmv, name, T)
#define ROUTINE_hbmv(name, T, R) SYMMETRIC_BAND(hbmv, name, T)
#define ROUTINE_spmv(name, T, R) SYMMETRIC_PACKED(spmv, name, T)
#define ROUTINE_hpmv(name, T, R) SYMMETRIC_PACKED(hpmv, name, T)

#define TRIANGLE_HEAD HEAD, cublasFillMode_t fill, cublasOperation_t op, cublasDiagType_t unit, std::int64_t n
#define TRIANGLE_CALL(T, routine, k, lda)                                                                            \
  known(op) ? run<T>(handle, blas_##routine, column_major, uplo(fill), trans(op), diag(unit), n, k, a, lda, x, incx) \
            : CUBLAS_STATUS_INVALID_VALUE
#define TRIANGLE_WHOLE(routine, name, T)                                                      \
  cublasStatus_t name(TRIANGLE_HEAD, const T* a, std::int64_t lda, T* x, std::int64_t incx) { \
    return TRIANGLE_CALL(T, routine, std::int64_t{0}, lda);                                   \
  }
#define TRIANGLE_BAND(routine, name, T)                                                                       \
  cublasStatus_t name(TRIANGLE_HEAD, std::int64_t k, const T* a, std::int64_t lda, T* x, std::int64_t incx) { \
    return TRIANGLE_CALL(T, routine, k, lda);                                                                 \
  }
#define TRIANGLE_PACKED(routine, name, T)                                   \
  cublasStatus_t name(TRIANGLE_HEAD, const T* a, T* x, std::int64_t incx) { \
    return TRIANGLE_CALL(T, routine, std::int64_t{0}, std::int64_t{0});     \
  }
#define ROUTINE_trmv(name, T, R) TRIANGLE_WHOLE(trmv, name, T)
#define ROUTINE_tbmv(name, T, R) TRIANGLE_BAND(tbmv, name, T)
#define ROUTINE_tpmv(name, T, R) TRIANGLE_PACKED(tpmv, name, T)
#define ROUTINE_trsv(name, T, R) TRIANGLE_WHOLE(trsv, name, T)
#define ROUTINE_tbsv(name, T, R) TRIANGLE_BAND(tbsv, name, T)
#define ROUTINE_tpsv(name, T, R) TRIANGLE_PACKED(tpsv, name, T)

#define RANK_1(routine, name, T)                                                                                                          \
  cublasStatus_t name(HEAD, std::int64_t m, std::int64_t n, const T* alpha, const T* x, std::int64_t incx, const T* y, std::int64_t incy, \
                      T* a, std::int64_t lda) {                                                                                           \
    if (!reaches(lda, CUBLAS_OP_N, m, n)) return CUBLAS_STATUS_INVALID_VALUE;                                                             \
    return run<T>(handle, blas_##routine, column_major, m, n, read(handle, alpha), x, incx, y, incy, a, lda);                             \
  }
#define ROUTINE_ger(name, T, R) RANK_1(ger, name, T)
#define ROUTINE_geru(name, T, R) RANK_1(geru, name, T)
#define ROUTINE_gerc(name, T, R) RANK_1(gerc, name, T)
#define UPDATE_HEAD(T, S) HEAD, cublasFillMode_t fill, std::int64_t n, const S *alpha, const T *x, std::int64_t incx
#define UPDATE_CALL(T, routine, y, incy, lda) \
  run<T>(handle, blas_##routine, column_major, uplo(fill), n, read(handle, alpha), x, incx, y, incy, a, lda)
#define NO_VECTOR(T)                             \
  static_cast<const T*>(nullptr), std::int64_t { \
    1                                            \
  }
#define UPDATE_WHOLE(routine, name, T, S)                          \
  cublasStatus_t name(UPDATE_HEAD(T, S), T* a, std::int64_t lda) { \
    return UPDATE_CALL_1(T, routine, lda);                         \
  }
#define UPDATE_PACKED(routine, name, T, S)             \
  cublasStatus_t name(UPDATE_HEAD(T, S), T* a) {       \
    return UPDATE_CALL_1(T, routine, std::int64_t{0}); \
  }
#define UPDATE_CALL_1(T, routine, lda) \
  run<T>(handle, blas_##routine, column_major, uplo(fill), n, read(handle, alpha), x, incx, NO_VECTOR(T), a, lda)
#define ROUTINE_syr(name, T, R) UPDATE_WHOLE(syr, name, T, T)
#define ROUTINE_her(name, T, R) UPDATE_WHOLE(her, name, T, R)
#define ROUTINE_spr(name, T, R) UPDATE_PACKED(spr, name, T, T)
#define ROUTINE_hpr(name, T, R) UPDATE_PACKED(hpr, name, T, R)
#define UPDATE_2_WHOLE(routine, name, T)                                                          \
  cublasStatus_t name(UPDATE_HEAD(T, T), const T* y, std::int64_t incy, T* a, std::int64_t lda) { \
    return UPDATE_CALL(T, routine, y, incy, lda);                                                 \
  }
#define UPDATE_2_PACKED(routine, name, T)                                       \
  cublasStatus_t name(UPDATE_HEAD(T, T), const T* y, std::int64_t incy, T* a) { \
    return UPDATE_CALL(T, routine, y, incy, std::int64_t{0});                   \
  }
#define ROUTINE_syr2(name, T, R) UPDATE_2_WHOLE(syr2, name, T)
#define ROUTINE_her2(name, T, R) UPDATE_2_WHOLE(her2, name, T)
#define ROUTINE_spr2(name, T, R) UPDATE_2_PACKED(spr2, name, T)
#define ROUTINE_hpr2(name, T, R) UPDATE_2_PACKED(hpr2, name, T)

#define ROUTINE_gemm(name, T, R)                                                                                                         \
  cublasStatus_t name(HEAD, cublasOperation_t ta, cublasOperation_t tb, std::int64_t m, std::int64_t n, std::int64_t k, const T* alpha,  \
                      const T* a, std::int64_t lda, const T* b, std::int64_t ldb, const T* beta, T* c, std::int64_t ldc) {               \
    if (!is_product(ta, tb, m, n, k, lda, ldb, ldc)) return CUBLAS_STATUS_INVALID_VALUE;                                                 \
    return run<T>(handle, blas_gemm, column_major, std::uint32_t{0}, trans(ta), trans(tb), m, n, k, read(handle, alpha), a, lda, b, ldb, \
                  read(handle, beta), c, ldc);                                                                                           \
  }
#define SYMMETRIC_PRODUCT(routine, name, T)                                                                                           \
  cublasStatus_t name(HEAD, cublasSideMode_t mode, cublasFillMode_t fill, std::int64_t m, std::int64_t n, const T* alpha, const T* a, \
                      std::int64_t lda, const T* b, std::int64_t ldb, const T* beta, T* c, std::int64_t ldc) {                        \
    NOT_WITH_ZERO(alpha)                                                                                                              \
    return run<T>(handle, blas_##routine, column_major, side(mode), uplo(fill), m, n, read(handle, alpha), a, lda, b, ldb,            \
                  read(handle, beta), c, ldc);                                                                                        \
  }
#define ROUTINE_symm(name, T, R) SYMMETRIC_PRODUCT(symm, name, T)
#define ROUTINE_hemm(name, T, R) SYMMETRIC_PRODUCT(hemm, name, T)
#define RANK_K(routine, name, T, S)                                                                                                  \
  cublasStatus_t name(HEAD, cublasFillMode_t fill, cublasOperation_t op, std::int64_t n, std::int64_t k, const S* alpha, const T* a, \
                      std::int64_t lda, const S* beta, T* c, std::int64_t ldc) {                                                     \
    if (!known(op) || !reaches(lda, op, n, k)) return CUBLAS_STATUS_INVALID_VALUE;                                                   \
    if (k > 0) {                                                                                                                     \
      NOT_WITH_ZERO(alpha)                                                                                                           \
    }                                                                                                                                \
    return run<T>(handle, blas_##routine, column_major, uplo(fill), trans(op), n, k, read(handle, alpha), a, lda,                    \
                  static_cast<const T*>(nullptr), std::int64_t{1}, read(handle, beta), c, ldc);                                      \
  }
#define ROUTINE_syrk(name, T, R) RANK_K(syrk, name, T, T)
#define ROUTINE_herk(name, T, R) RANK_K(herk, name, T, R)
#define RANK_2K(routine, name, T, S)                                                                                                 \
  cublasStatus_t name(HEAD, cublasFillMode_t fill, cublasOperation_t op, std::int64_t n, std::int64_t k, const T* alpha, const T* a, \
                      std::int64_t lda, const T* b, std::int64_t ldb, const S* beta, T* c, std::int64_t ldc) {                       \
    if (!known(op) || !reaches(lda, op, n, k) || !reaches(ldb, op, n, k)) return CUBLAS_STATUS_INVALID_VALUE;                        \
    if (k > 0) {                                                                                                                     \
      NOT_WITH_ZERO(alpha)                                                                                                           \
    }                                                                                                                                \
    return run<T>(handle, blas_##routine, column_major, uplo(fill), trans(op), n, k, read(handle, alpha), a, lda, b, ldb,            \
                  read(handle, beta), c, ldc);                                                                                       \
  }
#define ROUTINE_syr2k(name, T, R) RANK_2K(syr2k, name, T, T)
#define ROUTINE_her2k(name, T, R) RANK_2K(her2k, name, T, R)
#define TRIANGLE_ARGUMENTS \
  HEAD, cublasSideMode_t mode, cublasFillMode_t fill, cublasOperation_t op, cublasDiagType_t unit, std::int64_t m, std::int64_t n
#define ROUTINE_trmm(name, T, R)                                                                                                        \
  cublasStatus_t name(TRIANGLE_ARGUMENTS, const T* alpha, const T* a, std::int64_t lda, const T* b, std::int64_t ldb, T* c,             \
                      std::int64_t ldc) {                                                                                               \
    if (!known(op)) return CUBLAS_STATUS_INVALID_VALUE;                                                                                 \
    if (b != c || ldb != ldc) return CUBLAS_STATUS_NOT_SUPPORTED; /* by the emulation: the backend does not need it */                  \
    return run<T>(handle, blas_trmm, column_major, side(mode), uplo(fill), trans(op), diag(unit), m, n, read(handle, alpha), a, lda, c, \
                  ldc);                                                                                                                 \
  }
#define ROUTINE_trsm(name, T, R)                                                                                                        \
  cublasStatus_t name(TRIANGLE_ARGUMENTS, const T* alpha, const T* a, std::int64_t lda, T* b, std::int64_t ldb) {                       \
    if (!known(op)) return CUBLAS_STATUS_INVALID_VALUE;                                                                                 \
    NOT_WITH_ZERO(alpha)                                                                                                                \
    return run<T>(handle, blas_trsm, column_major, side(mode), uplo(fill), trans(op), diag(unit), m, n, read(handle, alpha), a, lda, b, \
                  ldb);                                                                                                                 \
  }
#define ROUTINE_geam(name, T, R)                                                                                                           \
  cublasStatus_t name(HEAD, cublasOperation_t ta, cublasOperation_t tb, std::int64_t m, std::int64_t n, const T* alpha, const T* a,        \
                      std::int64_t lda, const T* beta, const T* b, std::int64_t ldb, T* c, std::int64_t ldc) {                             \
    if (!known(ta) || !known(tb) || !reaches(lda, ta, m, n) || !reaches(ldb, tb, m, n) || !reaches(ldc, CUBLAS_OP_N, m, n) ||              \
        (a == c && (ta != CUBLAS_OP_N || lda != ldc)) || (b == c && (tb != CUBLAS_OP_N || ldb != ldc))) {                                  \
      return CUBLAS_STATUS_INVALID_VALUE;                                                                                                  \
    }                                                                                                                                      \
    return run<T>(handle, blas_geam, column_major, trans(ta), trans(tb), m, n, read(handle, alpha), a, lda, read(handle, beta), b, ldb, c, \
                  ldc);                                                                                                                    \
  }
#define ROUTINE_dgmm(name, T, R)                                                                                     \
  cublasStatus_t name(HEAD, cublasSideMode_t mode, std::int64_t m, std::int64_t n, A_X(T), T* c, std::int64_t ldc) { \
    return run<T>(handle, blas_dgmm, column_major, side(mode), m, n, a, lda, x, incx, c, ldc);                       \
  }
#define ROUTINE_gemm_batched(name, T, R)                                                                                                \
  cublasStatus_t name(HEAD, cublasOperation_t ta, cublasOperation_t tb, std::int64_t m, std::int64_t n, std::int64_t k, const T* alpha, \
                      const T* const a[], std::int64_t lda, const T* const b[], std::int64_t ldb, const T* beta, T* const c[],          \
                      std::int64_t ldc, std::int64_t batch) {                                                                           \
    if (k > 0) {                                                                                                                        \
      NOT_WITH_ZERO(alpha)                                                                                                              \
    }                                                                                                                                   \
    return run_batched(handle, ta, tb, m, n, k, read(handle, alpha), a, lda, b, ldb, read(handle, beta), c, ldc, batch);                \
  }
#define ROUTINE_gemm_strided_batched(name, T, R)                                                                                         \
  cublasStatus_t name(HEAD, cublasOperation_t ta, cublasOperation_t tb, std::int64_t m, std::int64_t n, std::int64_t k, const T* alpha,  \
                      const T* a, std::int64_t lda, long long stride_a, const T* b, std::int64_t ldb, long long stride_b, const T* beta, \
                      T* c, std::int64_t ldc, long long stride_c, std::int64_t batch) {                                                  \
    if (!is_product(ta, tb, m, n, k, lda, ldb, ldc)) return CUBLAS_STATUS_INVALID_VALUE;                                                 \
    return run<T>(handle, blas_gemm_strided_batched, column_major, trans(ta), trans(tb), m, n, k, read(handle, alpha), a, lda,           \
                  static_cast<std::int64_t>(stride_a), b, ldb, static_cast<std::int64_t>(stride_b), read(handle, beta), c, ldc,          \
                  static_cast<std::int64_t>(stride_c), batch);                                                                           \
  }

#define FOUR(routine, S, D, C, Z)                                                                                \
  ROUTINE_##routine(S, float, float) ROUTINE_##routine(D, double, double) ROUTINE_##routine(C, cuComplex, float) \
      ROUTINE_##routine(Z, cuDoubleComplex, double)
#define REAL(routine, S, D) ROUTINE_##routine(S, float, float) ROUTINE_##routine(D, double, double)
#define COMPLEX(routine, C, Z) ROUTINE_##routine(C, cuComplex, float) ROUTINE_##routine(Z, cuDoubleComplex, double)
TENON_CUBLAS_ROUTINES(FOUR, REAL, COMPLEX)

}  // extern "C"
#pragma GCC visibility pop
