// SPDX-License-Identifier: Apache-2.0
// Optimizer steps over all parameters of one dtype at once. Computed in f64, every stored value rounded once.
#include <tenon/sdk/kernel.h>

#include <algorithm>
#include <cmath>

namespace tenon::reference {
namespace {

/// A call split into groups, one per parameter: `shared` operands, then (w g state...) each; outputs (w state...) each.
///
/// An output may alias its input, and the first output may alias any input. To support that, kernels read all operands of an element before
/// they write one, and process the groups from the last to the first.
template <class T>
class Groups {
 public:
  Groups(const sdk::Call& call, std::uint32_t shared, std::uint32_t states)
      : call_(call), shared_(shared), inputs_(2 + states), outputs_(1 + states) {}

  std::uint32_t count() const { return (call_.input_count - shared_) / inputs_; }
  std::int64_t size(std::uint32_t group) const { return call_.inputs[shared_ + group * inputs_].count; }
  const T* parameter(std::uint32_t group) const { return call_.input<T>(shared_ + group * inputs_); }
  const T* gradient(std::uint32_t group) const { return call_.input<T>(shared_ + group * inputs_ + 1); }
  const T* state(std::uint32_t group, std::uint32_t k) const { return call_.input<T>(shared_ + group * inputs_ + 2 + k); }
  void store_parameter(std::uint32_t group, std::int64_t i, double value) const { store(group * outputs_, i, value); }
  void store_state(std::uint32_t group, std::uint32_t k, std::int64_t i, double value) const { store(group * outputs_ + 1 + k, i, value); }

 private:
  void store(std::uint32_t output, std::int64_t i, double value) const {
    if (call_.has_output(output)) call_.output<T>(output)[i] = static_cast<T>(value);
  }

  const sdk::Call& call_;
  std::uint32_t shared_, inputs_, outputs_;
};

/// h = g + weight_decay w;  v' = momentum v + h;  w' = w - lr v', with nesterov w - lr (h + momentum v').
/// momentum = 0: there is no v, and w' = w - lr h.
///
/// Source  Sutskever et al.: On the importance of initialization and momentum (2013), with the learning rate outside the velocity.
template <class T>
void sgd_step(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_sgd>();
  const double lr = sdk::number_of(call.inputs[0]);
  const bool has_velocity = a.momentum != 0;
  const Groups<T> groups(call, 1, has_velocity ? 1 : 0);
  for (std::uint32_t group = groups.count(); group-- > 0;) {
    const T* w = groups.parameter(group);
    const T* g = groups.gradient(group);
    const T* v = has_velocity ? groups.state(group, 0) : nullptr;
    for (std::int64_t i = 0; i < groups.size(group); ++i) {
      const double weight = w[i];
      const double h = g[i] + a.weight_decay * weight;
      double direction = h;
      if (has_velocity) {
        const double velocity = a.momentum * v[i] + h;
        direction = a.nesterov ? h + a.momentum * velocity : velocity;
        groups.store_state(group, 0, i, velocity);
      }
      groups.store_parameter(group, i, weight - lr * direction);
    }
  }
}

/// m' = beta1 m + (1 - beta1) g;  v' = beta2 v + (1 - beta2) g^2;
/// w' = w - lr (m' / (1 - beta1^step) / (sqrt(v' / (1 - beta2^step)) + epsilon) + weight_decay w), step = 1, 2, ...
///
/// Source  Kingma, Ba: Adam (2014); Loshchilov, Hutter: Decoupled Weight Decay Regularization (2017).
template <class T>
void adam_step(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_adam>();
  const double lr = sdk::number_of(call.inputs[0]);
  const auto step = static_cast<double>(*call.input<std::int64_t>(1));
  const double first_correction = 1.0 - std::pow(a.beta1, step);
  const double second_correction = 1.0 - std::pow(a.beta2, step);
  const Groups<T> groups(call, 2, 2);
  for (std::uint32_t group = groups.count(); group-- > 0;) {
    const T* w = groups.parameter(group);
    const T* g = groups.gradient(group);
    const T* m = groups.state(group, 0);
    const T* v = groups.state(group, 1);
    for (std::int64_t i = 0; i < groups.size(group); ++i) {
      const double weight = w[i], slope = g[i];
      const double mean = a.beta1 * m[i] + (1.0 - a.beta1) * slope;
      const double square = a.beta2 * v[i] + (1.0 - a.beta2) * slope * slope;
      const double direction = mean / first_correction / (std::sqrt(square / second_correction) + a.epsilon);
      groups.store_state(group, 0, i, mean);
      groups.store_state(group, 1, i, square);
      groups.store_parameter(group, i, weight - lr * (direction + a.weight_decay * weight));
    }
  }
}

/// v' = rho v + (1 - rho) g^2;  w' = w - lr g / sqrt(v' + epsilon), or g / (sqrt(v') + epsilon) with epsilon_outside.
///
/// Source  Tieleman, Hinton: Lecture 6.5, rmsprop (2012).
template <class T>
void rmsprop_step(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_rmsprop>();
  const double lr = sdk::number_of(call.inputs[0]);
  const Groups<T> groups(call, 1, 1);
  for (std::uint32_t group = groups.count(); group-- > 0;) {
    const T* w = groups.parameter(group);
    const T* g = groups.gradient(group);
    const T* v = groups.state(group, 0);
    for (std::int64_t i = 0; i < groups.size(group); ++i) {
      const double weight = w[i], slope = g[i];
      const double square = a.rho * v[i] + (1.0 - a.rho) * slope * slope;
      const double root = a.epsilon_outside ? std::sqrt(square) + a.epsilon : std::sqrt(square + a.epsilon);
      groups.store_state(group, 0, i, square);
      groups.store_parameter(group, i, weight - lr * slope / root);
    }
  }
}

/// m', v' as in adam_step;  max_square' = max(max_square, v');
/// w' = w - lr (m' / (1 - beta1^step) / (sqrt(max_square' / (1 - beta2^step)) + epsilon) + weight_decay w)
///
/// Source  Reddi, Kale, Kumar: On the Convergence of Adam and Beyond (2018), with Adam's corrections as PyTorch applies them.
template <class T>
void amsgrad_step(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_adam>();
  const double lr = sdk::number_of(call.inputs[0]);
  const auto step = static_cast<double>(*call.input<std::int64_t>(1));
  const double first_correction = 1.0 - std::pow(a.beta1, step);
  const double second_correction = 1.0 - std::pow(a.beta2, step);
  const Groups<T> groups(call, 2, 3);
  for (std::uint32_t group = groups.count(); group-- > 0;) {
    const T* w = groups.parameter(group);
    const T* g = groups.gradient(group);
    const T* m = groups.state(group, 0);
    const T* v = groups.state(group, 1);
    const T* p = groups.state(group, 2);
    for (std::int64_t i = 0; i < groups.size(group); ++i) {
      const double weight = w[i], slope = g[i];
      const double mean = a.beta1 * m[i] + (1.0 - a.beta1) * slope;
      const double square = a.beta2 * v[i] + (1.0 - a.beta2) * slope * slope;
      const double max_square = std::max(double{p[i]}, square);
      const double direction = mean / first_correction / (std::sqrt(max_square / second_correction) + a.epsilon);
      groups.store_state(group, 0, i, mean);
      groups.store_state(group, 1, i, square);
      groups.store_state(group, 2, i, max_square);
      groups.store_parameter(group, i, weight - lr * (direction + a.weight_decay * weight));
    }
  }
}

/// h = g + weight_decay w;  sum' = sum + h^2;  w' = w - lr h / (sqrt(sum') + epsilon)
///
/// Source  Duchi, Hazan, Singer: Adaptive Subgradient Methods (2011).
template <class T>
void adagrad_step(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_adagrad>();
  const double lr = sdk::number_of(call.inputs[0]);
  const Groups<T> groups(call, 1, 1);
  for (std::uint32_t group = groups.count(); group-- > 0;) {
    const T* w = groups.parameter(group);
    const T* g = groups.gradient(group);
    const T* s = groups.state(group, 0);
    for (std::int64_t i = 0; i < groups.size(group); ++i) {
      const double weight = w[i];
      const double h = g[i] + a.weight_decay * weight;
      const double sum = s[i] + h * h;
      groups.store_state(group, 0, i, sum);
      groups.store_parameter(group, i, weight - lr * h / (std::sqrt(sum) + a.epsilon));
    }
  }
}

/// h = g + weight_decay w;  v' = rho v + (1 - rho) h^2;  d = h sqrt(delta + epsilon) / sqrt(v' + epsilon);
/// delta' = rho delta + (1 - rho) d^2;  w' = w - lr d
///
/// Source  Zeiler: ADADELTA (2012).
template <class T>
void adadelta_step(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_adadelta>();
  const double lr = sdk::number_of(call.inputs[0]);
  const Groups<T> groups(call, 1, 2);
  for (std::uint32_t group = groups.count(); group-- > 0;) {
    const T* w = groups.parameter(group);
    const T* g = groups.gradient(group);
    const T* v = groups.state(group, 0);
    const T* delta = groups.state(group, 1);
    for (std::int64_t i = 0; i < groups.size(group); ++i) {
      const double weight = w[i], before = delta[i];
      const double h = g[i] + a.weight_decay * weight;
      const double square = a.rho * v[i] + (1.0 - a.rho) * h * h;
      const double d = h * std::sqrt(before + a.epsilon) / std::sqrt(square + a.epsilon);
      groups.store_state(group, 0, i, square);
      groups.store_state(group, 1, i, a.rho * before + (1.0 - a.rho) * d * d);
      groups.store_parameter(group, i, weight - lr * d);
    }
  }
}

}  // namespace
TENON_KERNEL_WITH(sgd_step, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(adam_step, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(rmsprop_step, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(amsgrad_step, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(adagrad_step, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(adadelta_step, (sdk::Traits{.in_place = true}), float, double)
}  // namespace tenon::reference
