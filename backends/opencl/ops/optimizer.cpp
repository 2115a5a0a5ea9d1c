// SPDX-License-Identifier: Apache-2.0
// Optimizer steps over all parameters of one dtype at once: one launch per parameter. The formulas are in ops/optimizer.cl.
#include <tenon/sdk/kernel.h>

#include <cmath>

#include "kernel/launch.h"

namespace tenon::opencl {
namespace {

/// A call has `shared` operands, then (w g state...) for each parameter, and outputs (w state...) for each. An output may share storage
/// with an operand of its own group, the first output with any: so groups are launched from the last to the first.
template <class T, class... Values>
void step(const sdk::Call& call, const char* function, std::uint32_t shared, std::uint32_t states, Values... values) {
  const std::uint32_t inputs = 2 + states, outputs = 1 + states;
  const std::string options = types<T>() + (call.inputs[0].dtype == TENON_DTYPE_F64 ? " -DLR=double" : " -DLR=float");
  for (std::uint32_t group = (call.input_count - shared) / inputs; group-- > 0;) {
    const std::uint32_t first = shared + group * inputs;
    const std::int64_t count = call.inputs[first].count;
    if (count == 0) continue;
    Launch launch(call, sources::optimizer, function, options);
    launch.value(count).in(call, 0).address(shared > 1 ? call.inputs[1].data : nullptr);
    for (std::uint32_t k = 0; k < inputs; ++k) launch.in(call, first + k);
    for (std::uint32_t k = 0; k < outputs; ++k) launch.out(call, group * outputs + k);
    (launch.value(values), ...);
    launch.over(count);
  }
}

template <class T>
void sgd_step(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_sgd>();
  const T momentum = static_cast<T>(a.momentum), weight_decay = static_cast<T>(a.weight_decay);
  const auto nesterov = static_cast<cl_int>(a.nesterov);
  if (a.momentum != 0) return step<T>(call, "sgd", 1, 1, momentum, weight_decay, nesterov);
  for (std::uint32_t group = (call.input_count - 1) / 2; group-- > 0;) {  // without velocities
    const std::int64_t count = call.inputs[1 + 2 * group].count;
    if (count == 0) continue;
    Launch launch(call, sources::optimizer, "sgd", types<T>() + (call.inputs[0].dtype == TENON_DTYPE_F64 ? " -DLR=double" : " -DLR=float"));
    launch.value(count).in(call, 0).address(nullptr).in(call, 1 + 2 * group).in(call, 2 + 2 * group).address(nullptr);
    launch.out(call, group).address(nullptr).value(momentum).value(weight_decay).value(nesterov).over(count);
  }
}

template <class T>
void adam_like(const sdk::Call& call, const char* function, std::uint32_t states) {
  const auto& a = call.attr<tenon_attributes_adam>();
  step<T>(call, function, 2, states, static_cast<T>(a.beta1), static_cast<T>(1 - a.beta1), static_cast<T>(std::log(a.beta1)),
          static_cast<T>(a.beta2), static_cast<T>(1 - a.beta2), static_cast<T>(std::log(a.beta2)), static_cast<T>(a.epsilon),
          static_cast<T>(a.weight_decay));
}

template <class T>
void adam_step(const sdk::Call& call) {
  adam_like<T>(call, "adam", 2);
}

template <class T>
void amsgrad_step(const sdk::Call& call) {
  adam_like<T>(call, "amsgrad", 3);
}

template <class T>
void rmsprop_step(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_rmsprop>();
  step<T>(call, "rmsprop", 1, 1, static_cast<T>(a.rho), static_cast<T>(1 - a.rho), static_cast<T>(a.epsilon),
          static_cast<cl_int>(a.epsilon_outside));
}

template <class T>
void adagrad_step(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_adagrad>();
  step<T>(call, "adagrad", 1, 1, static_cast<T>(a.epsilon), static_cast<T>(a.weight_decay));
}

template <class T>
void adadelta_step(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_adadelta>();
  step<T>(call, "adadelta", 1, 2, static_cast<T>(a.rho), static_cast<T>(1 - a.rho), static_cast<T>(a.epsilon),
          static_cast<T>(a.weight_decay));
}

constexpr sdk::Traits traits{.in_place = true};

}  // namespace
TENON_KERNEL_WITH(sgd_step, traits, float, double)
TENON_KERNEL_WITH(adam_step, traits, float, double)
TENON_KERNEL_WITH(rmsprop_step, traits, float, double)
TENON_KERNEL_WITH(amsgrad_step, traits, float, double)
TENON_KERNEL_WITH(adagrad_step, traits, float, double)
TENON_KERNEL_WITH(adadelta_step, traits, float, double)
}  // namespace tenon::opencl
