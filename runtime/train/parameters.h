// SPDX-License-Identifier: Apache-2.0
// train/parameters.h - the tensors of a model.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tenon/program.h>

#include "train/builder.h"
#include "train/model_setup.h"

namespace tenon::train {

/// The forward pass for one sample, which describes layers and parameters. Nothing is allocated, and devices need not exist.
/// Errors  those of build; a glob of the options that matches no parameter.
Forward describe(Graph& graph, const ModelSetup& setup, const Shape& sample);

/// Weights, running statistics, optimizer state and accumulated gradients of a model. Each is created when it is first needed.
class Parameters {
 public:
  explicit Parameters(const ModelSetup& setup) : setup_(setup) {}

  /// Creates weights and running statistics with their initial values. Errors  it was built for other samples.
  void build(const Shape& sample);
  /// Applies another CompileOptions::trainable to a model that is built. Errors  a glob that matches no parameter.
  void choose_trainable();
  bool built() const { return sample_.has_value(); }
  /// The shape of a sample. Errors  not built yet.
  const Shape& sample() const;

  const std::shared_ptr<ParameterStore>& store() const { return store_; }
  const std::vector<ParameterSpec>& weights() const { return weights_; }
  /// Those of the weights that learn.
  std::vector<ParameterSpec> learned() const;
  const std::vector<LayerSummary>& layers() const { return layers_; }
  /// Dtypes and shapes by name, of what a checkpoint holds: weights and running statistics, and optimizer state if asked for.
  std::map<std::string, std::pair<DType, Shape>> types(bool with_optimizer_state) const;

  void make_optimizer_state();
  void make_gradients();
  /// Creates the state of loss scaling, or resets it to its initial values. Does nothing without loss scaling.
  void reset_loss_scale();
  /// The mean of the accumulated gradients of a weight, on the host. Errors  an unknown name.
  Tensor mean_gradient(const std::string& weight) const;

 private:
  /// Errors  name the layer that asks for the device.
  Device device_of(const ParameterSpec& spec) const;
  void create(const ParameterSpec& spec, const std::string& name, const Tensor& value);
  void make_loss_scale();

  const ModelSetup& setup_;
  std::shared_ptr<ParameterStore> store_ = std::make_shared<ParameterStore>();
  std::optional<Shape> sample_;  ///< known once weights exist
  std::vector<ParameterSpec> weights_, running_statistics_;
  std::vector<LayerSummary> layers_;
  std::set<std::string> optimizer_state_;  ///< names of what has been initialised
};

}  // namespace tenon::train
