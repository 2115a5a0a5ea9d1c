// SPDX-License-Identifier: Apache-2.0
// integer_conv.h - convolutions of channels-last images of 8-bit integers: products of the weights with rows gathered from the image, a
// block of pixels at a time (implicit im2col), or read from copies of its lines; channel by channel for depthwise convolutions
// (integer_depthwise.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <tenon/sdk/kernel.h>

#include "quantize/integer_products.h"

namespace tenon::openblas {

/// The functions of the kernels' traits; `at` says which operands are image, weights and their zero points, and what the result is.
std::size_t integer_conv_scratch(const sdk::Call& call, const IntegerOperands& at);
std::size_t integer_conv_pack_size(const sdk::Call& call, const IntegerOperands& at, std::uint32_t input);
void pack_integer_conv(const sdk::Call& call, const IntegerOperands& at, void* out_packed);
std::string integer_conv_form(const sdk::Call& call, const IntegerOperands& at);

/// y = conv(x - x_zero_point, w - w_zero_point), modulo 2^32, or its requantisation. y has elements.
///
/// Shapes  x and y channels last, w as in the graph; x_zero_point (), w_zero_point () or (O), or absent for 0.
void integer_conv(const sdk::Call& call, const IntegerOperands& at);

template <const IntegerOperands& at>
inline constexpr sdk::Traits integer_conv_traits{
    .channels_last = {.inputs = 1, .outputs = 1},
    .scratch = [](const sdk::Call& call) { return integer_conv_scratch(call, at); },
    .pack_size = [](const sdk::Call& call, std::uint32_t input) { return integer_conv_pack_size(call, at, input); },
    .pack = [](const sdk::Call& call, std::uint32_t, void* out_packed) { pack_integer_conv(call, at, out_packed); },
    .pack_form = [](const sdk::Call& call, std::uint32_t) { return integer_conv_form(call, at); }};

}  // namespace tenon::openblas
