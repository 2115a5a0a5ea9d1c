// SPDX-License-Identifier: Apache-2.0
// graph/patterns/recognize.h - a pass that finds expressions for which Tenon has one op: models that were exported from other frameworks
// have GELU, norms and attention in pieces.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include <tenon/graph.h>

namespace tenon::graph {

/// How often each pattern was found.
struct PatternCounts {
  std::map<std::string, std::size_t> by_name = {};  ///< "Gelu": 12
};
/// "recognized: Attention 12, Gelu 12, LayerNormalization 25"; "recognized: nothing".
std::string str(const PatternCounts& counts);

/// Replaces the expressions of the tables in graph/patterns by their op, wherever nothing else reads an inner value. Results stay what they
/// are up to rounding, and to what rows of attention that see no key are, for which frameworks disagree. Optional results of ops are kept,
/// so that gradients can be taken afterwards. Adds to `out_counts`, which may be null.
///
/// Weights are scaled, as computed values, only in graphs without updates. Dead nodes and ops that change nothing are removed on the way.
Graph recognize_patterns(Graph graph, PatternCounts* out_counts = nullptr);

}  // namespace tenon::graph
