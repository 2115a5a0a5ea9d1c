// SPDX-License-Identifier: Apache-2.0
// bench/served_model.h - a model from a file, with a request for each client.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/batcher.h>
#include <tenon/context.h>

#include "bench/benchmarks.h"

namespace tenon::bench {

struct ServedModel {
  Batcher::Function function;
  std::vector<NamedTensors> requests;  ///< one per client, of equal shapes and different elements
  std::int64_t samples = 1;            ///< of a request
  std::string inputs;                  ///< "x f32(1,3,224,224) random"
};

/// The model of an .onnx file, or of a model.yaml or train.yaml with initial weights.
/// Errors  those of loading and of --input and --shape; an input without a batch axis of any size; requests with more samples than
///         --max-batch.
ServedModel load_served_model(const Options& options, const Context& context);

}  // namespace tenon::bench
