// SPDX-License-Identifier: Apache-2.0
// exec/oracle.h - the backend that declares itself an oracle, and constant folding on it.
#pragma once

#include <string>

#include <tenon/context.h>
#include <tenon/graph.h>

namespace tenon::exec {

/// The first device of the backend that declares itself an oracle; empty if none is loaded.
std::string oracle_device(const Context& context);

/// Folds the constant parts of the graph on the oracle's first device; returns it unchanged if no oracle is loaded.
Graph fold_on_oracle(const Context& context, Graph graph);

}  // namespace tenon::exec
