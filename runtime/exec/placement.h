// SPDX-License-Identifier: Apache-2.0
// exec/placement.h - assigns nodes to devices, with reasons, and groups them into partitions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tenon/program.h>

#include "exec/context_state.h"

namespace tenon::exec {

/// True if `text` matches the glob: `*` any run of characters, `?` one.
bool glob_matches(const std::string& glob, const std::string& text);

/// With a mixed precision, the remaining f32 ops may use TF32.
tenon_plan_options plan_options(const Config& config, Precision precision);

/// Warns, once per rule and context, of a placement rule that matches no node of the user's graph. Ops in immediate mode, graphs of one
/// node, are not what rules are about.
void check_rules(ContextState& context, const Graph& graph);

/// The device of each node. The innermost request wins: the node's own, then the first placement rule that matches its name, then
/// `fallback`. The fallback policy applies to a node that its device does not support. Errors: UNSUPPORTED under policy `error`, naming op,
/// node, device, the backend's reason and the devices that support it; DEVICE_NOT_FOUND.
std::vector<std::shared_ptr<DeviceState>> place(ContextState& context, const Graph& graph, const std::string& fallback,
                                                const tenon_plan_options& options, PlacementReport& report);

/// Nodes of one device that can run as one plan, in topological order.
struct Partition {
  std::shared_ptr<DeviceState> device;
  std::vector<NodeId> nodes;
};
/// `single_nodes`: one node per partition, as on devices that support no more.
std::vector<Partition> partition(const Graph& graph, const std::vector<std::shared_ptr<DeviceState>>& device_of, bool single_nodes = false);

}  // namespace tenon::exec
