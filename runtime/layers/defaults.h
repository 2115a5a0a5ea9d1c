// SPDX-License-Identifier: Apache-2.0
// layers/defaults.h - the fields of layers whose default depends on the preset.
#pragma once

#include <tenon/definition.h>

namespace tenon::layers {

/// True for the initializers whose normal distribution may be truncated, as in Keras.
bool may_be_truncated(Initializer::Kind kind);
/// Sets the fields of all layers that are not set to the defaults of definition.preset.
void set_defaults(ModelDefinition& definition);
/// The same for one layer or cell.
void set_defaults(BatchNorm& layer, Preset preset);
void set_defaults(LSTMCell& cell, Preset preset);

}  // namespace tenon::layers
