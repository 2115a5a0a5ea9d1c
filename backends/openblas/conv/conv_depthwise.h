// SPDX-License-Identifier: Apache-2.0
// conv_depthwise.h - depthwise convolutions (ConvGeometry::depthwise), vectorised over the channels.
#pragma once

#include <cstddef>

#include <tenon/sdk/kernel.h>

#include "conv/conv_geometry.h"

namespace tenon::openblas {

/// y = epilogue(conv(x, w) + bias); bias may be NULL. x and y are channels last, w is packed by depthwise_weights. If the call has a second
/// output, that is Traits::pixel_means, only where depthwise_tiles_fit(); `scratch` then has depthwise_means_scratch() bytes. Instantiated
/// for bf16, float and double.
template <class T>
void depthwise_forward(const ConvGeometry& g, const sdk::Call& call, const T* x, const T* w, const T* bias, T* y, void* scratch);

/// dx from dy and w, in the same layouts.
template <class T>
void depthwise_input_grad(const ConvGeometry& g, const sdk::Call& call, const T* dy, const T* w, T* dx);

/// The transposed convolution: y = epilogue(dx + bias).
template <class T>
void depthwise_transpose(const ConvGeometry& g, const sdk::Call& call, const T* x, const T* w, const T* bias, T* y);

/// The bytes that depthwise_weight_grad needs at call.scratch.
template <class T>
std::size_t depthwise_weight_grad_scratch(const ConvGeometry& g);

/// dw (C, 1, kh, kw), row-major as in the graph, from dy and x.
template <class T>
void depthwise_weight_grad(const ConvGeometry& g, const sdk::Call& call, const T* dy, const T* x, T* dw);

/// Packs w (C, 1, kh, kw) as (kh, kw, C), ahead of time or at the call.
template <class T>
void depthwise_weights(const ConvGeometry& g, const T* w, T* out_w);

}  // namespace tenon::openblas
