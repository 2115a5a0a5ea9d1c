// SPDX-License-Identifier: Apache-2.0
// train/model_setup.h - what a model was made of and compiled with.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include <tenon/context.h>
#include <tenon/model.h>
#include <tenon/train_definition.h>

#include "layers/sources.h"
#include "train/builder.h"

namespace tenon::train {

/// What a training run compiles its model with.
CompileOptions compile_options(const TrainDefinition& definition);

/// The definition of a model and the arguments of Model::compile. The other parts of a model read them here.
struct ModelSetup {
  ModelDefinition definition;
  std::optional<Context> context;  ///< empty before compile
  CompileOptions options;
  /// The files that its layers import.
  std::shared_ptr<layers::Sources> sources = std::make_shared<layers::Sources>();

  /// Errors  compile() has not been called.
  const Context& need_context() const;
  /// What passes of the model are built with. Refers to this object.
  BuildOptions build_options() const;
  /// The device of everything without one of its own: the first of parallel_devices; empty: the context's default.
  std::string main_device() const { return options.parallel_devices.empty() ? std::string() : options.parallel_devices[0]; }
  /// The device of that name; of an empty name, the main one.
  Device device(const std::string& name = {}) const;
  /// The device that reads the batches of a fit; empty if there may be several.
  std::optional<Device> batch_device() const;
  /// Only f16 has too small an exponent range for unscaled gradients.
  bool scales_loss() const { return context->config().precision == Precision::mixed_float16; }

  /// Loss and metrics by name, with values of 0.
  Logs empty_logs() const;
  /// Sets the values of `out_logs` to those of the means: applies MetricRule::finish.
  void write_logs(std::span<const double> means, Logs& out_logs) const;
};

}  // namespace tenon::train
