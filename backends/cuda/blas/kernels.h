// SPDX-License-Identifier: Apache-2.0
// blas/kernels.h - kernels for what cuBLAS lacks: conjugation, extended-precision sums, products with any operation, scalars in device
// memory. T is float, double or a std::complex of them unless noted; matrices are column-major.
#pragma once

#include <complex>
#include <cstdint>

#include <tenon/sdk/blas.h>

#include "device/device.h"

namespace tenon::cuda::blas {

/// A scalar that a kernel reads: at `address`, or `value` if that is NULL.
template <class T>
struct DeviceScalar {
  T value;
  const T* address;
};

/// *out = scalar, or its conjugate.
template <class T>
void store_scalar(Stream& stream, DeviceScalar<T> scalar, bool conjugate, T* out);

/// Stores a host array of up to `store_limit` addresses in device memory. They travel as kernel arguments, so the array need not outlive
/// the call.
inline constexpr std::int64_t store_limit = 256;
void store_addresses(Stream& stream, const std::uint64_t* addresses, std::int64_t count, std::uint64_t* out);

/// *index -= 1.
void count_from_0(Stream& stream, std::int64_t* index);

/// `lines` vectors of n elements.
template <class T>
struct Lines {
  T* first;  ///< element 0 of line 0
  std::int64_t step, line_step;
};
/// y = conj(x); y may be x. Complex T.
template <class T>
void conjugate(Stream& stream, std::int64_t n, std::int64_t lines, Lines<const T> x, Lines<T> y);

/// y = alpha x + beta y; a vector whose factor is 0 is not read.
template <class T>
void axpby(Stream& stream, std::int64_t n, DeviceScalar<T> alpha, Lines<const T> x, DeviceScalar<T> beta, Lines<T> y);

/// first + sum of x(i) y(i), accumulated in f64 in a fixed order, to each result that is not NULL. partials: [CublasStream::partials].
void extended_dot(Stream& stream, std::int64_t n, DeviceScalar<float> first, Lines<const float> x, Lines<const float> y, double* partials,
                  float* result, double* result_f64);

/// The Euclidean norm of x, of real or complex numbers. Nothing overflows or underflows on the way, which cuBLAS's does: its squares of
/// numbers below the root of the smallest normal number are 0 or subnormal. Sums are in f64, in a fixed order.
/// partials: [3][CublasStream::partials].
///
/// Source  Anderson: Algorithm 978, Safe Scaling in the Level 1 BLAS, ACM TOMS 44 (2017).
template <class T>
void norm(Stream& stream, std::int64_t n, Lines<const T> x, double* partials, sdk::Real<T>* result);

/// A factor in memory. With `addresses`, entry e is at addresses[e], else at data + stride * e.
template <class T>
struct Factor {
  const T* data;
  std::int64_t ld;
  bool transposed, conjugated;
  std::int64_t stride = 0;
  const std::uint64_t* addresses = nullptr;
};
enum class Part : std::uint32_t { all, upper, lower };
/// C = alpha op(A) op(B) + beta C for each entry of a batch, or one triangle of C.
template <class T>
struct Product {
  std::int64_t m, n, k;
  DeviceScalar<T> alpha;
  Factor<T> a, b;
  DeviceScalar<T> beta;
  T* c;
  std::int64_t ldc;
  Part part = Part::all;
  std::int64_t batch = 1, stride_c = 0;
  const std::uint64_t* addresses_c = nullptr;
};
template <class T>
void multiply(Stream& stream, const Product<T>& product);

/// C = alpha op(A) + beta op(B); a matrix whose factor is 0 is not read. C may alias A or B if it has the same layout.
template <class T>
void add(Stream& stream, std::int64_t m, std::int64_t n, DeviceScalar<T> alpha, Factor<T> a, DeviceScalar<T> beta, Factor<T> b, T* c,
         std::int64_t ldc);

}  // namespace tenon::cuda::blas
