// SPDX-License-Identifier: Apache-2.0
// conv_graph.h - convolutions as operation graphs of cuDNN.
#pragma once

#include <cstdint>

#include "conv/conv_problem.h"
#include "libraries/operation_graph.h"

namespace tenon::cuda {

/// Tensor ids in operation graphs.
enum : std::int64_t { graph_x = 1, graph_w, graph_y, graph_bias, graph_residual };

/// The operation graph of a problem; with `adds`, it includes bias and residual.
///
/// Errors  UNSUPPORTED: cuDNN does not support such a graph.
OperationGraph graph_of(const Cudnn& functions, const GraphTarget& target, const ConvProblem& problem, bool adds);

}  // namespace tenon::cuda
