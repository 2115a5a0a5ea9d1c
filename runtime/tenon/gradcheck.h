// SPDX-License-Identifier: Apache-2.0
// tenon/gradcheck.h - compares analytic gradients with numeric differences of the loss, in f64.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tenon/api.h>
#include <tenon/context.h>
#include <tenon/definition.h>
#include <tenon/safetensors.h>
#include <tenon/tensor.h>

namespace tenon {

/// Options of check_gradients.
struct GradientCheckOptions {
  /// randomly chosen elements of each parameter; all if there are fewer
  std::int64_t samples = 10;
  /// allowed difference, relative to the larger of both, in addition to the rounding error of the
  /// loss
  double tolerance = 1e-6;
  std::uint64_t seed = 0;  ///< for the choice of elements
};

/// One element of a gradient.
struct GradientDifference {
  std::int64_t index = 0;  ///< row-major
  double analytic = 0;
  double numeric = 0;
  double relative = 0;  ///< |analytic - numeric| beyond rounding, divided by the larger of both
};

/// The result for one parameter.
struct ParameterCheck {
  std::string name;
  Shape shape;
  std::int64_t checked = 0;
  std::int64_t failed = 0;
  /// Elements where the loss has a kink and the analytic gradient lies between the one-sided
  /// slopes; they are not failures.
  std::int64_t kinks = 0;
  GradientDifference worst;  ///< without kinks
};

/// The result of a gradient check.
struct TENON_API GradientReport {
  double loss = 0;
  double tolerance = 0;
  std::vector<ParameterCheck> parameters;
  /// True if no element of any parameter failed.
  bool passed() const;
  /// A table with a row per parameter, and the verdict.
  std::string str() const;
};

/// The loss at the given parameters: f64, in the order and shapes of those that are checked. It
/// must be deterministic.
using LossFunction = std::function<double(const std::vector<Tensor>& parameters)>;

/// Compares gradients (f64, host, in the parameters' order and shapes) with central differences of
/// a loss. Each difference is extrapolated from two steps h and h/2 to an error of order h^4; h
/// goes from 1e-3 down to 1e-5 times the element's magnitude where the curvature is too high.
/// Errors  other dtypes, shapes that do not fit, a loss that is not finite.
TENON_API GradientReport check_gradients(const LossFunction& loss,
                                         const std::vector<NamedTensor>& parameters,
                                         const std::vector<Tensor>& gradients,
                                         const GradientCheckOptions& options = {});

/// The same for a model on one batch, in f64 regardless of its definition, seeded with the
/// context's seed; dropout keeps one mask.
/// Errors  those of building the model and of its loss.
TENON_API GradientReport check_gradients(const Context& context, const ModelDefinition& model,
                                         const LossDefinition& loss, const Tensor& x,
                                         const Tensor& y, const GradientCheckOptions& options = {});
/// The same for inputs and outputs by name, bound as Model::train_batch does.
TENON_API GradientReport check_gradients(const Context& context, const ModelDefinition& model,
                                         const std::vector<OutputLoss>& losses,
                                         const NamedTensors& inputs, const NamedTensors& targets,
                                         const GradientCheckOptions& options = {});

}  // namespace tenon
