// SPDX-License-Identifier: Apache-2.0
// conv_shape.h - the geometry of a convolution. Host-side logic; kernels read the struct.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include <tenon/sdk/kernel.h>

namespace tenon::cuda {

/// Which of image, filter and result is computed from the other two.
enum class ConvDirection : std::uint32_t { forward, data_gradient, filter_gradient };

/// x (N, C, H, W), w (K, C / groups, R, S), y (N, K, P, Q); pairs are rows and columns. Images of one dimension have one row.
struct ConvShape {
  std::int64_t batch = 0, channels = 0, filters = 0, groups = 1;
  std::int64_t image[2] = {}, kernel[2] = {}, result[2] = {};
  std::int64_t strides[2] = {}, dilations[2] = {}, pads_before[2] = {}, pads_after[2] = {};

  constexpr std::int64_t image_count() const { return batch * channels * image[0] * image[1]; }
  constexpr std::int64_t filter_count() const { return filters * (channels / groups) * kernel[0] * kernel[1]; }
  constexpr std::int64_t result_count() const { return batch * filters * result[0] * result[1]; }
  /// Whether every size fits in 32 bits, the groups divide the channels and the filters, and the result has the size that image, kernel,
  /// strides, dilations and padding give.
  bool is_consistent() const;
  /// Whether the padding before and after an image differs in some dimension.
  bool has_uneven_padding() const;
  auto operator<=>(const ConvShape&) const = default;
};

/// Images of operands with `channels_last` are (N, d..., C); filters are always (K, C / groups, k...).
ConvShape conv_shape(const sdk::Operand& x, const sdk::Operand& w, const sdk::Operand& y, const tenon_attributes_conv& attributes,
                     bool channels_last);

/// "x (32,64,56,56), w (64,64,3,3), strides 1,1, pads 1,1-1,1, dilations 1,1, groups 1"
std::string text_of(const ConvShape& shape);

}  // namespace tenon::cuda
