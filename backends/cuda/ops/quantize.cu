// SPDX-License-Identifier: Apache-2.0
// Floats as integers of 8 or 16 bits, and back.
#include <cstdint>
#include <limits>

#include <tenon/sdk/element.h>

#include "elementwise/map.cuh"
#include "kernel/operands.h"

namespace tenon::cuda {
namespace {

__device__ float to_nearest(float x) {
  return rintf(x);
}
__device__ double to_nearest(double x) {
  return rint(x);
}

/// saturate(round(x / scale) + zero_point), ties to even; 0 for NaN.
template <class Q>
struct Quantize {
  template <class T>
  __device__ Q operator()(T x, T scale, Q zero_point = 0) const {
    const T q = to_nearest(x / scale) + static_cast<T>(zero_point);
    constexpr T low = std::numeric_limits<Q>::lowest(), high = std::numeric_limits<Q>::max();
    if (q != q) return 0;
    return static_cast<Q>(q < low ? low : q > high ? high : q);
  }
};

template <class Q, class T>
void quantize_all(const sdk::Call& call) {
  if (call.has_input(2)) return map<Q, T, T, Q>(call, Quantize<Q>{});
  map<Q, T, T>(call, Quantize<Q>{});
}

/// y = saturate(round(x / scale) + zero_point), ties to even
///
/// Dtypes      x of f32, f64, which the quotient is rounded to; y of i8, u8, i16, u16.
/// Attributes  to: the dtype of y.
template <class T>
void quantize_linear(const sdk::Call& call) {
  sdk::with_type<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t>(call.attr<tenon_attributes_cast>().to,
                                                                         [&]<class Q>() { quantize_all<Q, T>(call); });
}

template <class T>
struct Dequantize {
  template <class Q>
  __device__ T operator()(Q x, T scale, Q zero_point = 0) const {
    return (static_cast<T>(x) - static_cast<T>(zero_point)) * scale;
  }
};

template <class Q, class T>
void dequantize_all(const sdk::Call& call) {
  if (call.has_input(2)) return map<T, Q, T, Q>(call, Dequantize<T>{});
  map<T, Q, T>(call, Dequantize<T>{});
}

/// y = (x - zero_point) scale, in the arithmetic of y
///
/// Dtypes  x of i8, u8, i16, u16, i32; y of f32, f64.
template <class T>
void dequantize_linear(const sdk::Call& call) {
  sdk::with_type<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t>(call.inputs[0].dtype,
                                                                                       [&]<class Q>() { dequantize_all<Q, T>(call); });
}

constexpr int range_threads = 256;

/// The scale and the zero point of x, by one block.
__global__ void find_range(std::int64_t count, const float* x, float* out_scale, std::uint8_t* out_zero_point) {
  __shared__ float lows[range_threads], highs[range_threads];
  float low = 0, high = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += range_threads) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  lows[threadIdx.x] = low;
  highs[threadIdx.x] = high;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < range_threads; ++i) {
    low = lows[i] < low ? lows[i] : low;
    high = highs[i] > high ? highs[i] : high;
  }
  const float range = high - low, scale = (range == 0 ? 1.0f : range) / 255.0f;
  const float offset = 0.0f - low / scale;
  *out_scale = scale;
  *out_zero_point = static_cast<std::uint8_t>(to_nearest(offset < 0 ? 0.0f : offset > 255 ? 255.0f : offset));
}

__global__ void quantize_range(std::int64_t count, const float* x, const float* scale, const std::uint8_t* zero_point, std::uint8_t* y) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) y[i] = Quantize<std::uint8_t>{}(x[i], *scale, *zero_point);
}

/// scale = (high - low) / 255 for the range [low, high] of x and 0; zero_point = round(-low / scale); y = x quantised by them
///
/// Shapes  scale (), zero_point (); without elements the range is 0.
template <class T>
void dynamic_quantize_linear(const sdk::Call& call) {
  const std::int64_t count = call.inputs[0].count;
  const T* x = call.input<T>(0);
  T* scale = call.output<T>(1);
  auto* zero_point = call.output<std::uint8_t>(2);
  launch(stream_of(call), Geometry{1, range_threads}, find_range, count, x, scale, zero_point);
  if (count > 0) launch_over(call, count, quantize_range, count, x, scale, zero_point, call.output<std::uint8_t>(0));
}

}  // namespace
TENON_KERNEL_WITH(quantize_linear, (sdk::Traits{.strided = true}), float, double)
TENON_KERNEL_WITH(dequantize_linear, (sdk::Traits{.strided = true}), float, double)
TENON_KERNEL(dynamic_quantize_linear, float)
}  // namespace tenon::cuda
