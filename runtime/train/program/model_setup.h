// SPDX-License-Identifier: Apache-2.0
// train/program/model_setup.h - what a model was made of and compiled with.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/context.h>
#include <tenon/model.h>
#include <tenon/train_definition.h>

#include "exec/local_group.h"
#include "exec/process_group.h"
#include "layers/interface.h"
#include "layers/sources.h"
#include "train/program/builder.h"
#include "train/program/parallel.h"

namespace tenon::train {

/// What a training run compiles its model with.
CompileOptions compile_options(const TrainDefinition& definition);

/// Of the losses by output, that of `output`; the first one if it is empty; null: there is none.
const OutputLoss* loss_of(const TrainDefinition& definition, const std::string& output);

/// The definition of a model and the arguments of Model::compile. The other parts of a model read them here.
struct ModelSetup {
  /// A value of Logs.
  struct Logged {
    std::string name;
    double (*finish)(double mean);  ///< MetricRule::finish; null: the mean itself
  };

  /// Errors  those of layers::complete_interface.
  explicit ModelSetup(ModelDefinition model);
  /// Errors  losses that do not fit the outputs.
  void compile(const Context& on, CompileOptions with);
  /// For predictions: there are no losses.
  void compile(const Context& on);

  ModelDefinition definition;
  /// The files that its layers import.
  std::shared_ptr<layers::Sources> sources = std::make_shared<layers::Sources>();
  layers::Interface interface;
  std::optional<Context> context;  ///< empty before compile
  CompileOptions options;
  /// CompileOptions::losses, or for one output, of no name, its loss and metrics. Targets of programs are in this order.
  std::vector<OutputLoss> losses;
  std::vector<Logged> logged;  ///< in the order of the results of a program
  /// The parallel devices of this process; null: there is one.
  std::shared_ptr<exec::LocalGroup> group;
  /// The processes that train together; null: this one does alone.
  std::shared_ptr<exec::ProcessGroup> processes;
  /// The definition with the device of its stage on each layer, once describe() has divided it; null: no pipeline.
  std::shared_ptr<ModelDefinition> staged;
  int device_index = 0;  ///< of the devices of this process, the one that this setup is for

  /// Errors  compile() has not been called.
  const Context& need_context() const;
  /// Errors  there are none: several outputs, or a model that was compiled to predict.
  const std::vector<OutputLoss>& need_losses() const;
  /// Errors  more than one input, or one output: `call` is for one of each.
  void expect_one_of_each(const char* call) const;
  /// The names of custom losses, joined; empty: there are none.
  std::string custom_losses() const;
  /// Names of a program's inputs: x and y of a model with one input or loss.
  std::string input_name(std::size_t input) const;
  std::string target_name(std::size_t loss) const;
  std::vector<std::string> input_names() const;   ///< of `interface`
  std::vector<std::string> output_names() const;  ///< of `interface`
  /// What passes of the model are built with. Refers to this object.
  BuildOptions build_options() const;
  /// The device of everything without one of its own: that of its rank; empty: the context's default.
  std::string main_device() const {
    const std::vector<std::string>& devices = options.parallel.devices;
    return devices.empty() ? std::string() : devices[static_cast<std::size_t>(device_index)];
  }
  bool is_pipeline() const { return staged != nullptr; }
  /// The definition that passes are built from.
  const ModelDefinition& placed_definition() const { return is_pipeline() && !staged->layers.empty() ? *staged : definition; }
  /// Errors  fewer samples in a batch than a pipeline has micro-batches.
  void expect_micro_batches(std::int64_t batch_size) const;
  /// The device of the losses: that of the last stage, or the main one.
  std::string loss_device() const { return is_pipeline() ? options.parallel.devices.back() : main_device(); }
  /// The setup of another device of the group.
  ModelSetup for_device(int other) const {
    ModelSetup setup = *this;
    setup.device_index = other;
    return setup;
  }
  /// The number of parallel devices of this process, at least 1. All processes have as many.
  int device_count() const { return group == nullptr ? 1 : group->device_count(); }
  /// The device's number among those of all processes, in the order of the processes, and how many there are.
  int rank() const { return (processes == nullptr ? 0 : processes->rank() * device_count()) + device_index; }
  int rank_count() const { return (processes == nullptr ? 1 : processes->size()) * device_count(); }
  /// The shards of the optimizer state of these parameters, which all learn.
  Shards shards_of(const std::vector<ParameterSpec>& learned) const;
  bool shards_optimizer() const { return options.parallel.shard_optimizer; }
  /// Whether each rank has this training state for its own parameters only.
  bool shards(const std::string& name) const;
  /// Whether batches are shared among ranks.
  bool shares_batches() const { return group != nullptr || processes != nullptr; }
  /// BatchOptions::part of this process; null: it reads whole batches.
  std::function<std::pair<std::int64_t, std::int64_t>(std::int64_t samples)> part_of_batches() const;
  /// The part of a batch that this rank computes.
  BatchPart part(std::int64_t batch) const { return part_of(batch, rank(), rank_count(), options.parallel.shares); }
  /// That of all devices of this process, which is what it reads. processes is not null.
  BatchPart part_of_process(std::int64_t batch) const { return part_of(batch, processes->rank(), processes->size(), {}); }
  /// Of the `rows` samples that this process has, those of this rank. `share`: what they are of the whole batch; its `whole` is 0 without
  /// processes: they are the batch.
  BatchPart part_within(std::int64_t rows, const layers::BatchShare& share) const;
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
