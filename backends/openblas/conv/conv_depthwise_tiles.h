// SPDX-License-Identifier: Apache-2.0
// conv_depthwise_tiles.h - forward depthwise convolutions of the usual kernels in register tiles of neighbouring pixels.
#pragma once

#include <tenon/sdk/kernel.h>

#include "conv/conv_geometry.h"

namespace tenon::openblas {

/// Whether these tiles serve the convolution: kernels of 3x3 and 5x5 with strides of 1 or 2, without dilation.
bool depthwise_tiles_fit(const ConvGeometry& g);

/// depthwise_forward() of conv_depthwise.h, with the same sums in the same order. Instantiated for bf16, float and double.
template <class T>
void depthwise_tiles(const ConvGeometry& g, const sdk::Call& call, const T* x, const T* w, const T* bias, T* y);

}  // namespace tenon::openblas
