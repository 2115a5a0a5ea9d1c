// SPDX-License-Identifier: Apache-2.0
// cli/explanation.h - what `tenon explain` and `tenon onnx check` say of a program: where its nodes run, its memory, and its roofline.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <tenon/context.h>
#include <tenon/onnx.h>
#include <tenon/program.h>

#include "cli/onnx_inputs.h"
#include "cli/roofline.h"

namespace tenon::cli {

struct Explanation {
  std::string title;             ///< first line of the text: "Training step of mnist_mlp with a batch of 100"
  nlohmann::ordered_json facts;  ///< first fields of the JSON: the model and what the program is for
  std::string notes = {};        ///< last lines of the text
  std::vector<DeviceInfo> devices;
  PlacementReport placement;
  std::function<const Program&()> program;  ///< called only if every node has a device
  std::function<Roofline()> roofline = {};  ///< called once; empty: none

  /// Whether every node has a device.
  bool runs() const;
};

/// Prints it as text, json or dot. Without a program, sets the exit code to 1 and prints text or JSON of the placement alone.
void show(const Explanation& explanation, const std::string& format);

/// The program of an ONNX model for these inputs, the patterns that were recognised in it and the inputs that it is made for. Refers to the
/// model and the context. `roofline`: with one, too.
Explanation explain(onnx::Model& model, const Context& context, const std::string& file, const OnnxInputs& inputs,
                    const std::optional<RooflineOptions>& roofline = std::nullopt);

}  // namespace tenon::cli
