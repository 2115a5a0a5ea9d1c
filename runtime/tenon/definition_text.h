// SPDX-License-Identifier: Apache-2.0
// tenon/definition_text.h - models and the arguments of compile and fit as YAML text, of which JSON
// is a part. docs/yaml.md lists the keys.
//
//   Model model(model_from_yaml("layers: [flatten, dense: {units: 10, activation: softmax}]"));
//   model.compile(context, compile_from_yaml("{loss: sparse_categorical_crossentropy}").options);
//
// Errors   name the text, the line and the key: "<text>:2:3: unknown key 'unit'; did you mean
//          'units'?".
// Threads  any.
#pragma once

#include <string>
#include <vector>

#include <tenon/api.h>
#include <tenon/callbacks.h>
#include <tenon/definition.h>
#include <tenon/model.h>

namespace tenon {

/// A model in the form of a model.yaml. `name` is that of the text in messages.
TENON_API ModelDefinition model_from_yaml(const std::string& text,
                                          const std::string& name = "<text>");
/// The reverse: model_from_yaml(to_yaml(m)) is m with each default of its preset filled in. Files of
/// ONNX layers keep their paths.
/// Errors  what no model.yaml can say: an input dtype without a shape, a batch normalisation that is
///         neither Keras's nor PyTorch's.
TENON_API std::string to_yaml(const ModelDefinition& model);

/// The arguments of Model::compile.
struct CompileDefinition {
  CompileOptions options;
  std::vector<CallbackDefinition> callbacks;  ///< those that the optimizer's schedule needs in fit
};
/// The keys `optimizer`, `loss` (or `losses`), `metrics`, `trainable`, `frozen` and `parallel` of a
/// train.yaml.
TENON_API CompileDefinition compile_from_yaml(const std::string& text,
                                              const std::string& name = "<text>");

/// The arguments of Model::fit.
struct FitDefinition {
  FitOptions options;
  std::vector<CallbackDefinition> callbacks;
};
/// The keys `batch_size`, `epochs`, `shuffle`, `accumulate`, `steps_per_epoch` and `callbacks` of a
/// train.yaml, `initial_epoch`, and `validation_split`, `workers`, `prefetch`, `pinned` and
/// `shuffle_buffer`, which it has under `data`.
TENON_API FitDefinition fit_from_yaml(const std::string& text, const std::string& name = "<text>");

}  // namespace tenon
