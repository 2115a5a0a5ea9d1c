// SPDX-License-Identifier: Apache-2.0
// cublas.h - cuBLAS, opened at first use: its functions by routine and type, and a handle for each stream.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tenon/sdk/host.h>

#include "device/device.h"
#include "libraries/cublas_functions.h"
#include "libraries/library.h"

namespace tenon::cuda {

/// The functions of a routine by type; std::nullptr_t for types that it lacks.
template <class S, class D, class C, class Z>
struct Family {
  const char* routine = nullptr;
  S s{};
  D d{};
  C c{};
  Z z{};

  template <class T>
  auto of() const {
    if constexpr (std::is_same_v<T, float>) {
      return s;
    } else if constexpr (std::is_same_v<T, double>) {
      return d;
    } else if constexpr (std::is_same_v<T, std::complex<float>>) {
      return c;
    } else {
      return z;
    }
  }
};

/// The functions of an open library.
struct Cublas {
  explicit Cublas(const Search& search);

  Library library;
  decltype(&::cublasGetProperty) get_property;
  decltype(&::cublasCreate) create;
  decltype(&::cublasDestroy) destroy;
  decltype(&::cublasSetStream) set_stream;
  decltype(&::cublasSetWorkspace) set_workspace;
  decltype(&::cublasSetPointerMode) set_pointer_mode;
  decltype(&::cublasSetMathMode) set_math_mode;

#define TENON_FOUR(routine, S, D, C, Z) Family<decltype(&::S), decltype(&::D), decltype(&::C), decltype(&::Z)> routine;
#define TENON_REAL(routine, S, D) Family<decltype(&::S), decltype(&::D), std::nullptr_t, std::nullptr_t> routine;
#define TENON_COMPLEX(routine, C, Z) Family<std::nullptr_t, std::nullptr_t, decltype(&::C), decltype(&::Z)> routine;
  TENON_CUBLAS_ROUTINES(TENON_FOUR, TENON_REAL, TENON_COMPLEX)
#undef TENON_FOUR
#undef TENON_REAL
#undef TENON_COMPLEX
};

/// cuBLAS, opened by the first call and never closed.
///
/// Errors   INCOMPATIBLE: it is missing or not of the headers' major version; the next call searches again.
/// Threads  any
const Cublas& cublas(const sdk::Host& host);

/// Throws an error that names the call unless `status` is success; an error of the CUDA context takes precedence.
void check(Device& device, cublasStatus_t status, const char* call);

/// The workspace size that the cuBLAS manual recommends.
std::size_t workspace_bytes(int compute_capability);

/// The handle of a stream, its workspace, and a few scalars in device memory for later calls on the same stream.
///
/// With its own workspace cuBLAS allocates nothing when it is called: calls can be recorded, and results are bitwise reproducible.
class CublasStream {
 public:
  explicit CublasStream(Stream& stream);
  ~CublasStream() { release(); }
  CublasStream(const CublasStream&) = delete;
  CublasStream& operator=(const CublasStream&) = delete;

  static constexpr int scalars = 8;            ///< slots for a scalar of any type
  static constexpr int partials = 256;         ///< parts of a reduction, of up to 3 f64 each
  static constexpr std::int64_t batch = 1024;  ///< products whose addresses are stored at once

  const Cublas& functions;
  cublasHandle_t handle = nullptr;
  /// Device memory.
  void* scalar(int i) const;
  double* partial() const;
  std::uint64_t* addresses() const;  ///< [3][batch]

 private:
  void release();

  Device& device_;
  std::byte* memory_ = nullptr;
};
CublasStream& cublas_of(Stream& stream);

/// T as cuBLAS writes it.
template <class T>
struct NativeOf {
  using Type = T;
};
template <>
struct NativeOf<std::complex<float>> {
  using Type = cuComplex;
};
template <>
struct NativeOf<std::complex<double>> {
  using Type = cuDoubleComplex;
};
template <class T>
struct NativeOf<const T> {
  using Type = const typename NativeOf<T>::Type;
};
template <class T>
struct NativeOf<T*> {
  using Type = typename NativeOf<T>::Type*;
};
template <class T>
typename NativeOf<T>::Type native(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<typename NativeOf<T>::Type>(value);
  } else {
    return value;
  }
}

}  // namespace tenon::cuda
