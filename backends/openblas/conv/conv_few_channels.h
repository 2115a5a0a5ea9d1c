// SPDX-License-Identifier: Apache-2.0
// conv_few_channels.h - forward convolutions of images with up to four channels in the graph's layout (N, C, H, W), such as the first layer
// of a net: neither the image nor rows of pixels are rearranged.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "conv/conv_direct.h"
#include "conv/conv_geometry.h"

namespace tenon::openblas {

/// Whether a Conv of images of this type with weights w (O, C / groups, kh, kw) takes x in the graph's layout.
bool is_of_few_channels(tenon_dtype dtype, const sdk::Operand& w, std::int64_t groups);

/// Packed weights are f32 panels; in elements of T.
template <class T>
std::int64_t few_channels_weight_elements(const ConvGeometry& g);
template <class T>
void few_channels_weights(const ConvGeometry& g, const T* w, T* out_packed);

template <class T>
std::size_t few_channels_scratch(const ConvGeometry& g, const sdk::Host& host);

/// The operands are those of direct_conv, but x is (N, C, H, W). Instantiated for bf16 and float; bf16 is computed in f32 and rounded once.
template <class T>
void few_channels_conv(const ConvGeometry& g, const DirectOperands<T>& operands, const sdk::Host& host, char* scratch);

}  // namespace tenon::openblas
