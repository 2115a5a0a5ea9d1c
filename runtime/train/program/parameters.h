// SPDX-License-Identifier: Apache-2.0
// train/program/parameters.h - the tensors of a model.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/data.h>
#include <tenon/program.h>

#include "train/program/builder.h"
#include "train/program/model_setup.h"

namespace tenon::train {

/// The forward pass for one sample, which describes layers and parameters. `samples`: for each input of the model. Nothing is allocated,
/// and devices need not exist. Errors  those of build; a glob of the options that matches no parameter.
Forward describe(Graph& graph, const ModelSetup& setup, std::span<const Shape> samples);
/// The inputs of a model for these samples, and the outputs of a pass.
std::vector<SampleType> input_types(const ModelSetup& setup, std::span<const Shape> samples);
std::vector<SampleType> output_types(const Forward& forward);
/// The shapes of the samples as far as the definition and its files have them all. Nothing: they follow from the data.
std::optional<std::vector<Shape>> known_samples(const ModelSetup& setup);

/// Weights, running statistics, optimizer state and accumulated gradients of a model. Each is created when it is first needed.
class Parameters {
 public:
  explicit Parameters(const ModelSetup& setup) : setup_(setup) {}

  /// Creates weights and running statistics with their initial values. `samples`: for each input. Errors  it was built for other samples.
  void build(std::span<const Shape> samples);
  /// Initial values of weights and statistics of these names, in place of those of the layers.
  void set_initial(std::map<std::string, Tensor> values) { initial_ = std::move(values); }
  /// Moves weights, statistics and optimizer state to the devices that their layers have now, while no program uses them.
  void move_to_devices();
  /// Applies another CompileOptions::trainable to a model that is built. Errors  a glob that matches no parameter.
  void choose_trainable();
  bool built() const { return !inputs_.empty(); }
  /// Name, dtype and shape of a sample for each input. Errors  not built yet.
  const std::vector<SampleType>& inputs() const;
  /// The same of the outputs. Errors  not built yet.
  const std::vector<SampleType>& outputs() const;
  /// The shape of the first input's sample. Errors  not built yet.
  const Shape& sample() const { return inputs().front().shape; }

  const std::shared_ptr<ParameterStore>& store() const { return store_; }
  const std::vector<ParameterSpec>& weights() const { return weights_; }
  /// Those of the weights that learn.
  std::vector<ParameterSpec> learned() const;
  const std::vector<LayerSummary>& layers() const { return layers_; }
  /// Dtypes and shapes by name, of what a checkpoint holds: weights and running statistics, and optimizer state if asked for.
  std::map<std::string, std::pair<DType, Shape>> types(bool with_optimizer_state) const;

  /// Creates the optimizer state, if sharded that of this rank, with the values given by give_optimizer_state.
  void make_optimizer_state();
  /// Values of the optimizer state by name, on the host, of which make_optimizer_state takes those that it has.
  void give_optimizer_state(const std::map<std::string, Tensor>& values) { given_state_ = values; }
  /// Frees the optimizer state but for that of loss scaling.
  void drop_optimizer_state();
  /// Whether it has been created; the same on all ranks, also on those that own nothing.
  bool has_optimizer_state() const { return has_optimizer_state_; }
  /// The names of the optimizer state of all ranks, with their owners, in the order of the parameters.
  std::vector<std::pair<std::string, int>> owners_of_state() const;
  void make_gradients();
  /// Creates the state of loss scaling, or resets it to its initial values. Does nothing without loss scaling.
  void reset_loss_scale();
  /// The mean of the accumulated gradients of a weight, of these parameters and those of other ranks, on the host. Errors  an unknown name.
  Tensor mean_gradient(const std::string& weight, std::span<const Parameters* const> others = {}) const;

 private:
  /// Errors  name the layer that asks for the device.
  Device device_of(const ParameterSpec& spec) const;
  void create(const ParameterSpec& spec, const std::string& name, const Tensor& value);
  void make_loss_scale();

  const ModelSetup& setup_;
  std::shared_ptr<ParameterStore> store_ = std::make_shared<ParameterStore>();
  std::vector<SampleType> inputs_, outputs_;  ///< known once weights exist
  std::map<std::string, Tensor> initial_;
  std::vector<ParameterSpec> weights_, running_statistics_;
  std::vector<LayerSummary> layers_;
  bool has_optimizer_state_ = false;
  std::set<std::string> optimizer_state_;  ///< names of what has been initialised
  std::map<std::string, Tensor> given_state_;
};

}  // namespace tenon::train
