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
bool is_of_few_channels(tenon_dtype dtype, const sdk::Operand& w, const tenon_attributes_conv& attributes);

// For float, and for bf16 (conv_few_channels_bf16.cpp), which differ in how lines of the image become rows of the product.

template <class T>
std::int64_t few_channels_weight_elements(const ConvGeometry& g);
template <>
std::int64_t few_channels_weight_elements<float>(const ConvGeometry& g);
template <>
std::int64_t few_channels_weight_elements<sdk::BFloat16>(const ConvGeometry& g);

template <class T>
void few_channels_weights(const ConvGeometry& g, const T* w, T* out_packed);
template <>
void few_channels_weights(const ConvGeometry& g, const float* w, float* out_packed);
template <>
void few_channels_weights(const ConvGeometry& g, const sdk::BFloat16* w, sdk::BFloat16* out_packed);

template <class T>
std::size_t few_channels_scratch(const ConvGeometry& g, const sdk::Host& host);
template <>
std::size_t few_channels_scratch<float>(const ConvGeometry& g, const sdk::Host& host);
template <>
std::size_t few_channels_scratch<sdk::BFloat16>(const ConvGeometry& g, const sdk::Host& host);

/// The operands are those of direct_conv, but x is (N, C, H, W).
template <class T>
void few_channels_conv(const ConvGeometry& g, const DirectOperands<T>& operands, const sdk::Host& host, char* scratch);
template <>
void few_channels_conv(const ConvGeometry& g, const DirectOperands<float>& operands, const sdk::Host& host, char* scratch);
template <>
void few_channels_conv(const ConvGeometry& g, const DirectOperands<sdk::BFloat16>& operands, const sdk::Host& host, char* scratch);

}  // namespace tenon::openblas
