// conv_weight_grad_thin.h - dw of a convolution whose input has few channels: the first one of a net.
#pragma once

#include <cstddef>

#include <tenon/sdk/host.h>

#include "conv_geometry.h"

namespace tenon::openblas {

/// A row of the kernel has so few weights per output channel that their sums stay in registers while a line of pixels passes. No im2col is
/// made, and each product of x and dy is one multiply-add.
bool thin_weight_grad_pays(const ConvGeometry& g);

/// Bytes of working memory, aligned to 64.
std::size_t thin_weight_grad_scratch(const ConvGeometry& g, const sdk::Host& host, std::size_t element_size);

/// As weight_grad. Float and double.
/// Threads  tasks, and so the bits, depend on the geometry alone.
template <class T>
void thin_weight_grad(const ConvGeometry& g, const sdk::Host& host, const T* dy, const T* x, void* memory, T* dw);

}  // namespace tenon::openblas
