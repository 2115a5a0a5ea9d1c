// SPDX-License-Identifier: Apache-2.0
#include "train/program/loss_scale.h"

#include <string>

#include "graph/passes.h"

namespace tenon::train {
namespace {

const std::string good_steps_name = std::string(loss_scale_name) + "/good_steps";
const std::string skipped_name = std::string(loss_scale_name) + "/skipped";

/// The requested device of the node that produces a value.
std::string device_of(Value v) {
  const NodeId maker = v.graph().info(v.id()).producer;
  return maker == no_id ? v.graph().device() : v.graph().nodes()[maker].device;
}

}  // namespace

LossScale add_loss_scale(Graph& graph) {
  return {graph.parameter(loss_scale_name, DType::f32, {}), graph.parameter(good_steps_name, DType::i64, {}),
          graph.parameter(skipped_name, DType::i64, {})};
}

void reset_loss_scale(ParameterStore& parameters, const Device& home) {
  const auto put = [&](const std::string& name, const Tensor& value) {
    parameters.create(name, home, value.dtype(), {});
    parameters.set(name, value);
  };
  put(good_steps_name, Tensor::scalar<std::int64_t>(0));
  put(skipped_name, Tensor::scalar<std::int64_t>(0));
  put(loss_scale_name, Tensor::scalar(static_cast<float>(initial_loss_scale)));  // created last: if it exists, the others do
}

bool is_loss_scale(std::string_view parameter) {
  return parameter == loss_scale_name || parameter == good_steps_name || parameter == skipped_name;
}

std::vector<Value> scaled_gradients(Value loss, const std::vector<Value>& with_respect_to, const LossScale& scale) {
  if (!scale.present()) return gradients(loss, with_respect_to);
  std::vector<Value> found = gradients(ops::mul(loss, scale.scale), with_respect_to);
  const NameScope name(loss.graph(), "loss_scale");
  const Value reciprocal = ops::reciprocal(scale.scale);  // exact: a power of two
  for (Value& g : found) {
    const DeviceScope device(g.graph(), device_of(g));
    g = ops::mul(g, reciprocal);
  }
  return found;
}

Value step_to_take(Value step, const LossScale& scale) {
  return scale.present() ? ops::sub(step, scale.skipped) : step;
}

Value any_not_finite(const std::vector<Value>& values) {
  // A sum is finite if all its terms are, unless it overflows f32 (3e38), and then no step should be taken either.
  std::vector<Value> sums;
  for (const Value v : values) {
    const DeviceScope device(v.graph(), device_of(v));
    sums.push_back(ops::reduce_sum(v));
  }
  const Value sum = sums.size() == 1 ? sums[0] : ops::reduce_sum(ops::stack(sums));
  return ops::logical_or(ops::is_nan(sum), ops::is_inf(sum));
}

Value guard_step(Graph& graph, const std::vector<Value>& gradients, const LossScale& scale, std::size_t first) {
  const NameScope name(graph, "loss_scale");
  const auto f32 = [&](double value) { return graph.constant(Tensor::scalar(static_cast<float>(value))); };
  const Value zero = graph.constant(Tensor::scalar<std::int64_t>(0));
  const Value skip = any_not_finite(gradients);
  graph::skip_updates(graph, first, skip);

  const Value good = ops::where(skip, zero, ops::add(scale.good_steps, 1));
  const Value grows = ops::equal(good, graph.constant(Tensor::scalar<std::int64_t>(steps_until_growth)));
  const Value larger = ops::minimum(ops::mul(scale.scale, 2), 0x1p126);  // its reciprocal is a normal number, which no device flushes to 0
  const Value smaller = ops::maximum(ops::mul(scale.scale, 0.5), min_loss_scale);
  graph.update(scale.scale, ops::where(skip, smaller, ops::where(grows, larger, scale.scale)));
  graph.update(scale.good_steps, ops::where(grows, zero, good));
  graph.update(scale.skipped, ops::add(scale.skipped, ops::cast(skip, DType::i64)));

  const Value bad = ops::where(ops::less_equal(scale.scale, f32(min_loss_scale)), f32(static_cast<double>(StepOutcome::exhausted)),
                               f32(static_cast<double>(StepOutcome::skipped)));
  return ops::where(skip, bad, f32(static_cast<double>(StepOutcome::taken)));
}

}  // namespace tenon::train
