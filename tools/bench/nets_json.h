// bench/nets_json.h - a model in words that peers read.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <tenon/definition.h>

namespace tenon::bench {

/// {"name", "input": [3, 224, 224], "integers": false, "layers": [{"kind": "conv2d", "units": 64, ...}, ...]}; `integers`: samples are
/// numbers of words. A residual's parts are body and shortcut. Needs the model's input_shape.
nlohmann::ordered_json to_json(const ModelDefinition& model, bool integers);

}  // namespace tenon::bench
