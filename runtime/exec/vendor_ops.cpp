// SPDX-License-Identifier: Apache-2.0
#include "exec/vendor_ops.h"

#include <fmt/format.h>

#include <vector>

#include <tenon/graph.h>

#include "graph/vendor_ops.h"

namespace tenon::exec {

void use_own_ids(const LoadedBackend& loaded, AbiGraph& lowered) {
  for (tenon_node& node : lowered.nodes) {
    if (graph::is_vendor_op(node.op)) node.op = loaded.vendor_ops.own_id(node.op).value_or(node.op);
  }
}

std::string why_not_declared(const LoadedBackend& loaded, tenon_op op) {
  if (!graph::is_vendor_op(op) || loaded.vendor_ops.own_id(op)) return {};
  const std::vector<std::string> others = graph::backends_with(op);
  return fmt::format("backend '{}' does not declare {}; backends that do: {}", loaded.backend->name(), op_name(op),
                     others.empty() ? "none" : fmt::format("{}", fmt::join(others, ", ")));
}

}  // namespace tenon::exec
