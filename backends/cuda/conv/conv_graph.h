// SPDX-License-Identifier: Apache-2.0
// conv_graph.h - convolutions as operations of cuDNN's graphs.
#pragma once

#include "conv/conv_shape.h"
#include "libraries/operation_graph.h"

namespace tenon::cuda {

/// Adds a cross-correlation or one of its gradients, alpha 1, beta 0, with sums in `compute`: y, dx or dw is computed from the other two.
void add_convolution(OperationGraph& graph, ConvDirection direction, const ConvShape& window, cudnnDataType_t compute, const Descriptor& x,
                     const Descriptor& w, const Descriptor& y);

}  // namespace tenon::cuda
