// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <vector>

#include "graph/passes.h"

namespace tenon::graph {

std::vector<bool> only_update(const Graph& graph) {
  std::vector<bool> needed(graph.values().size(), false), result(graph.nodes().size(), false);
  for (const GraphOutput& output : graph.outputs()) needed[output.value] = true;
  for (NodeId n = static_cast<NodeId>(graph.nodes().size()); n-- > 0;) {
    const NodeInfo& node = graph.nodes()[n];
    result[n] = std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return v != no_id && needed[v]; });
    for (const ValueId v : node.inputs) {
      if (v != no_id && !result[n]) needed[v] = true;
    }
  }
  return result;
}

void separate_updates(Graph& graph) {
  const std::vector<bool> separate = only_update(graph);
  GraphEditor editor(graph);
  for (std::size_t i = 0; i < graph.updates().size(); ++i) {
    const ValueId value = graph.updates()[i].value;
    const ValueInfo& info = editor.info(value);
    if (info.kind == ValueKind::computed && !separate[info.producer]) editor.set_update(i, editor.insert_copy(value));
  }
  editor.finish();
}

}  // namespace tenon::graph
