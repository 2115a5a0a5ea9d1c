// SPDX-License-Identifier: Apache-2.0
#include "exec/oracle.h"

#include <tenon/program.h>

#include "core/log.h"
#include "exec/context_state.h"
#include "graph/passes.h"

namespace tenon::exec {
namespace {

std::string oracle_of(const ContextState& state) {
  for (const DeviceEntry& entry : state.entries) {
    if ((entry.loaded->backend->info().flags & TENON_BACKEND_ORACLE) != 0) return entry.info.name;
  }
  return {};
}

}  // namespace

Graph fold_on_oracle(const Context& context, Graph graph) {
  const std::string oracle = oracle_of(*context.state());
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
