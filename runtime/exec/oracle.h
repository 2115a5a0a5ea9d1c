// SPDX-License-Identifier: Apache-2.0
// exec/oracle.h - constant folding on the backend that declares itself an oracle.
#pragma once

#include <tenon/context.h>
#include <tenon/graph.h>

namespace tenon::exec {

/// Folds the constant parts of the graph on the oracle's first device; returns it unchanged if no oracle is loaded.
Graph fold_on_oracle(const Context& context, Graph graph);

}  // namespace tenon::exec
