// SPDX-License-Identifier: Apache-2.0
#include "conv/winograd_choice.h"

#include <algorithm>

#include <tenon/sdk/rounding.h>

#include "conv/winograd_weights.h"
#include "gemm/panels.h"

namespace tenon::openblas {
namespace {

/// The cost in multiply-adds, in double: the operands of a graph that is only asked about can have any size. With few tiles it is bound by
/// reading the weights. A transform does little arithmetic per byte. That of the weights is left out, though a call takes the time for it
/// where they are not packed ahead: the algorithm, and with it the bits, must not depend on that.
double cost_of(const WinogradConv& conv) {
  constexpr std::int64_t tiles_near = 10, tiles_far = 24, transform = 14;
  const std::int64_t tiles = std::max(conv.tiles(), winograd_weight_bytes(conv) > shared_winograd_weights ? tiles_far : tiles_near);
  const auto channels = static_cast<double>(conv.channels), padded = static_cast<double>(sdk::round_up(conv.out_channels, 16));
  const double transforms = static_cast<double>(conv.values()) * channels +
                            static_cast<double>(conv.points() * conv.points()) * static_cast<double>(conv.out_channels);
  return static_cast<double>(conv.values() * tiles) * channels * padded + static_cast<double>(transform * conv.tiles()) * transforms;
}

/// `conv` with the fastest tile.
WinogradConv with_best_tile(WinogradConv conv) {
  if (conv.stride == 2) {
    conv.results = 2;
    return conv;
  }
  WinogradConv best = conv;
  // With few terms in its sums F(3x3, 5x5) has a larger error than the product of an im2col matrix may have.
  const std::int64_t largest = conv.taps == 3 ? 4 : conv.channels < 8 ? 2 : 3;
  for (conv.results = largest; conv.results >= 2; --conv.results) {
    if (best.results == 0 || cost_of(conv) < cost_of(best)) best = conv;
  }
  return best;
}

/// Whether the sizes other than the stride have a form.
bool fits(const ConvGeometry& g) {
  const bool is_square = g.kernel_height == g.kernel_width && (g.kernel_width == 3 || g.kernel_width == 5);
  return g.groups == 1 && is_square && g.dilation_height == 1 && g.dilation_width == 1 && g.stride_height == g.stride_width;
}

}  // namespace

bool winograd_pays(const WinogradConv& conv, double direct_cost) {
  if (conv.results == 0) return false;
  const auto channels = static_cast<double>(conv.channels), padded = static_cast<double>(sdk::round_up(conv.out_channels, 16));
  const double pixels = static_cast<double>(conv.images) * static_cast<double>(conv.out_height) * static_cast<double>(conv.out_width);
  const bool is_bf16 = direct_cost < 1;
  // Strides of 2 save less of the arithmetic than large weights cost where a call has to transform them.
  if (conv.stride == 2 && winograd_weight_bytes(conv) > shared_winograd_weights) direct_cost *= 0.8;
  // Panels of bf16 have 32 columns, and their rows take as long to be gathered as the products with 16 more.
  const double columns = is_bf16 ? static_cast<double>(sdk::round_up(conv.out_channels, panel_width<sdk::BFloat16>) + 16) : padded;
  return cost_of(conv) < direct_cost * static_cast<double>(conv.taps * conv.taps) * pixels * channels * columns;
}

WinogradConv winograd_forward(const ConvGeometry& g) {
  if (!fits(g) || !(g.stride_width == 1 || (g.stride_width == 2 && g.kernel_width == 3))) return {};
  return with_best_tile({g.images, g.height, g.width, g.channels, g.out_height, g.out_width, g.out_channels, g.pad_top, g.pad_left,
                         g.kernel_width, g.stride_width});
}

WinogradConv winograd_input_grad(const ConvGeometry& g) {
  if (!fits(g) || g.stride_width != 1) return {};
  return with_best_tile({g.images, g.out_height, g.out_width, g.out_channels, g.height, g.width, g.channels, g.kernel_width - 1 - g.pad_top,
                         g.kernel_width - 1 - g.pad_left, g.kernel_width});
}

}  // namespace tenon::openblas
