// SPDX-License-Identifier: Apache-2.0
// winograd_choice.h - which of Winograd's forms a convolution has, and whether it is faster than direct sums: both by an estimate of the
// cost.
#pragma once

#include "conv/conv_geometry.h"
#include "conv/winograd_geometry.h"

namespace tenon::openblas {

/// The fastest form of a convolution, and of the input gradient of one; its `results` are 0 if there is none.
WinogradConv winograd_forward(const ConvGeometry& g);
WinogradConv winograd_input_grad(const ConvGeometry& g);

/// Whether `conv` is faster than direct sums whose multiply-adds take `direct_cost` times as long as those of f32.
bool winograd_pays(const WinogradConv& conv, double direct_cost);

}  // namespace tenon::openblas
