// SPDX-License-Identifier: Apache-2.0
// exec/immediate.h - small graphs that run at once, with their programs cached.
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

}  // namespace tenon::exec
