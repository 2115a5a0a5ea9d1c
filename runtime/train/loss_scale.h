// train/loss_scale.h - dynamic loss scaling: gradients of a loss times a power of two, which f16 holds where it would round the loss's own
// to 0. All of it is part of the graph, so that a step that is replayed decides by itself.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <tenon/functions.h>
#include <tenon/program.h>

namespace tenon::train {

/// Source  Micikevicius et al., Mixed Precision Training (2018), section 3.2; the numbers are those of Keras's LossScaleOptimizer.
inline constexpr double first_loss_scale = 0x1p15;
inline constexpr double lowest_loss_scale = 1;
inline constexpr int steps_until_growth = 2000;  ///< good ones in a row

/// Its state, as parameters of a graph. Absent: no scaling.
struct LossScale {
  Value scale;       ///< f32 scalar
  Value good_steps;  ///< i64 scalar: since the scale changed
  Value skipped;     ///< i64 scalar: steps in all
  bool present() const { return scale.present(); }
};
/// The same as parameters of a graph, which are also their names: training state that checkpoints keep.
LossScale add_loss_scale(Graph& graph);
/// In the store, at its start.
void reset_loss_scale(ParameterStore& parameters, const Device& home);
inline constexpr const char* loss_scale_name = "optimizer/loss_scale";
bool is_loss_scale(std::string_view parameter);

/// Of the loss, by way of its product with the scale if there is one.
std::vector<Value> scaled_gradients(Value loss, const std::vector<Value>& with_respect_to, const LossScale& scale);

/// What became of a step, as a program returns it.
enum class StepOutcome { taken = 0, skipped = 1, exhausted = 2 };  ///< exhausted: skipped at the lowest scale

/// The number of the optimizer's step: those that were skipped do not count.
Value step_to_take(Value step, const LossScale& scale);
/// Bool scalar: one of these has an element that is not finite.
Value any_not_finite(const std::vector<Value>& values);
/// The step just built, whose updates begin at number `first`, leaves everything as it is in runs where a gradient is not finite, and the
/// scale is halved; else it doubles after enough good steps. Returns the outcome, f32.
Value guard_step(Graph& graph, const std::vector<Value>& gradients, const LossScale& scale, std::size_t first);

}  // namespace tenon::train
