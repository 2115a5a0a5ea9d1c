// SPDX-License-Identifier: Apache-2.0
// freeze.cpp - replaces parameters by constants.
#include <tenon/error.h>

#include "graph/passes.h"

namespace tenon::graph {

Graph freeze(Graph graph, const std::function<Tensor(const std::string&)>& value_of) {
  if (!graph.updates().empty()) {
    throw Error("freeze: the graph updates parameter '" + graph.info(graph.updates()[0].parameter).name +
                "'; expected a graph that only reads parameters, such as a prediction");
  }
  GraphEditor editor(graph);
  for (ValueId v = 0; v < editor.values().size(); ++v) {
    if (editor.info(v).kind == ValueKind::parameter) editor.set_constant(v, value_of(editor.info(v).name));
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
