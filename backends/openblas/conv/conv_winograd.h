// SPDX-License-Identifier: Apache-2.0
// conv_winograd.h - 3x3 and 5x5 convolutions of f32 and bf16 by Winograd's F(4x4, 3x3) and F(2x2, 5x5) in f32, with 25 and 36 % of the
// multiplications.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "conv/conv_geometry.h"

namespace tenon::openblas {

/// y[n, i, j, o] = sum over a, b < taps and c of x[n, i + a - pad_top, j + b - pad_left, c] w(a, b, c, o): a convolution of stride 1, or
/// its input gradient.
struct WinogradConv {
  std::int64_t images = 0;
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t out_height = 0, out_width = 0, out_channels = 0;
  std::int64_t pad_top = 0, pad_left = 0;
  std::int64_t taps = 3;  ///< 3 or 5

  std::int64_t tile_results() const { return 7 - taps; }  ///< along each dimension: a tile has 6x6 of x
  std::int64_t tile_rows() const { return (out_height + tile_results() - 1) / tile_results(); }
  std::int64_t tile_columns() const { return (out_width + tile_results() - 1) / tile_results(); }
  std::int64_t tiles() const { return images * tile_rows() * tile_columns(); }
};

/// winograd_fits says whether the convolution or its input gradient can use Winograd, winograd_pays whether that is faster than direct sums
/// whose multiply-adds take `direct_cost` times as long as those of f32.
bool winograd_pays(const WinogradConv& conv, double direct_cost);
bool winograd_fits(const ConvGeometry& g);
WinogradConv winograd_forward(const ConvGeometry& g);
WinogradConv winograd_input_grad(const ConvGeometry& g);

/// Floats of the transformed weights: 36 matrices (channels, out_channels) in panels.
std::int64_t winograd_weight_elements(const WinogradConv& conv);

/// w(a, b, c, o) is at w[c channel_step + o out_channel_step + taps a + b], or with `rotated` (by 180 degrees) at ... + taps taps - 1 -
/// taps a - b.
template <class T>
void winograd_weights(const WinogradConv& conv, const sdk::Host& host, const T* w, std::int64_t channel_step, std::int64_t out_channel_step,
                      bool rotated, float* out_weights);

template <class T>
struct WinogradOperands {
  const T* x = nullptr;
  const float* weights = nullptr;  ///< from winograd_weights
  T* y = nullptr;
  const T* bias = nullptr;      ///< (out_channels), or NULL
  const T* residual = nullptr;  ///< of y's shape, or NULL
  sdk::Activation activation = {};
};

std::size_t winograd_scratch(const WinogradConv& conv, const sdk::Host& host);

/// Y = A' [ sum over c of (G w G') * (B' x B) ] A on 6x6 tiles of x, which give 4x4 or 2x2 of y; * is the elementwise product, so that the
/// sums over c of each of the 36 elements are a matrix product (tiles, channels) (channels, out_channels). The interpolation points 0, 3/4,
/// -3/4, 3/2, -3/2 and infinity have a third of the error of the usual 0, 1, -1, 2, -2: within 10 epsilon of sum |x| |w| for 3x3 and
/// 4 for 5x5, measured. Results
/// of bf16 are rounded once, after the epilogue.
///
/// Source  Lavin, Gray: Fast Algorithms for Convolutional Neural Networks (2016), section 4; Barabasz, Anderson, Soodhalter, Gregg: Error
///         Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural Networks (2020), for the choice of points.
template <class T>
void winograd_conv(const WinogradConv& conv, const WinogradOperands<T>& operands, const sdk::Host& host, void* scratch);

}  // namespace tenon::openblas
