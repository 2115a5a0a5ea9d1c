// SPDX-License-Identifier: Apache-2.0
// bench/nets_json.h - a model as JSON, for peers.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <tenon/definition.h>

namespace tenon::bench {

/// {"name", "input": [3, 224, 224], "integers": false, "layers": [{"kind": "conv2d", "units": 64, ...}, ...]}; `integers`: samples are
/// indices of words. The parts of a residual are body and shortcut. Requires the model's input_shape.
nlohmann::ordered_json to_json(const ModelDefinition& model, bool integers);

}  // namespace tenon::bench
