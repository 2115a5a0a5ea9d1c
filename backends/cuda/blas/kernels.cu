// SPDX-License-Identifier: Apache-2.0
#include "blas/kernels.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernel/launch.h"
#include "kernel/thread_index.cuh"
#include "libraries/cublas.h"

namespace tenon::cuda::blas {
namespace {

/// A complex number in device code; same layout as std::complex.
template <class R>
struct Complex {
  R re, im;
};
template <class R>
__device__ Complex<R> operator+(Complex<R> a, Complex<R> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class R>
__device__ Complex<R> operator*(Complex<R> a, Complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class R>
__device__ bool operator==(Complex<R> a, Complex<R> b) {
  return a.re == b.re && a.im == b.im;
}
template <class R>
__device__ Complex<R> conj_if(bool condition, Complex<R> x) {
  return {x.re, condition ? -x.im : x.im};
}
__device__ inline float conj_if(bool, float x) {
  return x;
}
__device__ inline double conj_if(bool, double x) {
  return x;
}

/// T in device code.
template <class T>
struct ElementOf {
  using Type = T;
};
template <class R>
struct ElementOf<std::complex<R>> {
  using Type = Complex<R>;
};
template <class T>
struct ElementOf<const T> {
  using Type = const typename ElementOf<T>::Type;
};
template <class T>
using Element = typename ElementOf<T>::Type;

template <class E>
struct Read {
  E value;
  const E* address;
  __device__ E operator()() const { return address == nullptr ? value : *address; }
};
template <class T>
Element<T>* element(T* x) {
  return reinterpret_cast<Element<T>*>(x);
}
template <class T>
Read<Element<T>> read(DeviceScalar<T> scalar) {
  Element<T> value;
  static_assert(sizeof(value) == sizeof(scalar.value));
  if constexpr (std::is_floating_point_v<T>) {
    value = scalar.value;
  } else {
    value = {scalar.value.real(), scalar.value.imag()};
  }
  return {value, element(scalar.address)};
}
template <class T>
Lines<Element<T>> elements(Lines<T> x) {
  return {element(x.first), x.step, x.line_step};
}

template <class E>
__device__ E one() {
  if constexpr (std::is_floating_point_v<E>) {
    return 1;
  } else {
    return {1, 0};
  }
}

/// a x, exact for a = 1; 0 for a = 0, for which x is not read.
template <class E>
__device__ E scaled(E a, const E& x) {
  if (a == E{}) return E{};
  return a == one<E>() ? x : a * x;
}

template <class E>
__global__ void store_kernel(Read<E> scalar, bool conjugate, E* out) {
  *out = conj_if(conjugate, scalar());
}

struct Addresses {
  std::uint64_t at[store_limit];
};
__global__ void store_addresses_kernel(Addresses addresses, std::int64_t count, std::uint64_t* out) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) out[i] = addresses.at[i];
}

__global__ void count_from_0_kernel(std::int64_t* index) {
  *index -= 1;
}

template <class E>
__global__ void conjugate_kernel(std::int64_t n, std::int64_t count, Lines<const E> x, Lines<E> y) {
  for (std::int64_t e = thread_index(); e < count; e += thread_count()) {
    const std::int64_t line = e / n, i = e - line * n;
    y.first[line * y.line_step + i * y.step] = conj_if(true, x.first[line * x.line_step + i * x.step]);
  }
}

template <class E>
__global__ void axpby_kernel(std::int64_t n, Read<E> alpha, Lines<const E> x, Read<E> beta, Lines<E> y) {
  const E a = alpha(), b = beta();
  for (std::int64_t i = thread_index(); i < n; i += thread_count()) {
    E& at = y.first[i * y.step];
    at = scaled(a, x.first[i * x.step]) + scaled(b, at);
  }
}

constexpr int dot_threads = 256;

/// The sum over the block, in thread 0.
__device__ double block_sum(double value) {
  __shared__ double all[dot_threads];
  all[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = dot_threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) all[threadIdx.x] += all[threadIdx.x + half];
    __syncthreads();
  }
  return all[0];
}

__global__ void dot_parts_kernel(std::int64_t n, Lines<const float> x, Lines<const float> y, double* partials) {
  double sum = 0;
  for (std::int64_t i = thread_index(); i < n; i += thread_count()) {
    sum += static_cast<double>(x.first[i * x.step]) * static_cast<double>(y.first[i * y.step]);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

__global__ void dot_sum_kernel(int count, const double* partials, Read<float> first, float* result, double* result_f64) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += dot_threads) sum += partials[i];
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  sum += static_cast<double>(first());
  if (result != nullptr) *result = static_cast<float>(sum);
  if (result_f64 != nullptr) *result_f64 = sum;
}

/// Sums of squares: of large and of small numbers, which are scaled by powers of two first, and of all others.
struct Squares {
  double large = 0, middle = 0, small = 0;
};
// The bounds and factors of f64; numbers of f32 are never beyond them.
constexpr double largest_middle = 0x1p486, smallest_middle = 0x1p-511, factor_of_large = 0x1p-538, factor_of_small = 0x1p537;

__device__ inline void add_square(Squares& sums, double x) {
  const double size = std::abs(x);
  if (size > largest_middle) {
    sums.large += size * factor_of_large * (size * factor_of_large);
  } else if (size < smallest_middle) {
    sums.small += size * factor_of_small * (size * factor_of_small);
  } else {  // also NaN
    sums.middle += size * size;
  }
}
template <class R>
__device__ void add_square(Squares& sums, Complex<R> x) {
  add_square(sums, static_cast<double>(x.re));
  add_square(sums, static_cast<double>(x.im));
}
__device__ inline Squares block_sum(const Squares& sums) {
  const double large = block_sum(sums.large), middle = block_sum(sums.middle), small = block_sum(sums.small);
  return {large, middle, small};
}
__device__ inline double root(const Squares& sums) {
  const bool has_middle = sums.middle > 0 || sums.middle != sums.middle;
  if (sums.large > 0) {
    const double middle = has_middle ? sums.middle * factor_of_large * factor_of_large : 0;
    return std::sqrt(sums.large + middle) / factor_of_large;
  }
  if (sums.small == 0) return std::sqrt(sums.middle);
  const double small = std::sqrt(sums.small) / factor_of_small;
  if (!has_middle) return small;
  const double middle = std::sqrt(sums.middle);
  if (middle != middle) return middle;
  const double most = small > middle ? small : middle, least = small > middle ? middle : small, ratio = least / most;
  return most * std::sqrt(1 + ratio * ratio);
}

template <class E>
__global__ void squares_kernel(std::int64_t n, Lines<const E> x, int blocks, double* partials) {
  Squares sums;
  for (std::int64_t i = thread_index(); i < n; i += thread_count()) {
    if constexpr (std::is_floating_point_v<E>) {
      add_square(sums, static_cast<double>(x.first[i * x.step]));
    } else {
      add_square(sums, x.first[i * x.step]);
    }
  }
  sums = block_sum(sums);
  if (threadIdx.x != 0) return;
  partials[blockIdx.x] = sums.large;
  partials[blocks + static_cast<int>(blockIdx.x)] = sums.middle;
  partials[2 * blocks + static_cast<int>(blockIdx.x)] = sums.small;
}
template <class R>
__global__ void root_kernel(int blocks, const double* partials, R* result) {
  Squares sums;
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += dot_threads) {
    sums.large += partials[i];
    sums.middle += partials[blocks + i];
    sums.small += partials[2 * blocks + i];
  }
  sums = block_sum(sums);
  if (threadIdx.x == 0) *result = static_cast<R>(root(sums));
}

/// Factor, Product in device code.
template <class E>
struct Source {
  const E* data;
  std::int64_t ld;
  bool transposed, conjugated;
  std::int64_t stride;
  const std::uint64_t* addresses;

  __device__ const E* entry(std::int64_t e) const {
    return addresses == nullptr ? data + e * stride : reinterpret_cast<const E*>(static_cast<std::uintptr_t>(addresses[e]));
  }
  /// Element (i, j) of op of the matrix at `matrix`.
  __device__ E at(const E* matrix, std::int64_t i, std::int64_t j) const {
    return conj_if(conjugated, transposed ? matrix[j + i * ld] : matrix[i + j * ld]);
  }
};
template <class T>
Source<Element<T>> source(const Factor<T>& x) {
  return {element(x.data), x.ld, x.transposed, x.conjugated, x.stride, x.addresses};
}

/// A block computes a tile of C from tiles of A and B in shared memory, one element per thread.
constexpr int tile = 16;

template <class E>
__global__ void multiply_kernel(std::int64_t m, std::int64_t n, std::int64_t k, Read<E> alpha, Source<E> a, Source<E> b, Read<E> beta, E* c,
                                std::int64_t ldc, Part part, std::int64_t stride_c, const std::uint64_t* addresses_c,
                                std::int64_t tiles_down, std::int64_t tiles) {
  __shared__ E a_tile[tile][tile + 1];  // indexed (depth, row): neighbouring threads write to different banks
  __shared__ E b_tile[tile][tile + 1];
  const std::int64_t entry = blockIdx.x / tiles, of_entry = blockIdx.x - entry * tiles;
  const std::int64_t row = of_entry % tiles_down * tile, column = of_entry / tiles_down * tile;
  // The whole block exits if its tile is outside of the triangle.
  if (part == Part::upper && row > column) return;
  if (part == Part::lower && row < column) return;
  const int down = static_cast<int>(threadIdx.x) % tile, across = static_cast<int>(threadIdx.x) / tile;
  const std::int64_t i = row + down, j = column + across;
  const E factor = alpha();
  E sum{};
  if (!(factor == E{})) {
    const E* const left = a.entry(entry);
    const E* const right = b.entry(entry);
    for (std::int64_t begin = 0; begin < k; begin += tile) {
      a_tile[across][down] = i < m && begin + across < k ? a.at(left, i, begin + across) : E{};
      b_tile[down][across] = j < n && begin + down < k ? b.at(right, begin + down, j) : E{};
      __syncthreads();
      const int depth = k - begin < tile ? static_cast<int>(k - begin) : tile;
      for (int p = 0; p < depth; ++p) sum = sum + a_tile[p][down] * b_tile[p][across];
      __syncthreads();
    }
  }
  if (i >= m || j >= n || (part == Part::upper && i > j) || (part == Part::lower && i < j)) return;
  E* const matrix = addresses_c == nullptr ? c + entry * stride_c : reinterpret_cast<E*>(static_cast<std::uintptr_t>(addresses_c[entry]));
  E& at = matrix[i + j * ldc];
  at = scaled(factor, sum) + scaled(beta(), at);
}

template <class E>
__global__ void add_kernel(std::int64_t m, std::int64_t count, Read<E> alpha, Source<E> a, Read<E> beta, Source<E> b, E* c,
                           std::int64_t ldc) {
  const E of_a = alpha(), of_b = beta();
  for (std::int64_t e = thread_index(); e < count; e += thread_count()) {
    const std::int64_t j = e / m, i = e - j * m;
    E sum{};
    if (!(of_a == E{})) sum = scaled(of_a, a.at(a.data, i, j));
    if (!(of_b == E{})) sum = sum + scaled(of_b, b.at(b.data, i, j));
    c[i + j * ldc] = sum;
  }
}

}  // namespace

template <class T>
void store_scalar(Stream& stream, DeviceScalar<T> scalar, bool conjugate, T* out) {
  launch(stream, {1, 1}, store_kernel<Element<T>>, read(scalar), conjugate, element(out));
}

void store_addresses(Stream& stream, const std::uint64_t* addresses, std::int64_t count, std::uint64_t* out) {
  Addresses by_value{};
  for (std::int64_t i = 0; i < count; ++i) by_value.at[i] = addresses[i];
  launch(stream, {1, 256}, store_addresses_kernel, by_value, count, out);
}

void count_from_0(Stream& stream, std::int64_t* index) {
  launch(stream, {1, 1}, count_from_0_kernel, index);
}

template <class T>
void conjugate(Stream& stream, std::int64_t n, std::int64_t lines, Lines<const T> x, Lines<T> y) {
  launch_over(stream, n * lines, conjugate_kernel<Element<T>>, n, n * lines, elements(x), elements(y));
}

template <class T>
void axpby(Stream& stream, std::int64_t n, DeviceScalar<T> alpha, Lines<const T> x, DeviceScalar<T> beta, Lines<T> y) {
  launch_over(stream, n, axpby_kernel<Element<T>>, n, read(alpha), elements(x), read(beta), elements(y));
}

void extended_dot(Stream& stream, std::int64_t n, DeviceScalar<float> first, Lines<const float> x, Lines<const float> y, double* partials,
                  float* result, double* result_f64) {
  // At least eight products per thread, so that a further block is worth its partial sum.
  const std::int64_t blocks = std::min<std::int64_t>((n + 8 * dot_threads - 1) / (8 * dot_threads), CublasStream::partials);
  launch(stream, {blocks, dot_threads}, dot_parts_kernel, n, x, y, partials);
  launch(stream, {1, dot_threads}, dot_sum_kernel, static_cast<int>(blocks), partials, read(first), result, result_f64);
}

template <class T>
void norm(Stream& stream, std::int64_t n, Lines<const T> x, double* partials, sdk::Real<T>* result) {
  const std::int64_t blocks = std::min<std::int64_t>((n + 8 * dot_threads - 1) / (8 * dot_threads), CublasStream::partials);
  launch(stream, {blocks, dot_threads}, squares_kernel<Element<T>>, n, elements(x), static_cast<int>(blocks), partials);
  launch(stream, {1, dot_threads}, root_kernel<sdk::Real<T>>, static_cast<int>(blocks), partials, result);
}

template <class T>
void multiply(Stream& stream, const Product<T>& p) {
  const std::int64_t down = (p.m + tile - 1) / tile, tiles = down * ((p.n + tile - 1) / tile);
  launch(stream, {tiles * p.batch, tile * tile}, multiply_kernel<Element<T>>, p.m, p.n, p.k, read(p.alpha), source(p.a), source(p.b),
         read(p.beta), element(p.c), p.ldc, p.part, p.stride_c, p.addresses_c, down, tiles);
}

template <class T>
void add(Stream& stream, std::int64_t m, std::int64_t n, DeviceScalar<T> alpha, Factor<T> a, DeviceScalar<T> beta, Factor<T> b, T* c,
         std::int64_t ldc) {
  launch_over(stream, m * n, add_kernel<Element<T>>, m, m * n, read(alpha), source(a), read(beta), source(b), element(c), ldc);
}

#define TENON_FOR_COMPLEX(T) template void conjugate<T>(Stream&, std::int64_t, std::int64_t, Lines<const T>, Lines<T>);
#define TENON_FOR_ALL(T)                                                                                     \
  template void store_scalar<T>(Stream&, DeviceScalar<T>, bool, T*);                                         \
  template void axpby<T>(Stream&, std::int64_t, DeviceScalar<T>, Lines<const T>, DeviceScalar<T>, Lines<T>); \
  template void norm<T>(Stream&, std::int64_t, Lines<const T>, double*, sdk::Real<T>*);                      \
  template void multiply<T>(Stream&, const Product<T>&);                                                     \
  template void add<T>(Stream&, std::int64_t, std::int64_t, DeviceScalar<T>, Factor<T>, DeviceScalar<T>, Factor<T>, T*, std::int64_t);
TENON_FOR_COMPLEX(std::complex<float>)
TENON_FOR_COMPLEX(std::complex<double>)
TENON_FOR_ALL(float)
TENON_FOR_ALL(double)
TENON_FOR_ALL(std::complex<float>)
TENON_FOR_ALL(std::complex<double>)

}  // namespace tenon::cuda::blas
