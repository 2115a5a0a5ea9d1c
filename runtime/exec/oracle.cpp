// SPDX-License-Identifier: Apache-2.0
#include "exec/oracle.h"

#include <tenon/program.h>

#include "core/log.h"
#include "exec/context_state.h"
#include "graph/passes.h"

namespace tenon::exec {

std::string oracle_device(const Context& context) {
  for (const DeviceEntry& entry : context.state()->entries) {
    if ((entry.loaded->backend->info().flags & TENON_BACKEND_ORACLE) != 0) return entry.info.name;
  }
  return {};
}

Graph fold_on_oracle(const Context& context, Graph graph) {
  const std::string oracle = oracle_device(context);
  if (oracle.empty()) return graph;
  const graph::Evaluate evaluate = [&](const Graph& constants) {
    Program program(context, constants, {.device = oracle, .optimize = false, .precision = Precision::float32});
    std::vector<Tensor> values;
    for (const Tensor& value : program.run(std::span<const Tensor>())) values.push_back(value.to_host());
    return values;
  };
  try {
    return graph::fold_constants(graph, evaluate);
  } catch (const Error& error) {
    // If the oracle lacks an op or memory for the constant part, run the graph unchanged.
    log::info("constants are not folded: {}", error.what());
    return graph;
  }
}

}  // namespace tenon::exec
