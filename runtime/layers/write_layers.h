// SPDX-License-Identifier: Apache-2.0
// layers/write_layers.h - layers in the form of model.yaml.
#pragma once

#include <vector>

#include <tenon/definition.h>

#include "yaml/write.h"

namespace tenon::layers {

/// The list `layers` of a model: items are names or maps of one key. Keys that have the default of the preset are left out.
/// `layers` have the defaults of the preset filled in. Errors  what no key can say.
Json write_layers(const std::vector<LayerDefinition>& layers, Preset preset);

}  // namespace tenon::layers
