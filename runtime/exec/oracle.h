// exec/oracle.h - work that is given to the backend which declares itself an oracle.
#pragma once

#include <tenon/context.h>
#include <tenon/graph.h>

namespace tenon::exec {

/// The graph with its constant parts worked out on the oracle's first device; as it is where no oracle is loaded.
Graph fold_on_oracle(const Context& context, Graph graph);

}  // namespace tenon::exec
