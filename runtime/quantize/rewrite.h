// SPDX-License-Identifier: Apache-2.0
// quantize/rewrite.h - the graph with QuantizeLinear and DequantizeLinear.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/graph.h>

#include "quantize/parameters.h"
#include "quantize/plan.h"

namespace tenon::quantize {

/// The graph as planned: operands of quantised nodes are values of DequantizeLinear, of activations by the parameters of their group, of
/// weights in i8, and of biases in i32.
Graph quantize_activations(Graph graph, const Plan& plan, const std::vector<Parameters>& groups);

/// The graph with the weights of all products in i8, and everything else in f32.
Graph quantize_weights_only(Graph graph, const Plan& plan);
/// The graph with MatMulNBits in place of all products, which are of matrices of weights: these have 4 bits, and a scale for each block.
Graph quantize_weights_in_blocks(Graph graph, const Plan& plan, std::int64_t block_size);

}  // namespace tenon::quantize
