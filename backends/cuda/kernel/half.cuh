// SPDX-License-Identifier: Apache-2.0
// half.cuh - arithmetic on f16 and bf16, which the SDK stores as bits: widened exactly, rounded once, to nearest even.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include <tenon/sdk/kernel.h>

namespace tenon::cuda {

/// True for storage-only types.
template <class T>
inline constexpr bool is_narrow = std::is_same_v<T, sdk::Half> || std::is_same_v<T, sdk::BFloat16>;

__device__ inline float to_float(sdk::Half x) {
  return __half2float(__half(__half_raw{x.bits}));
}
__device__ inline float to_float(sdk::BFloat16 x) {
  return __bfloat162float(__nv_bfloat16(__nv_bfloat16_raw{x.bits}));
}
__device__ inline float to_float(float x) {
  return x;
}

template <class T>
__device__ T from_float(float x) {
  if constexpr (std::is_same_v<T, sdk::Half>) {
    return {static_cast<__half_raw>(__float2half_rn(x)).x};
  } else if constexpr (std::is_same_v<T, sdk::BFloat16>) {
    return {static_cast<__nv_bfloat16_raw>(__float2bfloat16_rn(x)).x};
  } else {
    return static_cast<T>(x);
  }
}

/// Converts in one step: through f32, a value close to a tie would be rounded twice.
template <class T>
__device__ T from_double(double x) {
  if constexpr (std::is_same_v<T, sdk::Half>) {
    return {static_cast<__half_raw>(__double2half(x)).x};
  } else if constexpr (std::is_same_v<T, sdk::BFloat16>) {
    return {static_cast<__nv_bfloat16_raw>(__double2bfloat16(x)).x};
  } else {
    return static_cast<T>(x);
  }
}

}  // namespace tenon::cuda
