// SPDX-License-Identifier: Apache-2.0
#include "quantize/parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::quantize {
namespace {

/// The quotient rounded to an integer, ties to even.
double rounded_quotient(float x, float scale) {
  return std::nearbyint(static_cast<double>(x / scale));
}

/// A scale that is a normal number, since reciprocals of smaller ones are infinite.
float usable(double scale) {
  return scale < std::numeric_limits<float>::min() ? 1.0F : static_cast<float>(scale);
}

/// The least float that is no smaller.
float rounded_up(double x) {
  const auto nearest = static_cast<float>(x);
  return static_cast<double>(nearest) < x ? std::nextafter(nearest, std::numeric_limits<float>::infinity()) : nearest;
}

/// The least scale of weights with an element of a bias: that is at most 2^30 times x_scale w_scale, which is a normal number.
float min_scale_for(float bias, float x_scale) {
  constexpr double largest = 1 << 30, least = std::numeric_limits<float>::min();
  return rounded_up(std::max(std::fabs(static_cast<double>(bias)) / largest, least) / static_cast<double>(x_scale));
}

}  // namespace

double Parameters::unclamped(double x) const {
  return std::nearbyint(x / scale) + static_cast<double>(zero_point);
}

Parameters parameters_of(Range range, DType dtype) {
  const double low = std::min(range.low, 0.0F), high = std::max(range.high, 0.0F);
  Parameters parameters{.dtype = dtype};
  if (dtype == DType::i8) {
    parameters.scale = usable(std::max(-low, high) / 127);
    return parameters;
  }
  parameters.scale = usable((high - low) / 255);
  parameters.zero_point = std::clamp<std::int64_t>(std::llrint(-low / static_cast<double>(parameters.scale)), 0, 255);
  return parameters;
}

QuantizedWeights quantize_weights(const Tensor& weights, std::int64_t axis, const Tensor& bias, float x_scale) {
  const Shape& shape = weights.shape();
  std::int64_t channels = 1, inner = weights.count();  // element i is of channel i / inner % channels
  if (axis >= 0) {
    channels = shape[static_cast<std::size_t>(axis)];
    inner = 1;
    for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
  const auto channel_of = [&](std::int64_t i) { return static_cast<std::size_t>(i / inner % channels); };
  const auto* w = weights.data<float>();
  std::vector<float> largest(static_cast<std::size_t>(channels));
  for (std::int64_t i = 0; i < weights.count(); ++i) largest[channel_of(i)] = std::max(largest[channel_of(i)], std::fabs(w[i]));
  QuantizedWeights result{Tensor::empty(DType::i8, shape), {}};
  const std::vector<float> b = bias.defined() ? bias.to_vector<float>() : std::vector<float>(largest.size());
  for (std::size_t c = 0; c < largest.size(); ++c) {
    const bool is_raised = bias.defined() && (largest[c] != 0 || b[c] != 0);
    const double least = is_raised ? static_cast<double>(min_scale_for(b[c], x_scale)) : 0;
    result.scales.push_back(usable(std::max(static_cast<double>(largest[c]) / 127, least)));
  }
  auto* q = result.q.data<std::int8_t>();
  for (std::int64_t i = 0; i < weights.count(); ++i) {
    q[i] = static_cast<std::int8_t>(std::clamp(rounded_quotient(w[i], result.scales[channel_of(i)]), -127.0, 127.0));
  }
  return result;
}

QuantizedBias quantize_bias(const Tensor& bias, float x_scale, const std::vector<float>& weight_scales) {
  QuantizedBias result{Tensor::empty(DType::i32, bias.shape()), {}};
  const std::vector<float> b = bias.to_vector<float>();
  auto* q = result.q.data<std::int32_t>();
  for (std::size_t c = 0; c < b.size(); ++c) {
    const float scale = usable(x_scale * weight_scales[c % weight_scales.size()]);
    result.scales.push_back(scale);
    const double quotient = std::nearbyint(static_cast<double>(b[c]) / static_cast<double>(scale));
    q[c] = static_cast<std::int32_t>(std::clamp(quotient, -0x1p31, 0x1p31 - 1));
  }
  return result;
}

}  // namespace tenon::quantize
