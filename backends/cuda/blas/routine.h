// SPDX-License-Identifier: Apache-2.0
// blas/routine.h - how this backend implements a routine of blas.def: a function template over the slot's arguments, and a line that
// registers it.
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
#include <tuple>
#include <utility>

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
  Queue(Stream& of, bool scalars_on_device) : stream(of), cublas_stream(cublas_of(of)), on_device_(scalars_on_device) {}

  /// routine<T>(handle, arguments...).
  template <class T, class Functions, class... Arguments>
  void call(const Functions& functions, Arguments... arguments) {
    stream.device().enter();
    const auto mode = on_device_ ? CUBLAS_POINTER_MODE_DEVICE : CUBLAS_POINTER_MODE_HOST;
    check(stream.device(), cublas.set_pointer_mode(cublas_stream.handle, mode), "set_pointer_mode");
    check(stream.device(), functions.template of<T>()(cublas_stream.handle, plain(arguments)...), functions.routine);
  }

  /// cuBLAS needs all scalars of a call in the same memory: host scalars are copied to the device if another one is there.
  template <class T>
  Scalar<T> scalar(const tenon_scalar* given) {
    if (given == nullptr) return {};
    const Scalar<T> scalar{sdk::detail::pointer<const T>(given->address), given->on_device != 0};
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
  /// For routines whose slot specifies this differently.
  void scalars_are_on_device(bool on_device) { on_device_ = on_device; }

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

  bool on_device_;
  int used_ = 0;
  alignas(16) std::byte host_scalars_[CublasStream::scalars][16];
};

/// Converts the arguments of a slot to the routine's parameters.
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
    return queue->scalar<T>(given);
  }
  template <class T>
  operator Result<T>() const {
    return {sdk::detail::pointer<T>(given->address), given->on_device != 0};
  }
};
inline Address argument(Queue&, std::uint64_t address) {
  return {address};
}
inline Number argument(Queue& queue, const tenon_scalar* given) {
  return {&queue, given};
}
template <class A>
A argument(Queue&, A value) {
  return value;
}

inline bool lies_on_device(const tenon_scalar* given) {
  return given != nullptr && given->on_device != 0;
}
template <class A>
bool lies_on_device(A) {
  return false;
}

/// device, stream, dtype, the routine's arguments, error.
template <class Routine, class... All>
tenon_status slot(All... all) {
  constexpr std::size_t head = 3, count = sizeof...(All) - head - 1;
  const std::tuple<All...> given(all...);
  return sdk::detail::run_blas(Routine::name, typename Routine::Types{}, std::get<2>(given), std::get<head + count>(given), [&]<class T>() {
    Queue queue(static_cast<Stream&>(sdk::stream_of(std::get<1>(given))), (lies_on_device(all) || ...));
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      Routine::template run<T>(queue, argument(queue, std::get<head + I>(given))...);
    }
    (std::make_index_sequence<count>{});
  });
}
template <class Routine, class... All>
constexpr auto slot_for(tenon_status (*)(All...)) -> tenon_status (*)(All...) {
  return &slot<Routine, All...>;
}

/// Registers the function template `routine` of tenon::cuda::blas: its slot of the table, for the dtypes of its line in blas.def.
#define TENON_CUDA_BLAS(routine)                                   \
  namespace blas {                                                 \
  namespace {                                                      \
  struct RoutineOf_##routine {                                     \
    using Types = sdk::detail::Blas_##routine::Types;              \
    static constexpr const char* name = #routine;                  \
    template <class T, class... Arguments>                         \
    static void run(Queue& queue, Arguments... arguments) {        \
      routine<T>(queue, arguments...);                             \
    }                                                              \
  };                                                               \
  }                                                                \
  }                                                                \
  extern const decltype(tenon_blas_table::routine) blas_##routine; \
  const decltype(tenon_blas_table::routine) blas_##routine =       \
      blas::slot_for<blas::RoutineOf_##routine>(static_cast<decltype(tenon_blas_table::routine)>(nullptr));

}  // namespace tenon::cuda::blas
