// SPDX-License-Identifier: Apache-2.0
// emulation.h - forced in (-include) before every source of the emulated backend: the CUDA dialect of its kernels as plain C++.
//
// Built-in variables are globals that the engine sets at every switch of threads; intrinsics that wait switch threads; atomics are plain,
// because one thread runs at a time.
#pragma once

#include <cuda_runtime_api.h>
#include <math.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "control.h"
#include "sanitizers.h"

#define TENON_CUDA_EMULATION 1

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __forceinline__
#undef __launch_bounds__
#undef __noinline__
#define __global__
#define __device__
#define __host__
// One block runs at a time in the process, so that one copy for each host thread is enough; it keeps the values of the previous block, as
// on a GPU. Blocks of cooperative launches would share it: their kernels must have dynamic shared memory only. Variables of threads are a
// segment of their own in a library, which static_shared.h fills; AddressSanitizer, which puts no guards around them, has other ones.
#ifdef TENON_EMULATION_ASAN
#define __shared__ static
#else
#define __shared__ static thread_local
#endif
#define __constant__ static
#define __forceinline__ inline
#define __launch_bounds__(...)

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace tenon::emulation {

void wait_for_previous_kernel();
void wait_for_other_blocks();
void block_barrier();
void warp_barrier(unsigned mask);
/// The bits that lane `source` of the warp passed to the same call; 0xFF bytes for a lane outside of the mask or one that has exited.
std::uint64_t exchange(unsigned mask, std::uint64_t bits, int source);
/// One bit for each lane of the mask whose predicate holds.
unsigned vote(unsigned mask, bool predicate);
int lane();
/// The dynamic shared memory of the block.
char* dynamic_shared();

template <class T>
concept Shuffled = std::is_arithmetic_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

template <Shuffled T>
T shuffle(unsigned mask, T value, int source) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange(mask, bits, source);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace tenon::emulation

inline void __syncthreads() {
  tenon::emulation::block_barrier();
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  tenon::emulation::warp_barrier(mask);
}
inline void cudaGridDependencySynchronize() {
  tenon::emulation::wait_for_previous_kernel();
}
inline void cudaTriggerProgrammaticLaunchCompletion() {}
/// Kernels sleep while they wait for another block: the other blocks of a cooperative launch run meanwhile.
inline void __nanosleep(unsigned) {
  tenon::emulation::wait_for_other_blocks();
}
inline void __threadfence() {}
inline void __threadfence_system() {}

/// Source  CUDA C++ Programming Guide, "Warp Shuffle Functions": for a lane outside of the segment the caller gets its own value.
template <tenon::emulation::Shuffled T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
  const int own = tenon::emulation::lane();
  return tenon::emulation::shuffle(mask, value, (own & ~(width - 1)) | (source & (width - 1)));
}
template <tenon::emulation::Shuffled T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int own = tenon::emulation::lane(), source = own - static_cast<int>(delta);
  return tenon::emulation::shuffle(mask, value, source < (own & ~(width - 1)) ? own : source);
}
template <tenon::emulation::Shuffled T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int own = tenon::emulation::lane(), source = own + static_cast<int>(delta);
  return tenon::emulation::shuffle(mask, value, source > (own | (width - 1)) ? own : source);
}
template <tenon::emulation::Shuffled T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize) {
  const int own = tenon::emulation::lane(), source = own ^ lane_mask;
  return tenon::emulation::shuffle(mask, value, source > (own | (width - 1)) ? own : source);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return tenon::emulation::vote(mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) {
  return tenon::emulation::vote(mask, predicate != 0) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return tenon::emulation::vote(mask, predicate == 0) == 0;
}

template <class T>
void __stwb(T* address, T value) {
  *address = value;
}

namespace tenon::emulation {
template <class T, class F>
T replace(T* address, F next) {
  const T old = *address;
  *address = next(old);
  return old;
}
}  // namespace tenon::emulation

// The overloads are those of CUDA: what does not compile here does not compile there either.
#define TENON_EMULATED_ATOMIC(name, T, expression)                                                                     \
  inline T name(T* address, T value) {                                                                                 \
    return tenon::emulation::replace(address, [value]([[maybe_unused]] T old) { return static_cast<T>(expression); }); \
  }
#define TENON_EMULATED_INTEGER_ATOMICS(T)                                                            \
  TENON_EMULATED_ATOMIC(atomicExch, T, value)                                                        \
  TENON_EMULATED_ATOMIC(atomicMax, T, std::max(old, value))                                          \
  inline T atomicCAS(T* address, T expected, T value) {                                              \
    return tenon::emulation::replace(address, [=](T old) { return old == expected ? value : old; }); \
  }
TENON_EMULATED_INTEGER_ATOMICS(int)
TENON_EMULATED_INTEGER_ATOMICS(unsigned)
TENON_EMULATED_INTEGER_ATOMICS(unsigned long long)
TENON_EMULATED_ATOMIC(atomicMax, long long, std::max(old, value))
TENON_EMULATED_ATOMIC(atomicExch, float, value)
// In unsigned arithmetic: hardware wraps where C++ is undefined.
TENON_EMULATED_ATOMIC(atomicAdd, int, static_cast<unsigned>(old) + static_cast<unsigned>(value))
TENON_EMULATED_ATOMIC(atomicAdd, unsigned, old + value)
TENON_EMULATED_ATOMIC(atomicAdd, unsigned long long, old + value)
TENON_EMULATED_ATOMIC(atomicInc, unsigned, old >= value ? 0 : old + 1)
TENON_EMULATED_ATOMIC(atomicAdd, float, old + value)
TENON_EMULATED_ATOMIC(atomicAdd, double, old + value)
#undef TENON_EMULATED_INTEGER_ATOMICS
#undef TENON_EMULATED_ATOMIC

inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline long long __double_as_longlong(double x) {
  return std::bit_cast<long long>(x);
}
inline double __longlong_as_double(long long x) {
  return std::bit_cast<double>(x);
}

inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>((static_cast<Wide>(x) * y) >> 64);
}
inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}

inline double rsqrt(double x) {
  return 1.0 / sqrt(x);
}
inline float rsqrt(float x) {
  return 1.0f / sqrtf(x);
}

// min and max of the global namespace: mixed signs go to the unsigned type, mixed floats to double, and a NaN loses.
namespace tenon::emulation {
template <class A, class B>
concept Comparable = std::is_arithmetic_v<A> && std::is_arithmetic_v<B> && std::is_floating_point_v<A>
== std::is_floating_point_v<B>;
}  // namespace tenon::emulation
template <class A, class B>
requires tenon::emulation::Comparable<A, B>
constexpr auto min(A a, B b) {
  using T = std::common_type_t<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  if constexpr (std::is_floating_point_v<T>)
    return x < y || y != y ? x : y;
  else
    return x < y ? x : y;
}
template <class A, class B>
requires tenon::emulation::Comparable<A, B>
constexpr auto max(A a, B b) {
  using T = std::common_type_t<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  if constexpr (std::is_floating_point_v<T>)
    return x > y || y != y ? x : y;
  else
    return x > y ? x : y;
}
