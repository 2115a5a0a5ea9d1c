// SPDX-License-Identifier: Apache-2.0
// train/head.h - the layers of a definition that stay when its head is replaced.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <tenon/definition.h>
#include <tenon/model.h>

#include "layers/sources.h"

namespace tenon::train {

/// Removes the layers after the one that `after` names, which is given or chosen, as "dense_1"; or, if it is a value of the graph of a
/// layer `onnx`, those after this layer, whose output it becomes. Returns how many stay. Errors  no layer and no value of that name.
std::size_t cut_after(ModelDefinition& definition, const std::string& after, layers::Sources& sources);

/// The names of the layers that are not inside of others, in order.
std::vector<std::string> names_of_layers(std::span<const LayerSummary> layers);

}  // namespace tenon::train
