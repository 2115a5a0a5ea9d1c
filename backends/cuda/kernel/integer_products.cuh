// SPDX-License-Identifier: Apache-2.0
// integer_products.cuh - what a kernel does with the exact sums of products of 8-bit integers: store them, or requantise them.
#pragma once

#include <cstdint>
#include <limits>

#include "kernel/operands.h"

namespace tenon::cuda {

/// The operands of a product by index: operand a_zero_point is the zero point of a.
struct IntegerOperands {
  std::uint32_t a, a_zero_point, b, b_zero_point;
};
inline constexpr IntegerOperands sum_operands{0, 2, 1, 3}, requantised_operands{0, 2, 3, 5};

/// y[e] = sum
struct StoreSums {
  std::int32_t* y;

  __device__ void operator()(std::int64_t e, std::int64_t, std::uint32_t sum) const { y[e] = static_cast<std::int32_t>(sum); }
};

/// y[e] = saturate(round(f32(sum + bias[line]) factor) + y_zero_point), factor = a_scale b_scale[line] / y_scale, ties to even, and 0 for
/// NaN
template <class Y>
struct Requantise {
  Y* y;
  const float *a_scale, *b_scale, *y_scale;
  const Y* y_zero_point;
  const std::int32_t* bias;  ///< NULL: 0
  bool scale_per_line;

  explicit Requantise(const sdk::Call& call)
      : y(call.output<Y>(0)),
        a_scale(call.input<float>(1)),
        b_scale(call.input<float>(4)),
        y_scale(call.input<float>(6)),
        y_zero_point(call.input<Y>(7)),
        bias(input_or_null<std::int32_t>(call, 8)),
        scale_per_line(call.inputs[4].rank == 1) {}

  __device__ void operator()(std::int64_t e, std::int64_t line, std::uint32_t sum) const {
    if (bias != nullptr) sum += static_cast<std::uint32_t>(bias[line]);
    // No product is the operand of an addition, so none is fused: each operation is rounded.
    const float factor = *a_scale * b_scale[scale_per_line ? line : 0] / *y_scale;
    const float q = rintf(static_cast<float>(static_cast<std::int32_t>(sum)) * factor) + static_cast<float>(*y_zero_point);
    const float low = std::numeric_limits<Y>::lowest(), high = std::numeric_limits<Y>::max();
    y[e] = q != q ? Y{0} : static_cast<Y>(q < low ? low : q > high ? high : q);
  }
};

/// run.template operator()<B, Y>() for the dtypes of operand 3 and of the result, which are i8 or u8.
template <class Run>
void with_bytes(const sdk::Call& call, const Run& run) {
  const bool signed_b = call.inputs[3].dtype == TENON_DTYPE_I8, signed_y = call.outputs[0].dtype == TENON_DTYPE_I8;
  if (signed_b)
    return signed_y ? run.template operator()<std::int8_t, std::int8_t>() : run.template operator()<std::int8_t, std::uint8_t>();
  return signed_y ? run.template operator()<std::uint8_t, std::int8_t>() : run.template operator()<std::uint8_t, std::uint8_t>();
}

}  // namespace tenon::cuda
