// SPDX-License-Identifier: Apache-2.0
// train/program/loss_scale.h - dynamic loss scaling: the loss is multiplied by a power of two, so that small gradients do not underflow in
// f16. It is part of the graph, so that a replayed step works without the host.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <tenon/functions.h>
#include <tenon/program.h>

namespace tenon::train {

/// Source  Micikevicius et al., Mixed Precision Training (2018), section 3.2; the constants are those of Keras's LossScaleOptimizer.
inline constexpr double initial_loss_scale = 0x1p15;
inline constexpr double min_loss_scale = 1;
inline constexpr int steps_until_growth = 2000;  ///< consecutive finite steps

/// The state of loss scaling as graph parameters. Absent: no scaling.
struct LossScale {
  Value scale;       ///< f32 scalar
  Value good_steps;  ///< i64 scalar: finite steps since the scale changed
  Value skipped;     ///< i64 scalar: total number of skipped steps
  bool present() const { return scale.present(); }
};
/// Adds the state to a graph. It is training state that checkpoints keep.
LossScale add_loss_scale(Graph& graph);
/// Creates the state in the store with its initial values.
void reset_loss_scale(ParameterStore& parameters, const Device& home);
inline constexpr const char* loss_scale_name = "optimizer/loss_scale";
bool is_loss_scale(std::string_view parameter);

/// The gradients of the loss, computed from its product with the scale if present.
std::vector<Value> scaled_gradients(Value loss, const std::vector<Value>& with_respect_to, const LossScale& scale);

/// The outcome of a step, as returned by a program.
enum class StepOutcome { taken = 0, skipped = 1, exhausted = 2 };  ///< exhausted: skipped at the lowest scale

/// The index of the optimizer's step, not counting skipped steps.
Value step_to_take(Value step, const LossScale& scale);
/// Bool scalar: true if any value has a non-finite element.
Value any_not_finite(const std::vector<Value>& values);
/// Guards the step just built, whose updates begin at index `first`: if a gradient is not finite, the updates are skipped and the scale is
/// halved; after enough finite steps the scale is doubled. Returns the outcome, f32.
Value guard_step(Graph& graph, const std::vector<Value>& gradients, const LossScale& scale, std::size_t first);

}  // namespace tenon::train
