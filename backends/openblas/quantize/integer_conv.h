// SPDX-License-Identifier: Apache-2.0
// integer_conv.h - convolutions of channels-last images of 8-bit integers: products of the weights with rows gathered from the image, a
// block of pixels at a time (implicit im2col), or channel by channel for depthwise convolutions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <tenon/sdk/kernel.h>

#include "conv/conv_geometry.h"

namespace tenon::openblas {

/// The packed weights of the geometry: bytes, their writing, and what they depend on besides their shape.
std::size_t integer_conv_weight_bytes(const ConvGeometry& g);
void pack_integer_conv_weights(const ConvGeometry& g, const sdk::Host& host, const std::uint8_t* w, tenon_dtype dtype, void* out_packed);
std::string integer_conv_form(const ConvGeometry& g);

/// Scratch memory besides the packed weights.
std::size_t integer_conv_scratch(const ConvGeometry& g, const sdk::Call& call);

/// y of the call, whose images have their channels last.
void integer_conv(const ConvGeometry& g, const sdk::Call& call, const void* packed, void* scratch);

}  // namespace tenon::openblas
