// SPDX-License-Identifier: Apache-2.0
// Floats as integers of 8 or 16 bits, and back.
#include <algorithm>
#include <cmath>
#include <limits>

#include <tenon/sdk/element.h>

#include "map.h"

namespace tenon::reference {
namespace {

/// saturate(round(x / scale) + zero_point), ties to even; 0 for NaN.
template <class Q, class T>
Q quantized(T x, T scale, Q zero_point) {
  const T q = std::nearbyint(x / scale) + static_cast<T>(zero_point);
  if (std::isnan(q)) return 0;
  return static_cast<Q>(std::clamp(q, T{std::numeric_limits<Q>::lowest()}, T{std::numeric_limits<Q>::max()}));
}

template <class Q, class T>
void quantize_all(const sdk::Call& call) {
  const T* x = call.input<T>(0);
  const T* scale = call.input<T>(1);
  Q* y = call.output<Q>(0);
  if (!call.has_input(2)) {
    return sdk::for_each_element<2>(call, [&](std::int64_t i, const auto& at) { y[i] = quantized<Q>(x[at[0]], scale[at[1]], Q{0}); });
  }
  const Q* zero_point = call.input<Q>(2);
  sdk::for_each_element<3>(call, [&](std::int64_t i, const auto& at) { y[i] = quantized(x[at[0]], scale[at[1]], zero_point[at[2]]); });
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

template <class Q, class T>
void dequantize_all(const sdk::Call& call) {
  const Q* x = call.input<Q>(0);
  const T* scale = call.input<T>(1);
  T* y = call.output<T>(0);
  if (!call.has_input(2)) {
    return sdk::for_each_element<2>(call, [&](std::int64_t i, const auto& at) { y[i] = static_cast<T>(x[at[0]]) * scale[at[1]]; });
  }
  const Q* zero_point = call.input<Q>(2);
  sdk::for_each_element<3>(
      call, [&](std::int64_t i, const auto& at) { y[i] = (static_cast<T>(x[at[0]]) - static_cast<T>(zero_point[at[2]])) * scale[at[1]]; });
}

/// y = (x - zero_point) scale, in the arithmetic of y
///
/// Dtypes  x of i8, u8, i16, u16, i32; y of f32, f64.
template <class T>
void dequantize_linear(const sdk::Call& call) {
  sdk::with_type<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t>(call.inputs[0].dtype,
                                                                                       [&]<class Q>() { dequantize_all<Q, T>(call); });
}

/// scale = (high - low) / 255 for the range [low, high] of x and 0; zero_point = round(-low / scale); y = x quantised by them
///
/// Shapes  scale (), zero_point (); without elements the range is 0.
template <class T>
void dynamic_quantize_linear(const sdk::Call& call) {
  const T* x = call.input<T>(0);
  auto* y = call.output<std::uint8_t>(0);
  const std::int64_t count = call.inputs[0].count;
  T low = 0, high = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  const T range = high - low;
  const T scale = (range == 0 ? T{1} : range) / T{255};
  const auto zero_point = static_cast<std::uint8_t>(std::nearbyint(std::clamp(T{0} - low / scale, T{0}, T{255})));
  for (std::int64_t i = 0; i < count; ++i) y[i] = quantized(x[i], scale, zero_point);
  *call.output<T>(1) = scale;
  *call.output<std::uint8_t>(2) = zero_point;
}

}  // namespace
TENON_KERNEL_WITH(quantize_linear, (sdk::Traits{.strided = true, .elementwise = true}), float, double)
TENON_KERNEL_WITH(dequantize_linear, (sdk::Traits{.strided = true, .elementwise = true}), float, double)
TENON_KERNEL(dynamic_quantize_linear, float)
}  // namespace tenon::reference
