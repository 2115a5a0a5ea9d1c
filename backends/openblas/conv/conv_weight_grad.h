// SPDX-License-Identifier: Apache-2.0
// conv_weight_grad.h - dw of a convolution, without im2col of the batch.
#pragma once

#include <cstddef>

#include <tenon/sdk/kernel.h>

#include "conv/conv_geometry.h"

namespace tenon::openblas {

/// The bytes that weight_grad needs at call.scratch; bounded for any number of images.
template <class T>
std::size_t weight_grad_scratch(const ConvGeometry& g, const sdk::Call& call);

/// dw[o, c, kh, kw] = sum over n, oh, ow of dy[n, oh, ow, o] x[n, oh sh + kh dh - ph, ow sw + kw dw - pw, c], for all but depthwise
/// geometries. Inputs dy, x (channels last), output dw (row-major, as in the graph). Instantiated for bf16, float and double.
template <class T>
void weight_grad(const ConvGeometry& g, const sdk::Call& call);

}  // namespace tenon::openblas
