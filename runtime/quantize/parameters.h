// SPDX-License-Identifier: Apache-2.0
// quantize/parameters.h - scales and zero points, and what weights and biases become with them.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/dtype.h>
#include <tenon/tensor.h>

#include "quantize/ranges.h"

namespace tenon::quantize {

/// q = clamp(round(x / scale) + zero_point), ties to even.
struct Parameters {
  float scale = 1;
  std::int64_t zero_point = 0;
  DType dtype = DType::u8;

  std::int64_t lowest() const { return dtype == DType::u8 ? 0 : -128; }
  std::int64_t highest() const { return dtype == DType::u8 ? 255 : 127; }
  /// The integer of a float, not clamped, as a double, which may be infinite.
  double unclamped(double x) const;
};

/// u8: the range, extended to 0, over [0, 255]. i8: [-a, a] over [-127, 127], a the largest absolute value of the range, zero point 0. A
/// range of 0 alone gets the scale 1.
Parameters parameters_of(Range range, DType dtype);

/// Weights in i8 from -127 to 127, with scales along an axis.
struct QuantizedWeights {
  Tensor q;                   ///< i8, the shape of the weights
  std::vector<float> scales;  ///< one for each index of the axis, or one
};
/// Weights (f32, finite, dense, on the host) with a scale for each index of `axis`, or one for all if `axis` is negative: the largest
/// absolute value over 127, or 1 for zeros. `bias`: f32, finite, an element for each scale, which becomes integers of the scale
/// x_scale w_scale; or undefined. With it scales are large enough that an element is at most 2^30 times x_scale w_scale, so that it and the
/// sums of products fit in 32 bits, and that x_scale w_scale is a normal number; 1 is then the scale of zeros whose bias is 0.
QuantizedWeights quantize_weights(const Tensor& weights, std::int64_t axis, const Tensor& bias = {}, float x_scale = 1);

/// A bias in i32, and its scales x_scale w_scale.
struct QuantizedBias {
  Tensor q;                   ///< i32, the shape of the bias
  std::vector<float> scales;  ///< one for each element
};
/// bias: f32, finite, one element for each output channel. weight_scales: as many, or one, of quantize_weights with this bias.
QuantizedBias quantize_bias(const Tensor& bias, float x_scale, const std::vector<float>& weight_scales);

}  // namespace tenon::quantize
