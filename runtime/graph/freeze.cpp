// SPDX-License-Identifier: Apache-2.0
// freeze.cpp - replaces parameters by constants.
#include <set>

#include "graph/passes.h"

namespace tenon::graph {

Graph freeze(Graph graph, const std::function<Tensor(const std::string&)>& value_of) {
  std::set<ValueId> changing;
  for (const GraphUpdate& update : graph.updates()) changing.insert(update.parameter);
  GraphEditor editor(graph);
  for (ValueId v = 0; v < editor.values().size(); ++v) {
    if (editor.info(v).kind == ValueKind::parameter && !changing.contains(v)) editor.set_constant(v, value_of(editor.info(v).name));
  }
  editor.finish();
  return graph;
}

Graph drop_constants(Graph graph) {
  GraphEditor editor(graph);
  for (ValueId v = 0; v < editor.values().size(); ++v) {
    if (editor.info(v).kind == ValueKind::constant && editor.info(v).shape.rank() > 0) editor.set_constant(v, Tensor());
  }
  editor.finish();
  return graph;
}

}  // namespace tenon::graph
