// SPDX-License-Identifier: Apache-2.0
// onnx/rules/windows.h - windows over images: the attributes that convolutions and pools share, and convolutions for the quantised ops.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/functions.h>

#include "onnx/node.h"

namespace tenon::onnx {

using ops::ConvOptions;
using ops::WindowOptions;

/// The attributes strides, dilations, pads, auto_pad and ceil_mode of a node with windows of the sizes `kernel` over x (N, C, d...), with
/// one element per spatial dimension in each list. Padding is resolved: it may be negative, and `same` is never set. The node fails on
/// lists of another length and on kernels, strides or dilations below 1. Images have one to three spatial dimensions; others are
/// unsupported.
WindowOptions window_options(Node& node, const Shape& x, const std::vector<std::int64_t>& kernel);

/// x without the elements that negative padding removes; that padding becomes 0.
Value without_negative_padding(Node& node, Value x, WindowOptions& options);

/// The number of elements from the first to the last one of a window.
std::int64_t window_extent(std::int64_t kernel, const WindowOptions& options, std::size_t i);

/// Conv of x (N, C, d...) with w (O, C / group, k...) and an optional b (O), with the attributes of the node. The operands have one
/// floating dtype.
Value convolve(Node& node, Value x, Value w, Value b = {});

/// ConvInteger of x and w of 8-bit integers, with the attributes of the node. Absent if they have three spatial dimensions.
Value convolve_integers(Node& node, Value x, Value w, Value x_zero_point, Value w_zero_point);

/// QLinearConv of x and w, with the attributes of the node. Absent if they have three spatial dimensions.
Value convolve_requantized(Node& node, const ops::Quantized& x, const ops::Quantized& w, Value y_scale, Value y_zero_point, Value bias);

/// ConvTranspose of x (N, C, d...) with w (C, O / group, k...) and an optional b (O), with the attributes of the node.
Value convolve_transposed(Node& node, Value x, Value w, Value b = {});

}  // namespace tenon::onnx
