// SPDX-License-Identifier: Apache-2.0
// tenon/blas.h - BLAS levels 1 to 3 on any backend that offers it, on device addresses or on
// tensors.
//
//   const blas::Queue queue = context.default_device();
//   blas::gemm<float>(queue, {.m = 2, .n = 3, .k = 4,
//                             .a = a, .lda = 4, .b = b, .ldb = 3, .c = c, .ldc = 3});
//   blas::gemm(queue, 1.0, a, b.transpose(0, 1), 0.0, c);
//
// The routines are those of tenon/blas.def. They have the names of the reference BLAS without the
// type letter; the template argument T takes its place: float, double, std::complex<float>,
// std::complex<double>.
//
// Errors   ArgumentError by the rules of the reference BLAS and also for: a NULL address where
//          something would be read or written, an increment of 0 for a vector that is written, a
//          negative size or increment where the reference returns silently, an address off the
//          alignment that the device needs. UNSUPPORTED if the backend has no BLAS, lacks the
//          routine, or does not support the dtype or size. Otherwise the backend's error.
// Threads  one call at a time per queue. On a CPU device, whose calls are done when they return,
//          calls may run concurrently.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include <tenon/api.h>
#include <tenon/backend.h>
#include <tenon/config.h>
#include <tenon/context.h>
#include <tenon/run_options.h>
#include <tenon/stream.h>
#include <tenon/tensor.h>

namespace tenon::exec {
class RunContext;
}

namespace tenon::blas {

enum class Layout : std::uint32_t {
  row_major = TENON_LAYOUT_ROW_MAJOR,
  column_major = TENON_LAYOUT_COLUMN_MAJOR
};
/// The form in which a matrix operand is used: as it is, transposed, conjugate transposed, or
/// conjugated.
enum class Op : std::uint32_t {
  none = TENON_NO_TRANS,
  trans = TENON_TRANS,
  conj_trans = TENON_CONJ_TRANS,
  conj = TENON_CONJ_NO_TRANS
};
/// The triangle of a matrix that is stored.
enum class Uplo : std::uint32_t { upper = TENON_UPPER, lower = TENON_LOWER };
/// Whether the diagonal is stored or is all ones.
enum class Diag : std::uint32_t { non_unit = TENON_NON_UNIT, unit = TENON_UNIT };
/// The side on which the structured matrix (symmetric, triangular, diagonal) stands in a product.
enum class Side : std::uint32_t { left = TENON_LEFT, right = TENON_RIGHT };

/// A routine of tenon/blas.def.
enum class Routine : std::uint32_t {
#define TENON_BLAS(id, routine, level, signature, dtypes) routine = id,
#include <tenon/blas.def>
#undef TENON_BLAS
};
/// The name as in blas.def: "gemm".
TENON_API const char* name_of(Routine routine);

/// A wrong argument, with its name and 1-based position in the reference BLAS's Fortran interface
/// if it has one there. The text states what was expected and what was given.
class TENON_API ArgumentError : public Error {
 public:
  /// `argument` is a word of arguments_of(routine), or "layout". The message is made of it and
  /// `text`.
  ArgumentError(Routine routine, const char* argument, const std::string& text);
  /// The routine that was called.
  Routine routine() const { return routine_; }
  /// The name of the argument: "lda".
  const char* argument() const { return argument_; }
  /// The 1-based position of the argument; 0 for one that the reference interface lacks (layout).
  int position() const { return position_; }

 private:
  Routine routine_;
  const char* argument_;
  int position_;
};
/// The arguments of a routine in the order of the reference's Fortran interface, separated by one
/// space: "n alpha x incx y incy".
TENON_API const char* arguments_of(Routine routine);
/// The formula that a routine computes: "y = alpha x + y".
TENON_API const char* formula_of(Routine routine);

/// How the calls of a queue compute. What is not given is as in the configuration of the device's
/// context.
struct QueueOptions {
  /// f32 and c64 products of level 3: with float32 in full, with the others also as TF32. Other
  /// routines always compute in full.
  std::optional<Precision> precision = std::nullopt;
  /// The same bits at every call on the same device, whatever the number of threads.
  std::optional<bool> deterministic = std::nullopt;
  /// What each call may use of the process. After a stop request, calls are refused with
  /// Status::cancelled before they have any effect; one that is being computed finishes.
  RunOptions run = {};
};

/// A device and a stream on it, which BLAS calls are submitted to. A handle: copies refer to the
/// same queue. A backend that cannot honour the options refuses calls with UNSUPPORTED.
class TENON_API Queue {
 public:
  /// The stream on which the device's programs run. Implicit, so that a device can be passed as a
  /// queue.
  Queue(const Device& device, const QueueOptions& options = {});
  /// Another stream of a device.
  Queue(const Stream& stream, const QueueOptions& options = {});
  /// The device that calls run on.
  const Device& device() const { return device_; }
  /// Blocks until all submitted calls have finished. Errors: the first failure since the last call
  /// of synchronize().
  void synchronize() const;
  /// For the runtime's own use: what all calls have in common; the dtype is not set.
  const tenon_blas_call& call() const { return call_; }
  /// For the runtime's own use; null if the backend has no BLAS.
  const tenon_blas_table* table() const { return table_; }
  /// For the runtime's own use.
  bool cancelled() const;

 private:
  Device device_;
  std::optional<Stream> stream_;
  /// what call_.run points into; null: the defaults
  std::shared_ptr<const exec::RunContext> run_;
  tenon_blas_call call_{};
  const tenon_blas_table* table_ = nullptr;
};

/// True if the queue's backend implements the routine.
TENON_API bool offers(const Queue& queue, Routine routine);
/// True if it does so for operands of this dtype.
TENON_API bool offers(const Queue& queue, Routine routine, DType dtype);

/// Implements Real.
template <class T>
struct RealOf {
  using Type = T;  ///< the real type
};
/// Implements Real for complex types.
template <class T>
struct RealOf<std::complex<T>> {
  using Type = T;  ///< the real type
};
/// float for float and std::complex<float>, double for the others.
template <class T>
using Real = typename RealOf<T>::Type;

/// A scalar argument: a host value, or a device address that is read in stream order.
template <class T>
class Scalar {
 public:
  /// A host value.
  Scalar(T value = T(0)) : value_(value) {}
  /// A host value of another type, rounded to T.
  template <class V>
  requires(!std::is_same_v<V, T> && std::is_convertible_v<V, T>) Scalar(V value)
      : value_(static_cast<T>(value)) {}
  /// The value at a device address.
  static Scalar on_device(const T* address) {
    Scalar scalar;
    scalar.address_ = address;
    return scalar;
  }
  /// The ABI's struct; it points into this object.
  tenon_scalar abi_scalar() const {
    return {static_cast<std::uint64_t>(
                reinterpret_cast<std::uintptr_t>(address_ != nullptr ? address_ : &value_)),
            address_ != nullptr ? 1U : 0U, 0};
  }
  /// The host value; null if the scalar is on the device.
  const T* value() const { return address_ != nullptr ? nullptr : &value_; }

 private:
  T value_{};
  const T* address_ = nullptr;
};

/// A destination for a scalar result: host memory, written before the call returns, or device
/// memory, written in stream order.
template <class R>
class Result {
 public:
  Result() = default;
  /// Writes to host memory.
  Result(R* host) : address_(host) {}
  /// Writes to device memory.
  static Result on_device(R* address) {
    Result result(address);
    result.on_device_ = true;
    return result;
  }
  /// The ABI's struct.
  tenon_scalar abi_scalar() const {
    return {static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address_)),
            on_device_ ? 1U : 0U, 0};
  }
  /// The destination; null if there is none.
  R* address() const { return address_; }

 private:
  R* address_ = nullptr;
  bool on_device_ = false;
};

/// The arguments of each signature class of tenon/blas.def, by name. Pointers are addresses in
/// device memory and are not dereferenced here; on a CPU they are host pointers. Sizes, increments
/// and leading dimensions count elements. Element i of a vector is x[i * incx]; with a negative
/// increment, x still points to the start of the array and element 0 is its last. Fields that a
/// routine lacks are ignored.
namespace arguments {

/// rotg: (a, b) -> r in a, z in b, c real, s with [c s; -conj(s) c] [a; b] = [r; 0].
template <class T>
struct rotg {
  T *a = nullptr, *b = nullptr;
  Real<T>* c = nullptr;
  T* s = nullptr;
  bool on_device = false;  ///< a, b, c and s are in device memory
};
/// rotmg: the modified rotation that maps (sqrt(d1) x1, sqrt(d2) y1) to (r, 0); param holds flag,
/// h11, h21, h12, h22.
template <class T>
struct rotmg {
  T *d1 = nullptr, *d2 = nullptr, *x1 = nullptr;
  const T* y1 = nullptr;
  T* param = nullptr;
  bool on_device = false;
};
/// rot: x, y = c x + s y, c y - conj(s) x.
template <class T>
struct rot {
  std::int64_t n = 0;
  T* x = nullptr;
  std::int64_t incx = 1;
  T* y = nullptr;
  std::int64_t incy = 1;
  Scalar<Real<T>> c = Real<T>(1);
  Scalar<T> s = T(0);
};
/// rotm: applies the rotation that rotmg computed; param has 5 elements.
template <class T>
struct rotm {
  std::int64_t n = 0;
  T* x = nullptr;
  std::int64_t incx = 1;
  T* y = nullptr;
  std::int64_t incy = 1;
  const T* param = nullptr;
  bool on_device = false;  ///< param is in device memory
};
/// swap: x, y = y, x. copy: y = x; x is only read.
template <class T>
struct xy {
  std::int64_t n = 0;
  T* x = nullptr;
  std::int64_t incx = 1;
  T* y = nullptr;
  std::int64_t incy = 1;
};
/// scal: x = alpha x. rscal: alpha is real; its imaginary part is ignored.
template <class T>
struct scal {
  std::int64_t n = 0;
  Scalar<T> alpha = T(1);
  T* x = nullptr;
  std::int64_t incx = 1;
};
/// axpy: y = alpha x + y.
template <class T>
struct axpy {
  std::int64_t n = 0;
  Scalar<T> alpha = T(1);
  const T* x = nullptr;
  std::int64_t incx = 1;
  T* y = nullptr;
  std::int64_t incy = 1;
};
/// axpby: y = alpha x + beta y.
template <class T>
struct axpby {
  std::int64_t n = 0;
  Scalar<T> alpha = T(1);
  const T* x = nullptr;
  std::int64_t incx = 1;
  Scalar<T> beta = T(0);
  T* y = nullptr;
  std::int64_t incy = 1;
};
/// dot, dotu: x'y. dotc: conj(x)'y. sdsdot: alpha + x'y, summed in f64. dsdot: x'y of f32 vectors
/// in f64, written to result_f64.
template <class T>
struct dot {
  std::int64_t n = 0;
  Scalar<T> alpha = T(0);  ///< sdsdot
  const T* x = nullptr;
  std::int64_t incx = 1;
  const T* y = nullptr;
  std::int64_t incy = 1;
  Result<T> result = {};
  Result<double> result_f64 = {};
};
/// nrm2: sqrt(sum |x|^2) without overflow or underflow. asum: sum |re x| + |im x|. iamax, iamin:
/// the first 0-based index of the largest or smallest |re x| + |im x|, -1 for n = 0, written to
/// index.
template <class T>
struct reduce {
  std::int64_t n = 0;
  const T* x = nullptr;
  std::int64_t incx = 1;
  Result<Real<T>> result = {};
  Result<std::int64_t> index = {};
};
/// gemv: y = alpha op(A) x + beta y, A (m, n). gbmv: A has kl diagonals below and ku above the main
/// one.
template <class T>
struct gemv {
  Layout layout = Layout::row_major;
  Op trans = Op::none;
  std::int64_t m = 0, n = 0, kl = 0, ku = 0;
  Scalar<T> alpha = T(1);
  const T* a = nullptr;
  std::int64_t lda = 0;
  const T* x = nullptr;
  std::int64_t incx = 1;
  Scalar<T> beta = T(0);
  T* y = nullptr;
  std::int64_t incy = 1;
};
/// symv, hemv: y = alpha A x + beta y, A (n, n). sbmv, hbmv: k diagonals above or below the main
/// one. spmv, hpmv: A packed, lda unused.
template <class T>
struct symv {
  Layout layout = Layout::row_major;
  Uplo uplo = Uplo::upper;
  std::int64_t n = 0, k = 0;
  Scalar<T> alpha = T(1);
  const T* a = nullptr;
  std::int64_t lda = 0;
  const T* x = nullptr;
  std::int64_t incx = 1;
  Scalar<T> beta = T(0);
  T* y = nullptr;
  std::int64_t incy = 1;
};
/// trmv, tbmv, tpmv: x = op(A) x, A (n, n) triangular; banded with k diagonals; packed. trsv, tbsv,
/// tpsv: x = op(A)^-1 x.
template <class T>
struct trmv {
  Layout layout = Layout::row_major;
  Uplo uplo = Uplo::upper;
  Op trans = Op::none;
  Diag diag = Diag::non_unit;
  std::int64_t n = 0, k = 0;
  const T* a = nullptr;
  std::int64_t lda = 0;
  T* x = nullptr;
  std::int64_t incx = 1;
};
/// ger, geru: A = alpha x y' + A, A (m, n). gerc: A = alpha x conj(y)' + A.
template <class T>
struct ger {
  Layout layout = Layout::row_major;
  std::int64_t m = 0, n = 0;
  Scalar<T> alpha = T(1);
  const T* x = nullptr;
  std::int64_t incx = 1;
  const T* y = nullptr;
  std::int64_t incy = 1;
  T* a = nullptr;
  std::int64_t lda = 0;
};
/// syr, spr: A = alpha x x' + A. her, hpr: A = alpha x conj(x)' + A, alpha real. syr2, spr2: A =
/// alpha (x y' + y x') + A. her2, hpr2: A = alpha x conj(y)' + conj(alpha) y conj(x)' + A. Only the
/// stored triangle of A is touched.
template <class T>
struct syr {
  Layout layout = Layout::row_major;
  Uplo uplo = Uplo::upper;
  std::int64_t n = 0;
  Scalar<T> alpha = T(1);
  const T* x = nullptr;
  std::int64_t incx = 1;
  const T* y = nullptr;
  std::int64_t incy = 1;
  T* a = nullptr;
  std::int64_t lda = 0;
};
/// gemm: C = alpha op(A) op(B) + beta C, C (m, n), op(A) (m, k). gemmt: only the triangle `uplo` of
/// a square C; m is not read.
template <class T>
struct gemm {
  Layout layout = Layout::row_major;
  Uplo uplo = Uplo::upper;
  Op trans_a = Op::none, trans_b = Op::none;
  std::int64_t m = 0, n = 0, k = 0;
  Scalar<T> alpha = T(1);
  const T* a = nullptr;
  std::int64_t lda = 0;
  const T* b = nullptr;
  std::int64_t ldb = 0;
  Scalar<T> beta = T(0);
  T* c = nullptr;
  std::int64_t ldc = 0;
};
/// symm, hemm: C = alpha A B + beta C (side left) or alpha B A + beta C, C (m, n).
template <class T>
struct symm {
  Layout layout = Layout::row_major;
  Side side = Side::left;
  Uplo uplo = Uplo::upper;
  std::int64_t m = 0, n = 0;
  Scalar<T> alpha = T(1);
  const T* a = nullptr;
  std::int64_t lda = 0;
  const T* b = nullptr;
  std::int64_t ldb = 0;
  Scalar<T> beta = T(0);
  T* c = nullptr;
  std::int64_t ldc = 0;
};
/// syrk: C = alpha A A' + beta C (trans none), alpha A' A + beta C (trans). herk: conj(A)' for A';
/// alpha and beta are real, imaginary parts are ignored. syr2k: alpha (A B' + B A') + beta C.
/// her2k: alpha A conj(B)' + conj(alpha) B conj(A)' + beta C, beta real. C is (n, n), only its
/// triangle `uplo` is used; op(A) is (n, k).
template <class T>
struct syrk {
  Layout layout = Layout::row_major;
  Uplo uplo = Uplo::upper;
  Op trans = Op::none;
  std::int64_t n = 0, k = 0;
  Scalar<T> alpha = T(1);
  const T* a = nullptr;
  std::int64_t lda = 0;
  const T* b = nullptr;
  std::int64_t ldb = 0;
  Scalar<T> beta = T(0);
  T* c = nullptr;
  std::int64_t ldc = 0;
};
/// trmm: B = alpha op(A) B (side left) or alpha B op(A), A triangular. trsm: with op(A)^-1. B (m,
/// n).
template <class T>
struct trmm {
  Layout layout = Layout::row_major;
  Side side = Side::left;
  Uplo uplo = Uplo::upper;
  Op trans = Op::none;
  Diag diag = Diag::non_unit;
  std::int64_t m = 0, n = 0;
  Scalar<T> alpha = T(1);
  const T* a = nullptr;
  std::int64_t lda = 0;
  T* b = nullptr;
  std::int64_t ldb = 0;
};
/// geam: C = alpha op(A) + beta op(B), C (m, n). C may be A or B if that operand is not transposed.
template <class T>
struct geam {
  Layout layout = Layout::row_major;
  Op trans_a = Op::none, trans_b = Op::none;
  std::int64_t m = 0, n = 0;
  Scalar<T> alpha = T(1);
  const T* a = nullptr;
  std::int64_t lda = 0;
  Scalar<T> beta = T(0);
  const T* b = nullptr;  ///< may be NULL if beta is 0
  std::int64_t ldb = 0;
  T* c = nullptr;
  std::int64_t ldc = 0;
};
/// dgmm: C = diag(x) A (side left) or A diag(x), C (m, n).
template <class T>
struct dgmm {
  Layout layout = Layout::row_major;
  Side side = Side::left;
  std::int64_t m = 0, n = 0;
  const T* a = nullptr;
  std::int64_t lda = 0;
  const T* x = nullptr;
  std::int64_t incx = 1;
  T* c = nullptr;
  std::int64_t ldc = 0;
};
/// gemm on each of `batch` triples of matrices; a, b and c are host arrays of device addresses.
template <class T>
struct gemm_batched {
  Layout layout = Layout::row_major;
  Op trans_a = Op::none, trans_b = Op::none;
  std::int64_t m = 0, n = 0, k = 0;
  Scalar<T> alpha = T(1);
  const std::uint64_t* a = nullptr;
  std::int64_t lda = 0;
  const std::uint64_t* b = nullptr;
  std::int64_t ldb = 0;
  Scalar<T> beta = T(0);
  const std::uint64_t* c = nullptr;
  std::int64_t ldc = 0;
  std::int64_t batch = 0;
};
/// gemm on a + i stride_a, b + i stride_b, c + i stride_c, 0 <= i < batch.
template <class T>
struct gemm_strided_batched {
  Layout layout = Layout::row_major;
  Op trans_a = Op::none, trans_b = Op::none;
  std::int64_t m = 0, n = 0, k = 0;
  Scalar<T> alpha = T(1);
  const T* a = nullptr;
  std::int64_t lda = 0, stride_a = 0;
  const T* b = nullptr;
  std::int64_t ldb = 0, stride_b = 0;
  Scalar<T> beta = T(0);
  T* c = nullptr;
  std::int64_t ldc = 0, stride_c = 0;
  std::int64_t batch = 0;
};

}  // namespace arguments

// Every routine of tenon/blas.def as blas::<routine><T>(queue, arguments), for the dtypes of its
// line.
#define TENON_BLAS(id, routine, level, signature, dtypes) \
  template <class T>                                      \
  TENON_API void routine(const Queue& queue, const arguments::signature<T>& arguments);
#include <tenon/blas.def>
#undef TENON_BLAS

// ---------------------------------------------------------------- on tensors
//
// Vectors are tensors of rank 1 with any stride; matrices are tensors of rank 2 whose rows or
// columns are contiguous. Sizes, increments, layouts and transpositions are derived from the views:
// a.transpose(0, 1) stands for A'. Outputs are views as well; their elements are written. Band
// storage has no view: use the calls on addresses.
//
// Dtypes   f32, f64, c64, c128, the same for all operands, as listed for the routine in
//          tenon/blas.def.
// Errors   also: shapes that do not match, strides that BLAS cannot express (use contiguous()),
//          memory that the queue's device cannot reach (use to()). Scalars are rounded to the
//          dtype; an imaginary part is an error where the scalar must be real.

using Number = std::complex<double>;

TENON_API void swap(const Queue& queue, const Tensor& x, const Tensor& y);
TENON_API void copy(const Queue& queue, const Tensor& x, const Tensor& y);
/// Calls rscal for a complex x and a real alpha.
TENON_API void scal(const Queue& queue, Number alpha, const Tensor& x);
TENON_API void axpy(const Queue& queue, Number alpha, const Tensor& x, const Tensor& y);
TENON_API void axpby(const Queue& queue, Number alpha, const Tensor& x, Number beta,
                     const Tensor& y);
/// c is real.
TENON_API void rot(const Queue& queue, const Tensor& x, const Tensor& y, double c, Number s);

// Results are tensors of rank 0 that stay on the queue's device; item() brings a real one to the
// host.
/// x'y; calls dotu for complex tensors.
TENON_API Tensor dot(const Queue& queue, const Tensor& x, const Tensor& y);
/// conj(x)'y; calls dot for real tensors.
TENON_API Tensor dotc(const Queue& queue, const Tensor& x, const Tensor& y);
/// x'y of f32 vectors, summed and returned in f64.
TENON_API Tensor dsdot(const Queue& queue, const Tensor& x, const Tensor& y);
TENON_API Tensor nrm2(const Queue& queue, const Tensor& x);
TENON_API Tensor asum(const Queue& queue, const Tensor& x);
/// The 0-based index as i64; -1 for an empty x.
TENON_API Tensor iamax(const Queue& queue, const Tensor& x);
TENON_API Tensor iamin(const Queue& queue, const Tensor& x);

TENON_API void gemv(const Queue& queue, Number alpha, const Tensor& a, const Tensor& x, Number beta,
                    const Tensor& y, Op trans = Op::none);
/// Calls geru for complex tensors.
TENON_API void ger(const Queue& queue, Number alpha, const Tensor& x, const Tensor& y,
                   const Tensor& a);
TENON_API void gerc(const Queue& queue, Number alpha, const Tensor& x, const Tensor& y,
                    const Tensor& a);
TENON_API void symv(const Queue& queue, Uplo uplo, Number alpha, const Tensor& a, const Tensor& x,
                    Number beta, const Tensor& y);
TENON_API void hemv(const Queue& queue, Uplo uplo, Number alpha, const Tensor& a, const Tensor& x,
                    Number beta, const Tensor& y);
TENON_API void trmv(const Queue& queue, Uplo uplo, const Tensor& a, const Tensor& x,
                    Op trans = Op::none, Diag diag = Diag::non_unit);
TENON_API void trsv(const Queue& queue, Uplo uplo, const Tensor& a, const Tensor& x,
                    Op trans = Op::none, Diag diag = Diag::non_unit);
TENON_API void syr(const Queue& queue, Uplo uplo, Number alpha, const Tensor& x, const Tensor& a);
TENON_API void her(const Queue& queue, Uplo uplo, double alpha, const Tensor& x, const Tensor& a);
TENON_API void syr2(const Queue& queue, Uplo uplo, Number alpha, const Tensor& x, const Tensor& y,
                    const Tensor& a);
TENON_API void her2(const Queue& queue, Uplo uplo, Number alpha, const Tensor& x, const Tensor& y,
                    const Tensor& a);

TENON_API void gemm(const Queue& queue, Number alpha, const Tensor& a, const Tensor& b, Number beta,
                    const Tensor& c, Op trans_a = Op::none, Op trans_b = Op::none);
TENON_API void gemmt(const Queue& queue, Uplo uplo, Number alpha, const Tensor& a, const Tensor& b,
                     Number beta, const Tensor& c, Op trans_a = Op::none, Op trans_b = Op::none);
/// B must have the layout (row- or column-major) of C.
TENON_API void symm(const Queue& queue, Side side, Uplo uplo, Number alpha, const Tensor& a,
                    const Tensor& b, Number beta, const Tensor& c);
/// A and B must have the layout of C.
TENON_API void hemm(const Queue& queue, Side side, Uplo uplo, Number alpha, const Tensor& a,
                    const Tensor& b, Number beta, const Tensor& c);
/// C = alpha A A' + beta C; A' A is a.transpose(0, 1).
TENON_API void syrk(const Queue& queue, Uplo uplo, Number alpha, const Tensor& a, Number beta,
                    const Tensor& c);
/// A must have the layout of C. Op::conj_trans: conj(A)' A.
TENON_API void herk(const Queue& queue, Uplo uplo, double alpha, const Tensor& a, double beta,
                    const Tensor& c, Op trans = Op::none);
/// A and B must have the same layout.
TENON_API void syr2k(const Queue& queue, Uplo uplo, Number alpha, const Tensor& a, const Tensor& b,
                     Number beta, const Tensor& c);
/// A and B must have the layout of C.
TENON_API void her2k(const Queue& queue, Uplo uplo, Number alpha, const Tensor& a, const Tensor& b,
                     double beta, const Tensor& c, Op trans = Op::none);
TENON_API void trmm(const Queue& queue, Side side, Uplo uplo, Number alpha, const Tensor& a,
                    const Tensor& b, Op trans = Op::none, Diag diag = Diag::non_unit);
TENON_API void trsm(const Queue& queue, Side side, Uplo uplo, Number alpha, const Tensor& a,
                    const Tensor& b, Op trans = Op::none, Diag diag = Diag::non_unit);
TENON_API void geam(const Queue& queue, Number alpha, const Tensor& a, Number beta, const Tensor& b,
                    const Tensor& c, Op trans_a = Op::none, Op trans_b = Op::none);
/// A must have the layout of C.
TENON_API void dgmm(const Queue& queue, Side side, const Tensor& a, const Tensor& x,
                    const Tensor& c);
/// Multiplies the matrices a[i], b[i], c[i] of tensors of rank 3; an expanded a or b is one matrix
/// for all i.
TENON_API void gemm_strided_batched(const Queue& queue, Number alpha, const Tensor& a,
                                    const Tensor& b, Number beta, const Tensor& c,
                                    Op trans_a = Op::none, Op trans_b = Op::none);

}  // namespace tenon::blas
