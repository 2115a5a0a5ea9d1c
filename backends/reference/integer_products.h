// SPDX-License-Identifier: Apache-2.0
// integer_products.h - sums of products of 8-bit integers, and their requantisation.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/strided.h>

#include "image.h"

namespace tenon::reference {

/// The operands of a product by index: the zero point of a is a_zero_point.
struct IntegerOperands {
  std::uint32_t a, a_zero_point, b, b_zero_point;
};

/// Element i of zero points: of a scalar, the one; of an absent operand, 0.
template <class Q>
std::int64_t zero_point_at(const sdk::Call& call, std::uint32_t operand, std::int64_t i) {
  if (!call.has_input(operand)) return 0;
  return call.input<Q>(operand)[call.inputs[operand].rank == 0 ? 0 : i];
}

/// emit(index, column, sum) for every element of the product of two stacks of matrices, in row-major order.
template <class A, class B, class Emit>
void multiply_integers(const sdk::Call& call, const IntegerOperands& at, const Emit& emit) {
  const sdk::Operand &a = call.inputs[at.a], &b = call.inputs[at.b], &y = call.outputs[0];
  const std::int64_t k = a.shape[a.rank - 1];
  const std::int64_t rows = a.rank == 1 ? 1 : a.shape[a.rank - 2], columns = b.rank == 1 ? 1 : b.shape[b.rank - 1];
  sdk::Operand left = a, right = b;  // the stacks, without the dimensions of the matrices
  left.rank = a.rank < 2 ? 0 : a.rank - 2;
  right.rank = b.rank < 2 ? 0 : b.rank - 2;
  const std::uint32_t stack_rank = y.rank - (a.rank > 1 ? 1 : 0) - (b.rank > 1 ? 1 : 0);
  const std::array<sdk::Strides, 2> strides{sdk::broadcast_strides(left, stack_rank), sdk::broadcast_strides(right, stack_rank)};
  std::int64_t index = 0;
  sdk::for_each_element(y.shape, stack_rank, strides, [&](std::int64_t, const auto& stack) {
    const A* const from_a = call.input<A>(at.a) + stack[0];
    const B* const from_b = call.input<B>(at.b) + stack[1];
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t a_zero_point = zero_point_at<A>(call, at.a_zero_point, i);
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::int64_t b_zero_point = zero_point_at<B>(call, at.b_zero_point, j);
        std::int64_t sum = 0;
        for (std::int64_t p = 0; p < k; ++p) sum += (from_a[i * k + p] - a_zero_point) * (from_b[p * columns + j] - b_zero_point);
        emit(index++, j, sum);
      }
    }
  });
}

/// emit(index, filter, sum) for every element of the convolution of a with the filters b, in row-major order.
template <class X, class W, class Emit>
void convolve_integers(const sdk::Call& call, const IntegerOperands& at, const Emit& emit) {
  const sdk::Operand &image = call.inputs[at.a], &filters = call.inputs[at.b], &result = call.outputs[0];
  const auto& attributes = call.attr<tenon_attributes_conv>();
  const Windows windows(attributes, image.rank - 2, spatial_sizes(image), spatial_sizes(filters));
  const std::int64_t elements = count_of(spatial_sizes(image)), taps = count_of(spatial_sizes(filters));
  const std::int64_t group_channels = filters.shape[1], group_filters = filters.shape[0] / attributes.groups;
  const X* x = call.input<X>(at.a);
  const W* w = call.input<W>(at.b);
  const std::int64_t x_zero_point = zero_point_at<X>(call, at.a_zero_point, 0);
  std::int64_t index = 0;
  for (std::int64_t n = 0; n < image.shape[0]; ++n) {
    for (std::int64_t o = 0; o < filters.shape[0]; ++o) {
      const std::int64_t w_zero_point = zero_point_at<W>(call, at.b_zero_point, o);
      const X* const group = x + (n * image.shape[1] + o / group_filters * group_channels) * elements;
      for_each_index(spatial_sizes(result), [&](const Spatial& i, std::int64_t) {
        std::int64_t sum = 0;
        for (std::int64_t c = 0; c < group_channels; ++c) {
          windows.for_each_tap(i, [&](std::int64_t tap, std::int64_t place) {
            sum += (group[c * elements + place] - x_zero_point) * (w[(o * group_channels + c) * taps + tap] - w_zero_point);
          });
        }
        emit(index++, o, sum);
      });
    }
  }
}

/// An integer modulo 2^32.
inline std::int32_t wrapped(std::int64_t sum) {
  return static_cast<std::int32_t>(static_cast<std::uint64_t>(sum));
}

/// The quantisation of the result of QLinearMatMul and QLinearConv: operands 1, 4, 6 and 7.
template <class Y>
class Requantisation {
 public:
  explicit Requantisation(const sdk::Call& call) : call_(call), zero_point_(*call.input<Y>(7)) {}

  /// saturate(round(f32(sum) factor) + y_zero_point), factor = a_scale b_scale / y_scale of this line
  Y operator()(std::int32_t sum, std::int64_t line) const {
    const float b_scale = call_.input<float>(4)[call_.inputs[4].rank == 0 ? 0 : line];
    const float product = *call_.input<float>(1) * b_scale;
    const float factor = product / *call_.input<float>(6);
    const float scaled = static_cast<float>(sum) * factor;
    const float y = std::nearbyint(scaled) + static_cast<float>(zero_point_);
    const float low = std::numeric_limits<Y>::lowest(), high = std::numeric_limits<Y>::max();
    if (std::isnan(y)) return 0;
    return static_cast<Y>(y < low ? low : y > high ? high : y);
  }

 private:
  const sdk::Call& call_;
  Y zero_point_;
};

/// run.template operator()<B, Y>() for the dtypes of operand `b` and of the result, which are i8 or u8.
template <class Run>
void with_bytes(const sdk::Call& call, std::uint32_t b, const Run& run) {
  const bool signed_b = call.inputs[b].dtype == TENON_DTYPE_I8, signed_y = call.outputs[0].dtype == TENON_DTYPE_I8;
  if (signed_b)
    return signed_y ? run.template operator()<std::int8_t, std::int8_t>() : run.template operator()<std::int8_t, std::uint8_t>();
  return signed_y ? run.template operator()<std::uint8_t, std::int8_t>() : run.template operator()<std::uint8_t, std::uint8_t>();
}

}  // namespace tenon::reference
