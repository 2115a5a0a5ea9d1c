// exec/placement.h - which device runs which node, and why; nodes of one device gathered into partitions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tenon/program.h>

#include "exec/context_state.h"

namespace tenon::exec {

/// True if `text` matches the glob: `*` any run of characters, `?` one.
bool glob_matches(const std::string& glob, const std::string& text);

/// Under a mixed precision, what is left in f32 may use TF32.
tenon_plan_options plan_options(const Config& config, Precision precision);

/// The device of each node. The inner wish wins: the node's own, then the first placement rule that matches its name, then `fallback`.
/// A node that its device cannot do is the fallback policy's case. Errors: UNSUPPORTED under policy `error`, naming op, node, device,
/// the backend's reason and the devices that could; DEVICE_NOT_FOUND.
std::vector<std::shared_ptr<DeviceState>> place(ContextState& context, const Graph& graph, const std::string& fallback,
                                                const tenon_plan_options& options, PlacementReport& report);

/// Nodes of one device that may run as one plan, in an order in which they may run.
struct Partition {
  std::shared_ptr<DeviceState> device;
  std::vector<NodeId> nodes;
};
/// `single_nodes`: each node is a partition of its own, as it is on devices that take no more.
std::vector<Partition> partition(const Graph& graph, const std::vector<std::shared_ptr<DeviceState>>& device_of, bool single_nodes = false);

}  // namespace tenon::exec
