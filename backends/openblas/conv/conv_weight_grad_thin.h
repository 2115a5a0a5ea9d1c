// SPDX-License-Identifier: Apache-2.0
// conv_weight_grad_thin.h - dw of a convolution whose input has few channels, such as the first one of a network.
#pragma once

#include <cstddef>

#include <tenon/sdk/host.h>

#include "conv/conv_geometry.h"

namespace tenon::openblas {

/// Whether a row of the kernel has so few weights per output channel that their sums stay in registers while a line of pixels is processed.
/// This needs no im2col, and each product of x and dy is one multiply-add.
bool thin_weight_grad_pays(const ConvGeometry& g);

/// Bytes of working memory, aligned to 64.
std::size_t thin_weight_grad_scratch(const ConvGeometry& g, const sdk::Host& host, std::size_t element_size);

/// Computes the same as weight_grad. Instantiated for float and double.
/// Threads  tasks, and hence the bits, depend only on the geometry.
template <class T>
void thin_weight_grad(const ConvGeometry& g, const sdk::Host& host, const T* dy, const T* x, void* memory, T* dw);

}  // namespace tenon::openblas
