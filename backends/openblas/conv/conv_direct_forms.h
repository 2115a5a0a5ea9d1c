// SPDX-License-Identifier: Apache-2.0
// conv_direct_forms.h - the direct convolutions that make a convolution and its input gradient, and their packed weights.
#pragma once

#include <cstdint>
#include <string>

#include "conv/conv_direct.h"
#include "conv/conv_geometry.h"

namespace tenon::openblas {

/// The forward convolution.
DirectConv forward_conv(const ConvGeometry& g);

/// The phases of the input gradient. A phase consists of the dx pixels whose coordinates plus padding have the same remainders by the
/// strides.
std::int64_t input_grad_phases(const ConvGeometry& g);
DirectConv input_grad_conv(const ConvGeometry& g, std::int64_t phase);

/// Elements of the packed weights of all phases, one after another.
template <class T>
std::int64_t input_grad_elements(const ConvGeometry& g);

/// The weights (O, C / groups, kh, kw) of one group, in the order in which rows of the forward convolution are gathered.
template <class T>
PanelSource<T> forward_panels(const ConvGeometry& g, const T* w, std::int64_t group);

/// Packs the weights, of bf16, float or double, in the order in which direct_conv reads them.
template <class T>
void pack_forward(const ConvGeometry& g, const sdk::Host& host, const T* w, T* out_packed);
template <class T>
void pack_input_grad(const ConvGeometry& g, const sdk::Host& host, const T* w, T* out_packed);

/// What packed weights depend on, besides the shape of the weights: Traits::pack_form.
std::string forward_form(const ConvGeometry& g, const sdk::Host& host);
std::string input_grad_form(const ConvGeometry& g, const sdk::Host& host);

}  // namespace tenon::openblas
