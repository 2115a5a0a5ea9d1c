// SPDX-License-Identifier: Apache-2.0
// blas/routine.h - how this backend implements a routine of blas.def: a function template over the fields of its record, and a
// line that registers it.
//
//   template <class T>
//   void axpy(Queue& q, std::int64_t n, Scalar<T> alpha, const T* x, std::int64_t incx, T* y, std::int64_t incy) {
//     q.call<T>(q.cublas.axpy, n, alpha, x, incx, y, incy);
//   }
//   TENON_CUDA_BLAS(axpy)
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include <tenon/sdk/blas.h>

#include "blas/kernels.h"
#include "libraries/cublas.h"

namespace tenon::cuda::blas {

/// A scalar input, in host memory, or in device memory in stream order. NULL: absent.
template <class T>
struct Scalar {
  const T* address = nullptr;
  bool on_device = false;

  /// For our own kernels: the value, or its device address.
  DeviceScalar<T> read() const {
    if (address == nullptr) return {T(0), nullptr};
    return on_device ? DeviceScalar<T>{T(0), address} : DeviceScalar<T>{*address, nullptr};
  }
  bool is_zero() const { return address != nullptr && !on_device && *address == T(0); }
};
/// A scalar output.
template <class T>
struct Result {
  T* address = nullptr;
  bool on_device = false;
};

/// One call: the handle of its stream, and whether the call's scalars are in host or device memory.
class Queue {
 public:
  Queue(Stream& of, bool scalars_on_device, std::uint32_t math)
      : stream(of), cublas_stream(cublas_of(of)), on_device_(scalars_on_device), math_(math) {}

  /// routine<T>(handle, arguments...).
  template <class T, class Functions, class... Arguments>
  void call(const Functions& functions, Arguments... arguments) {
    stream.device().enter();
    const auto mode = on_device_ ? CUBLAS_POINTER_MODE_DEVICE : CUBLAS_POINTER_MODE_HOST;
    check(stream.device(), cublas.set_pointer_mode(cublas_stream.handle, mode), "set_pointer_mode");
    // cuBLAS rounds f32 to bf16 in no routine of its BLAS interface: TF32 keeps the promise of TENON_MATH_BF16 too. Determinism needs
    // nothing: see CublasStream.
    const auto math = math_ == TENON_MATH_STRICT ? CUBLAS_DEFAULT_MATH : CUBLAS_TF32_TENSOR_OP_MATH;
    check(stream.device(), cublas.set_math_mode(cublas_stream.handle, math), "set_math_mode");
    check(stream.device(), functions.template of<T>()(cublas_stream.handle, plain(arguments)...), functions.routine);
  }

  /// cuBLAS needs all scalars of a call in the same memory: host scalars are copied to the device if another one is there.
  template <class T>
  Scalar<T> scalar(const tenon_scalar& given) {
    if (given.address == 0) return {};
    const Scalar<T> scalar{sdk::detail::pointer<const T>(given.address), given.on_device != 0};
    if (scalar.on_device || !on_device_) return scalar;
    return stored<T>(scalar.read(), false);
  }
  /// conj(scalar), in the same memory.
  template <class R>
  Scalar<std::complex<R>> conjugate(Scalar<std::complex<R>> scalar) {
    using T = std::complex<R>;
    if (scalar.on_device) return stored<T>(scalar.read(), true);
    T* const there = reinterpret_cast<T*>(host_scalars_[used_++]);
    *there = std::conj(*scalar.address);
    return {there, false};
  }
  /// A slot for a scalar in device memory.
  template <class T>
  T* place() {
    return static_cast<T*>(cublas_stream.scalar(used_++));
  }

  Stream& stream;
  CublasStream& cublas_stream;
  const Cublas& cublas = cublas_stream.functions;

 private:
  template <class T>
  Scalar<T> stored(DeviceScalar<T> scalar, bool conjugated) {
    T* const there = place<T>();
    store_scalar(stream, scalar, conjugated, there);
    return {there, true};
  }
  template <class A>
  static auto plain(A argument) {
    return native(argument);
  }
  template <class T>
  static auto plain(Scalar<T> argument) {
    return native(argument.address);
  }
  template <class T>
  static auto plain(Result<T> argument) {
    return native(argument.address);
  }

  const bool on_device_;
  const std::uint32_t math_;
  int used_ = 0;
  alignas(16) std::byte host_scalars_[CublasStream::scalars][16];
};

/// Converts fields of a record to a routine's parameters.
struct Address {
  std::uint64_t value;
  template <class T>
  operator T*() const {
    return sdk::detail::pointer<T>(value);
  }
};
struct Number {
  Queue* queue;
  const tenon_scalar* given;
  template <class T>
  operator Scalar<T>() const {
    return queue->scalar<T>(*given);
  }
  template <class T>
  operator Result<T>() const {
    return {sdk::detail::pointer<T>(given->address), given->on_device != 0};
  }
};

// Whether a number of a record is in device memory.
#define TENON_BLAS_ARGS(signature, fields)                                                     \
  inline bool numbers_on_device([[maybe_unused]] const tenon_blas_##signature##_args& given) { \
    return false fields;                                                                       \
  }
#define TENON_FLAG(name)
#define TENON_SIZE(name)
#define TENON_IN(name)
#define TENON_OUT(name)
#define TENON_LIST(name)
#define TENON_SCALAR(name) || given.name.on_device != 0
#define TENON_REAL_SCALAR(name) TENON_SCALAR(name)
#define TENON_NUMBERS(name) TENON_SCALAR(name)
#define TENON_REAL_NUMBER(name) TENON_SCALAR(name)
#define TENON_RESULT(name) TENON_SCALAR(name)
#define TENON_RESERVED
#include <tenon/blas_args.def>

// routine(queue, field, field, ...): a routine's parameters are the fields of its record, in order.
#define TENON_BLAS_ARGS(signature, fields)                                     \
  template <class Routine, class T>                                            \
  void run_routine(Queue& queue, const tenon_blas_##signature##_args& given) { \
    Routine::template run<T>(queue fields);                                    \
  }
#define TENON_FLAG(name) , given.name
#define TENON_SIZE(name) , given.name
#define TENON_IN(name) \
  , Address {          \
    given.name         \
  }
#define TENON_OUT(name) \
  , Address {           \
    given.name          \
  }
#define TENON_LIST(name) , given.name
#define TENON_SCALAR(name) \
  , Number {               \
    &queue, &given.name    \
  }
#define TENON_REAL_SCALAR(name) \
  , Number {                    \
    &queue, &given.name         \
  }
#define TENON_NUMBERS(name) \
  , Address {               \
    given.name.address      \
  }
#define TENON_REAL_NUMBER(name) \
  , Address {                   \
    given.name.address          \
  }
#define TENON_RESULT(name) \
  , Number {               \
    &queue, &given.name    \
  }
#define TENON_RESERVED
#include <tenon/blas_args.def>

template <class Routine, class Args>
tenon_status slot(const tenon_blas_call* call, const Args* given, tenon_error* error) {
  return sdk::detail::run_blas(Routine::name, typename Routine::Types{}, *call, *given, error, [call]<class T>(const Args& args) {
    Queue queue(static_cast<Stream&>(sdk::stream_of(call->stream)), numbers_on_device(args),
                Routine::is_level3 ? call->math : std::uint32_t{TENON_MATH_STRICT});
    run_routine<Routine, T>(queue, args);
  });
}

/// Registers the function template `routine` of tenon::cuda::blas: its slot of the table, for the dtypes of its line in blas.def.
#define TENON_CUDA_BLAS(routine)                                   \
  namespace blas {                                                 \
  namespace {                                                      \
  struct RoutineOf_##routine : sdk::detail::Blas_##routine {       \
    template <class T, class... Arguments>                         \
    static void run(Queue& queue, Arguments... arguments) {        \
      routine<T>(queue, arguments...);                             \
    }                                                              \
  };                                                               \
  }                                                                \
  }                                                                \
  extern const decltype(tenon_blas_table::routine) blas_##routine; \
  const decltype(tenon_blas_table::routine) blas_##routine = &blas::slot<blas::RoutineOf_##routine, sdk::detail::Blas_##routine::Args>;

}  // namespace tenon::cuda::blas
