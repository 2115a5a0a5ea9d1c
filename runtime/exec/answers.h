// SPDX-License-Identifier: Apache-2.0
// exec/answers.h - asks a device which nodes of a graph it can run together.
#pragma once

#include <vector>

#include <tenon/backend.h>
#include <tenon/graph.h>

#include "exec/context_state.h"

namespace tenon::exec {

/// A device's answers for a plan of `nodes`, which are in topological order. Its backend sees no dtype that the device does not compute
/// with, and no vendor's op that it does not declare. A backend that fails the question is asked about each node by itself, with one
/// warning; a node that it fails on is refused with its text. Errors: a device that is lost, or of another process.
std::vector<tenon_answer> ask(ContextState& context, DeviceState& device, const Graph& graph, const std::vector<NodeId>& nodes,
                              const tenon_plan_options& options);

/// The same, with dense operands where the device refuses views or cannot be given them: those values of the graph lose their strides, and
/// the report lists them.
std::vector<tenon_answer> ask_with_copies(ContextState& context, DeviceState& device, Graph& graph, const std::vector<NodeId>& nodes,
                                          const tenon_plan_options& options, PlacementReport& report);

}  // namespace tenon::exec
