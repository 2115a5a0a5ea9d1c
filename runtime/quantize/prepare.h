// SPDX-License-Identifier: Apache-2.0
// quantize/prepare.h - brings a graph into the form that quantisation starts from.
#pragma once

#include <tenon/context.h>
#include <tenon/graph.h>
#include <tenon/onnx.h>

namespace tenon::quantize {

/// The graph with constants in place of parameters, batch norms folded into convolutions, products of matrices and a bias as Gemm, and
/// means over an image as GlobalAveragePool with all dimensions kept. Graphs that differ only in the batch size stay equal but for it.
/// `separates_attention`: with the nodes of separate_attention().
Graph prepare(const Context& context, Graph graph, const onnx::ParameterValues& values, bool separates_attention = false);

/// Attention in f32 as its two products and a softmax. The products are of q and k themselves, and their scale that of the scores: one
/// rounding to integers less. An Attention with fewer heads of k and v than of q stays.
Graph separate_attention(Graph graph);

/// a w + b, w (k, n) and b (n) or (1, n) constant, a (m, k), as Gemm: ONNX has no other product whose bias is quantised with it.
Graph join_bias(Graph graph);
/// Whether a node is the mean over all spatial axes of an image (n, c, d...).
bool is_global_average_pool(const Graph& graph, const NodeInfo& node);
/// A mean over all spatial axes of an image (n, c, d...) that drops them, as one that keeps them, and a Reshape: GlobalAveragePool keeps
/// them.
Graph keep_pooled_dimensions(Graph graph);

}  // namespace tenon::quantize
