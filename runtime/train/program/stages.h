// SPDX-License-Identifier: Apache-2.0
// train/program/stages.h - pipeline parallelism: which stage has which layers, and the graph of a training step divided among the stages.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <tenon/context.h>
#include <tenon/model.h>

namespace tenon::train {

/// The definition with a device for each layer: consecutive layers form the stages, in the order of parallel.devices. Where layers name
/// devices, a layer without one belongs to the stage of the layer before it. Else the sum of the squares of the stages' work is the
/// least, which is the FLOPs of the layers for a sample and their number of parameters. `layers`: those of a pass over the definition.
/// Errors  a device that is not listed, or not in the order of the list; a stage without layers.
ModelDefinition divide_into_stages(const ModelDefinition& definition, const std::vector<LayerSummary>& layers,
                                   const ParallelOptions& parallel, const Context& context);

/// What one stage computes without waiting for another: a forward pass, a backward pass, or both in the last stage.
struct PipelinePiece {
  /// Where an input of the graph comes from.
  struct Source {
    std::string input;       ///< of the whole graph; empty: a result of an earlier piece
    std::size_t piece = 0;   ///< that piece
    std::size_t output = 0;  ///< index of the result
  };
  std::size_t stage = 0;
  Graph graph = {};
  std::vector<Source> sources = {};  ///< of the inputs of `graph`, in their order
  /// Of the outputs of `graph`, whether other stages read them. In the last stage those of the whole graph are the first ones.
  std::vector<bool> sent = {};
};

/// Divides a graph with forward pass, losses and gradients. Pieces are in the order in which a micro-batch passes them: the forward passes
/// of all stages, the last one with its backward pass, then the backward passes from the last but one to the first. `devices`: those of the
/// stages, as nodes request them; a node without a request belongs to the stage that reads it, and the losses to the last one.
/// Errors  a forward pass that goes back to an earlier stage.
std::vector<PipelinePiece> divide_into_pieces(const Graph& graph, const std::vector<std::string>& devices);

}  // namespace tenon::train
