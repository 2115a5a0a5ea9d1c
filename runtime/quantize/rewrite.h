// SPDX-License-Identifier: Apache-2.0
// quantize/rewrite.h - the graph with QuantizeLinear and DequantizeLinear.
#pragma once

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

}  // namespace tenon::quantize
