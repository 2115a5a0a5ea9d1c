// SPDX-License-Identifier: Apache-2.0
// exec/placement.h - assigns nodes to devices, with reasons, and groups them into partitions.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/error.h>
#include <tenon/program.h>

#include "exec/context_state.h"

namespace tenon::exec {

/// TENON_MATH_*. With a mixed precision, the remaining f32 ops may use TF32.
std::uint32_t math_of(Precision precision);
tenon_plan_options plan_options(const Config& config, Precision precision);

/// Warns, once per rule and context, of a placement rule that matches no node of the user's graph. Ops in immediate mode, graphs of one
/// node, are not what rules are about.
void check_rules(ContextState& context, const Graph& graph);
/// Some nodes of a graph cannot be placed; the text describes the first.
class PlacementError : public Error {
 public:
  PlacementError(const std::string& text, PlacementReport all) : Error(Status::unsupported, text), report(std::move(all)) {}
  PlacementReport report;  ///< of all nodes; those that cannot be placed have no device
};

/// The device of each node. The innermost request wins: the node's own, then the first placement rule that matches its name, then
/// `fallback`. Inputs that are views become dense if their device does not support a node that reads them; the report lists these copies.
/// The fallback policy applies to a node that its device does not support then, either. `fixed`: as for partition(). Errors: PlacementError
/// under policy `error`, naming op, node, device, the backend's reason and the devices that support it; DEVICE_NOT_FOUND.
std::vector<std::shared_ptr<DeviceState>> place(ContextState& context, Graph& graph, const std::string& fallback,
                                                const tenon_plan_options& options, const std::vector<bool>& fixed, PlacementReport& report);

/// `device` if it supports every node of the graph, else the first device that does, else `device`.
std::shared_ptr<DeviceState> able_device(ContextState& context, Graph graph, const std::shared_ptr<DeviceState>& device);

/// By node, of a graph with updates: whether it is a frozen layer, computed from inputs and fixed parameters and from no others, or is
/// needed by one, as what prepares its input. Views of parameters that other nodes read stay with these.
std::vector<bool> fixed_nodes(const Graph& graph, const std::vector<bool>& fixed_values);

/// Nodes of one device that can run as one plan, in topological order.
struct Partition {
  std::shared_ptr<DeviceState> device;
  std::vector<NodeId> nodes;
  bool fixed = false;       ///< fixed nodes only
  bool collective = false;  ///< its only node is a collective, which is no plan
  std::uint32_t after = 0;  ///< how many of the graph's collectives have to be finished before it
};
/// `single_nodes`: one node per partition, as on devices that support no more. `fixed`: nodes whose partitions have no others, except on
/// devices that record runs: a recording is valid in the epochs of all its plans or in none.
std::vector<Partition> partition(const Graph& graph, const std::vector<std::shared_ptr<DeviceState>>& device_of,
                                 const std::vector<bool>& fixed, bool single_nodes = false);

}  // namespace tenon::exec
