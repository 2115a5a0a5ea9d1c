// SPDX-License-Identifier: Apache-2.0
// exec/immediate.h - ops and small graphs that run at once, with their programs cached.
#pragma once

#include <span>
#include <vector>

#include <tenon/context.h>
#include <tenon/graph.h>

namespace tenon::exec {

/// The outputs of the graph on `device`, as new tensors. The context keeps the program for graphs that are equal in inputs, constants, ops,
/// attributes and outputs.
/// Threads  any.
std::vector<Tensor> run_immediately(const Context& context, const Device& device, const Graph& graph, std::span<const Tensor> inputs);
/// The results of one op, whose absent operands are undefined tensors. Its graph is built only for a call unlike those before.
std::vector<Tensor> run_immediately(const Context& context, const Device& device, tenon_op op, std::span<const Tensor> operands,
                                    const Attributes& attributes, const NodeOptions& options);
/// The same on `device`, or, if it does not support the op, on another device, from which the results are copied to `device`. No fallback
/// policy applies: for ops whose results are the same bits on every device.
std::vector<Tensor> run_where_supported(const Context& context, const Device& device, tenon_op op, std::span<const Tensor> operands,
                                        const Attributes& attributes, const NodeOptions& options);

}  // namespace tenon::exec
