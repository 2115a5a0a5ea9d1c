// conv_depthwise.h - convolutions that take each channel by itself (ConvGeometry::depthwise), vectorised over the channels.
#pragma once

#include <cstddef>

#include <tenon/sdk/kernel.h>

#include "conv_geometry.h"

namespace tenon::openblas {

/// y = epilogue(conv(x, w) + bias). Bias NULL: none. x, y: channels last; w as depthwise_weights left it. Float and double.
template <class T>
void depthwise_forward(const ConvGeometry& g, const sdk::Call& call, const T* x, const T* w, const T* bias, T* y);

/// dx from dy and w; the same layouts.
template <class T>
void depthwise_input_grad(const ConvGeometry& g, const sdk::Call& call, const T* dy, const T* w, T* dx);

/// The same with what a convolution's epilogue adds: y = epilogue(dx + bias).
template <class T>
void depthwise_transpose(const ConvGeometry& g, const sdk::Call& call, const T* x, const T* w, const T* bias, T* y);

/// Bytes at call.scratch that depthwise_weight_grad wants.
std::size_t depthwise_weight_grad_scratch(const ConvGeometry& g, const sdk::Call& call, std::size_t element_size);

/// dw (C, 1, kh, kw), row-major as in the graph, from dy and x.
template <class T>
void depthwise_weight_grad(const ConvGeometry& g, const sdk::Call& call, const T* dy, const T* x, T* dw);

/// w (C, 1, kh, kw) -> (kh, kw, C), as many elements: done when weights are packed, or at the call.
template <class T>
void depthwise_weights(const ConvGeometry& g, const T* w, T* out_w);

}  // namespace tenon::openblas
