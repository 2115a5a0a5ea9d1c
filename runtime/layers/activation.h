// SPDX-License-Identifier: Apache-2.0
// layers/activation.h - activation functions.
#pragma once

#include <vector>

#include <tenon/functions.h>
#include <tenon/layers.h>

#include "yaml/reader.h"

namespace tenon::layers {

/// The names in YAML.
const std::vector<yaml::Choice<tenon::Activation>>& activation_words();
/// True if the function has a parameter.
bool takes_alpha(tenon::Activation function);
/// Reads the keys of a function other than its name.
Activation read_activation(yaml::Section& keys, tenon::Activation function);
Value apply(const Activation& activation, Value x);

}  // namespace tenon::layers
