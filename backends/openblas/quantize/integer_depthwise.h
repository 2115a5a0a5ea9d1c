// SPDX-License-Identifier: Apache-2.0
// integer_depthwise.h - depthwise convolutions of channels-last images of 8-bit integers.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "conv/conv_geometry.h"
#include "quantize/integer_products.h"

namespace tenon::openblas {

/// The packed weights, of i8 or u8, and their packing.
std::size_t integer_depthwise_weight_bytes(const ConvGeometry& g);
void pack_integer_depthwise(const ConvGeometry& g, const std::uint8_t* w, tenon_dtype dtype, void* out_packed);

/// Scratch memory besides the packed weights.
std::size_t integer_depthwise_scratch(const ConvGeometry& g, const sdk::Call& call, const IntegerOperands& at);

void integer_depthwise(const ConvGeometry& g, const sdk::Call& call, const IntegerOperands& at, const void* packed, void* scratch);

}  // namespace tenon::openblas
