// SPDX-License-Identifier: Apache-2.0
// passes.h - the passes of arrange(), each in a file of its own, and what they share.
#pragma once

#include <cstdint>
#include <vector>

#include "graph_model.h"

namespace tenon::sdk {

struct GraphUses;

inline constexpr std::uint32_t none = TENON_NO_INDEX;

/// Inserts conversions around the nodes that compute in f32 what is stored in 16 bits.
void widen(GraphModel& graph, const KernelRow* rows);
/// Transposes images to channels last where kernels need it, and keeps them so from one such kernel to the next.
void put_channels_last(GraphModel& graph, const KernelRow* rows);
/// Replaces products and softmax of an attention of integers by one node, as Traits::quantized_attention says. The nodes must be in the
/// order of the core's graph. What cannot be one node stays as it is.
void fuse_quantized_attention(GraphModel& graph);
/// Whether it made this node.
bool is_quantized_attention(const Node& node);
/// Lets kernels with Traits::merges_heads do what the Transposes of their results do; what else reads these gets views.
void merge_heads(GraphModel& graph);
/// Shape ops whose result is not needed as a copy become views. Elementwise nodes compute in the order of memory of transposed operands
/// where compute_in_memory_order() says so.
void resolve_views(GraphModel& graph);
/// Lets an elementwise node whose operand is a transposed view compute all elements in the order in which that lies in memory, if what
/// reads the result makes dense views of it: the result becomes a transposed view of a dense value. `uses` are those of the graph before
/// it had views. Returns whether it did.
bool compute_in_memory_order(GraphModel& graph, const GraphUses& uses, Node& node);
/// Lets the kernel of a loss compute its gradient and the accuracy, as Traits::loss_companions says. The nodes must be in the order of the
/// core's graph.
void fuse_losses(GraphModel& graph);
/// Lets kernels with Traits::column_sums compute a ReduceSum over all but the last dimension of what they read. The nodes must be in the
/// order of the core's graph.
void fuse_column_sums(GraphModel& graph);
/// Fuses product, bias, residual and activation into one call. Of several results the first is continued. A 16-bit kernel computes its
/// epilogue before it rounds, so that the conversions around the fused ops are dropped. A result of another shape than the product's, whose
/// elements it has in order, becomes a view of it. An i32 result is dequantised first, and may be quantised last: Traits::dequantize.
void fuse_epilogues(GraphModel& graph);
/// Lets kernels with Traits::relu_grad compute the gradient of a relu that only they read. In 16 bits it stands between conversions, which
/// change nothing: no element is computed.
void fuse_relu_grads(GraphModel& graph);
/// Lets kernels with Traits::epilogue_relu_grad compute the gradient of a relu that alone reads their result, conversions as above.
void fuse_relu_grads_of_results(GraphModel& graph);
/// Lets kernels with Traits::scaled_input compute the product of an image and a factor of each image and channel that only they read,
/// conversions as above.
void fuse_input_scales(GraphModel& graph);
/// Lets kernels with Traits::pixel_means compute the mean over all pixels of their result.
void fuse_pixel_means(GraphModel& graph);
/// Replaces each chain of elementwise nodes by one node, which runs them piece by piece in the L1 cache.
void fuse_elementwise(GraphModel& graph);
/// Inserts copies for kernels that need dense operands.
void make_dense(GraphModel& graph, const KernelRow* rows);
/// Orders readers of donated inputs before the writer; inserts snapshots where that is impossible.
void order_for_donations(GraphModel& graph, const KernelRow* rows);
/// Takes conversions of parameters and constants that the plan does not overwrite out of the nodes: GraphModel::conversions.
void convert_weights(GraphModel& graph);
/// Lets copies run together, by the kernel `batched`. A copy waits until its result is read, or what it reads is overwritten; those that
/// wait then run together, with later ones that are the only readers of a value computed before. A copy from the workspace to an output,
/// which would keep more memory while it waits, does not wait.
void merge_copies(GraphModel& graph, const KernelRow& batched);
/// Puts nodes that Traits::run_together runs at once next to each other. Such a node waits until its result is read, or what it reads is
/// overwritten, or one of another function is there; those that wait then run together. They do not wait longer when they are
/// max_calls_together, or read more than 16 MiB of the workspace, which is kept for them.
void run_together(GraphModel& graph);

/// Lets neighbouring convolutions of which each reads the result of the one before, and a MaxPool after them, run in one call, as
/// Traits::chains says.
void chain_convolutions(GraphModel& graph);

/// True for a Cast of 16 bits to f32.
bool is_widening(const GraphModel& graph, const Node& node);

/// Whether the node's kernel reads all its operands that are this value with the strides that the value has. `operands` is a buffer.
bool reads_strides(const GraphModel& graph, const Node& node, std::uint32_t v, std::vector<Operand>& operands);
/// Strides of the view that `node`, a shape op, makes of a value with the layout of x; false if no strides describe it.
bool view_strides(const Node& node, const Value& x, Value& view);
/// A node that copies `from` to `to` with the backend's Reshape. Throws MissingCopy if it has no kernel for that.
Node copy_node(const GraphModel& graph, const KernelRow* rows, std::uint32_t from, std::uint32_t to, const Node& on_behalf_of);

}  // namespace tenon::sdk
