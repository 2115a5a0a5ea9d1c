// SPDX-License-Identifier: Apache-2.0
// Optimizer steps over all parameters of one dtype at once: one launch for as many tensors as fit into a kernel's parameters, 406 of Adam
// in f32, 48 with old drivers.
#include <tenon/sdk/kernel.h>

#include <algorithm>
#include <cmath>

#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "kernel/previous_kernel.cuh"
#include "kernel/thread_index.cuh"

namespace tenon::cuda {
namespace {

constexpr int threads = 256;
constexpr std::int64_t chunk = 16 * threads;  ///< elements of one tensor per block: whole packs of any type

/// One parameter with its gradient and states. An output may alias its input; NULL: not requested.
template <class T, int states>
struct Group {
  const T* w;
  const T* g;
  const T* state[states > 0 ? states : 1];
  T* new_w;
  T* new_state[states > 0 ? states : 1];
  std::int64_t count;
  std::int64_t first_chunk;
  bool packs;  ///< all addresses are aligned to 16 bytes
};

/// Passed by value. Kernels have 4,096 bytes of parameters with every driver, 32,764 from CUDA 12.1 on; a launch copies all of them, so few
/// tensors get the smaller struct.
///
/// Source  CUDA C++ Programming Guide, "__global__ Function Parameters"
template <class T, int states, int capacity>
struct Groups {
  Group<T, states> at[capacity];
  int count;
  std::int64_t chunks;
};
constexpr std::size_t other_parameters_bytes = 256;  // of rule, learning rate, step and counts
template <class T, int states>
constexpr int few = static_cast<int>((4096 - other_parameters_bytes) / sizeof(Group<T, states>));
template <class T, int states>
constexpr int many = static_cast<int>((32764 - other_parameters_bytes) / sizeof(Group<T, states>));

bool has_large_parameters() {
  static const bool has = [] {
    int version = 0;
    return cudaDriverGetVersion(&version) == cudaSuccess && version >= 12010;
  }();
  return has;
}

/// V elements from i on: all reads precede the writes.
template <int V, class Rule, class T, int states>
__device__ void step_pack(const Rule& rule, const typename Rule::Constants& constants, const Group<T, states>& group, std::int64_t i) {
  using Elements = Pack<T, V>;
  Elements w = pack_at<V>(group.w + i);
  const Elements g = pack_at<V>(group.g + i);
  Elements state[states > 0 ? states : 1];
#pragma unroll
  for (int k = 0; k < states; ++k) state[k] = pack_at<V>(group.state[k] + i);
#pragma unroll
  for (int j = 0; j < V; ++j) {
    T of_element[states > 0 ? states : 1] = {};
#pragma unroll
    for (int k = 0; k < states; ++k) of_element[k] = state[k].at[j];
    w.at[j] = rule.step(constants, w.at[j], g.at[j], of_element);
#pragma unroll
    for (int k = 0; k < states; ++k) state[k].at[j] = of_element[k];
  }
#pragma unroll
  for (int k = 0; k < states; ++k) {
    if (group.new_state[k] != nullptr) store_pack<V>(group.new_state[k] + i, state[k]);
  }
  if (group.new_w != nullptr) store_pack<V>(group.new_w + i, w);
}

/// The learning rate: a scalar of f32 or f64.
struct LearningRate {
  const void* at;
  bool is_f32;
  __device__ double value() const { return is_f32 ? double{*static_cast<const float*>(at)} : *static_cast<const double*>(at); }
};

/// `step` is NULL for rules that do not depend on the step.
template <class Rule, class T, int states, int capacity>
__global__ void step_groups(Rule rule, LearningRate lr, const std::int64_t* step, Groups<T, states, capacity> groups) {
  wait_for_previous_kernel();
  __shared__ typename Rule::Constants constants;  // includes powers of the step: computed once per block
  if (threadIdx.x == 0) constants = rule.constants(lr.value(), step != nullptr ? static_cast<double>(*step) : 0.0);
  __syncthreads();
  constexpr int V = pack_width<T>;
  int k = 0;
  for (std::int64_t c = blockIdx.x; c < groups.chunks; c += gridDim.x) {
    while (k + 1 < groups.count && c >= groups.at[k + 1].first_chunk) ++k;
    const Group<T, states>& group = groups.at[k];
    const std::int64_t begin = (c - group.first_chunk) * chunk;
    const std::int64_t end = begin + chunk < group.count ? begin + chunk : group.count;
    const std::int64_t packed = group.packs ? (end - begin) / V * V : 0;
    for (std::int64_t i = begin + std::int64_t{threadIdx.x} * V; i < begin + packed; i += threads * V) {
      step_pack<V>(rule, constants, group, i);
    }
    for (std::int64_t i = begin + packed + threadIdx.x; i < end; i += threads) step_pack<1>(rule, constants, group, i);
  }
}

/// step_all() with as many groups in a launch.
template <int capacity, class T, class Rule>
void step_by(const sdk::Call& call, const Rule& rule, std::uint32_t shared) {
  constexpr int states = Rule::states;
  constexpr std::uint32_t inputs = 2 + states, outputs = 1 + states;
  Stream& stream = stream_of(call);
  Groups<T, states, capacity> groups{};
  const auto send = [&] {
    launch_early(stream, grid_stride(stream.device(), groups.chunks * threads, threads), step_groups<Rule, T, states, capacity>, rule,
                 LearningRate{call.inputs[0].data, call.inputs[0].dtype == TENON_DTYPE_F32},
                 shared > 1 ? call.input<std::int64_t>(1) : nullptr, groups);
    groups.count = 0;
    groups.chunks = 0;
  };
  for (std::uint32_t n = 0; n < (call.input_count - shared) / inputs; ++n) {
    const std::uint32_t in = shared + n * inputs, out = n * outputs;
    if (call.inputs[in].count == 0) continue;
    bool packs = true;
    const auto read = [&](std::uint32_t i) {
      packs = packs && is_aligned(16, call.inputs[i].data);
      return call.input<T>(i);
    };
    const auto written = [&](std::uint32_t i) -> T* {
      if (!call.has_output(i)) return nullptr;
      packs = packs && is_aligned(16, call.outputs[i].data);
      return call.output<T>(i);
    };
    Group<T, states>& group = groups.at[groups.count++];
    group.w = read(in);
    group.g = read(in + 1);
    group.new_w = written(out);
    for (int k = 0; k < states; ++k) {
      group.state[k] = read(in + 2 + static_cast<std::uint32_t>(k));
      group.new_state[k] = written(out + 1 + static_cast<std::uint32_t>(k));
    }
    group.count = call.inputs[in].count;
    group.first_chunk = groups.chunks;
    group.packs = packs;
    groups.chunks += (group.count + chunk - 1) / chunk;
    if (groups.count == capacity) send();
  }
  send();
}

/// Applies the rule to the groups of a call, after `shared` operands: inputs (w g state...) each, outputs (w state...) each.
template <class T, class Rule>
void step_all(const sdk::Call& call, const Rule& rule, std::uint32_t shared) {
  constexpr int states = Rule::states;
  const std::uint32_t tensors = (call.input_count - shared) / (2 + states);
  const bool is_large = tensors > static_cast<std::uint32_t>(few<T, states>) && has_large_parameters();
  (is_large ? step_by<many<T, states>, T, Rule> : step_by<few<T, states>, T, Rule>)(call, rule, shared);
}

// ---------------------------------------------------------------- rules
//
// Constants, which depend only on attributes, learning rate and step, are computed in f64 and rounded once; elements are computed in their
// own type.

/// h = g + weight_decay w;  v' = momentum v + h;  w' = w - lr v', with nesterov w - lr (h + momentum v').
template <class T>
struct Momentum {
  static constexpr int states = 1;
  struct Constants {
    T lr, momentum, weight_decay;
  };
  tenon_attributes_sgd a;
  __device__ Constants constants(double lr, double) const {
    return {static_cast<T>(lr), static_cast<T>(a.momentum), static_cast<T>(a.weight_decay)};
  }
  __device__ T step(const Constants& c, T w, T g, T (&v)[1]) const {
    const T h = g + c.weight_decay * w;
    v[0] = c.momentum * v[0] + h;
    return w - c.lr * (a.nesterov != 0 ? h + c.momentum * v[0] : v[0]);
  }
};

/// w' = w - lr (g + weight_decay w)
template <class T>
struct Descent {
  static constexpr int states = 0;
  struct Constants {
    T lr, weight_decay;
  };
  tenon_attributes_sgd a;
  __device__ Constants constants(double lr, double) const { return {static_cast<T>(lr), static_cast<T>(a.weight_decay)}; }
  __device__ T step(const Constants& c, T w, T g, T (&)[1]) const { return w - c.lr * (g + c.weight_decay * w); }
};

/// Adam's moments and corrections. With a third state, the largest second moment so far replaces the second moment.
template <class T, bool keeps_max>
struct Adam {
  static constexpr int states = keeps_max ? 3 : 2;
  struct Constants {
    T lr, decay, beta1, rest1, beta2, rest2, first_correction, second_correction, epsilon;
  };
  tenon_attributes_adam a;
  __device__ Constants constants(double lr, double step) const {
    return {static_cast<T>(lr),
            static_cast<T>(a.weight_decay),
            static_cast<T>(a.beta1),
            static_cast<T>(1.0 - a.beta1),
            static_cast<T>(a.beta2),
            static_cast<T>(1.0 - a.beta2),
            static_cast<T>(1.0 - std::pow(a.beta1, step)),
            static_cast<T>(1.0 - std::pow(a.beta2, step)),
            static_cast<T>(a.epsilon)};
  }
  __device__ T step(const Constants& c, T w, T g, T (&state)[states]) const {
    state[0] = c.beta1 * state[0] + c.rest1 * g;
    state[1] = c.beta2 * state[1] + c.rest2 * g * g;
    T square = state[1];
    if constexpr (keeps_max) square = state[2] = state[2] < square ? square : state[2];
    const T direction = state[0] / c.first_correction / (std::sqrt(square / c.second_correction) + c.epsilon);
    return w - c.lr * (direction + c.decay * w);
  }
};

/// v' = rho v + (1 - rho) g^2;  w' = w - lr g / sqrt(v' + epsilon), or g / (sqrt(v') + epsilon) with epsilon_outside.
template <class T>
struct RmsProp {
  static constexpr int states = 1;
  struct Constants {
    T lr, rho, rest, epsilon;
  };
  tenon_attributes_rmsprop a;
  __device__ Constants constants(double lr, double) const {
    return {static_cast<T>(lr), static_cast<T>(a.rho), static_cast<T>(1.0 - a.rho), static_cast<T>(a.epsilon)};
  }
  __device__ T step(const Constants& c, T w, T g, T (&v)[1]) const {
    v[0] = c.rho * v[0] + c.rest * g * g;
    return w - c.lr * g / (a.epsilon_outside != 0 ? std::sqrt(v[0]) + c.epsilon : std::sqrt(v[0] + c.epsilon));
  }
};

/// h = g + weight_decay w;  sum' = sum + h^2;  w' = w - lr h / (sqrt(sum') + epsilon)
template <class T>
struct Adagrad {
  static constexpr int states = 1;
  struct Constants {
    T lr, weight_decay, epsilon;
  };
  tenon_attributes_adagrad a;
  __device__ Constants constants(double lr, double) const {
    return {static_cast<T>(lr), static_cast<T>(a.weight_decay), static_cast<T>(a.epsilon)};
  }
  __device__ T step(const Constants& c, T w, T g, T (&sum)[1]) const {
    const T h = g + c.weight_decay * w;
    sum[0] += h * h;
    return w - c.lr * h / (std::sqrt(sum[0]) + c.epsilon);
  }
};

/// h = g + weight_decay w;  v' = rho v + (1 - rho) h^2;  d = h sqrt(delta + epsilon) / sqrt(v' + epsilon);
/// delta' = rho delta + (1 - rho) d^2;  w' = w - lr d
template <class T>
struct Adadelta {
  static constexpr int states = 2;
  struct Constants {
    T lr, weight_decay, rho, rest, epsilon;
  };
  tenon_attributes_adadelta a;
  __device__ Constants constants(double lr, double) const {
    return {static_cast<T>(lr), static_cast<T>(a.weight_decay), static_cast<T>(a.rho), static_cast<T>(1.0 - a.rho),
            static_cast<T>(a.epsilon)};
  }
  __device__ T step(const Constants& c, T w, T g, T (&state)[2]) const {
    const T h = g + c.weight_decay * w;
    state[0] = c.rho * state[0] + c.rest * h * h;
    const T d = h * std::sqrt(state[1] + c.epsilon) / std::sqrt(state[0] + c.epsilon);
    state[1] = c.rho * state[1] + c.rest * d * d;
    return w - c.lr * d;
  }
};

/// momentum = 0: there is no velocity.
///
/// Source  Sutskever et al.: On the importance of initialization and momentum (2013), with the learning rate outside the velocity.
template <class T>
void sgd_step(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_sgd>();
  if (a.momentum != 0)
    step_all<T>(call, Momentum<T>{a}, 1);
  else
    step_all<T>(call, Descent<T>{a}, 1);
}

/// m' = beta1 m + (1 - beta1) g;  v' = beta2 v + (1 - beta2) g^2;
/// w' = w - lr (m' / (1 - beta1^step) / (sqrt(v' / (1 - beta2^step)) + epsilon) + weight_decay w), step = 1, 2, ...
///
/// Source  Kingma, Ba: Adam (2014); Loshchilov, Hutter: Decoupled Weight Decay Regularization (2017).
template <class T>
void adam_step(const sdk::Call& call) {
  step_all<T>(call, Adam<T, false>{call.attr<tenon_attributes_adam>()}, 2);
}

/// Source  Tieleman, Hinton: Lecture 6.5, rmsprop (2012).
template <class T>
void rmsprop_step(const sdk::Call& call) {
  step_all<T>(call, RmsProp<T>{call.attr<tenon_attributes_rmsprop>()}, 1);
}

/// As adam_step with max_square' = max(max_square, v') instead of v' under the root.
///
/// Source  Reddi, Kale, Kumar: On the Convergence of Adam and Beyond (2018), with Adam's corrections as PyTorch applies them.
template <class T>
void amsgrad_step(const sdk::Call& call) {
  step_all<T>(call, Adam<T, true>{call.attr<tenon_attributes_adam>()}, 2);
}

/// Source  Duchi, Hazan, Singer: Adaptive Subgradient Methods (2011).
template <class T>
void adagrad_step(const sdk::Call& call) {
  step_all<T>(call, Adagrad<T>{call.attr<tenon_attributes_adagrad>()}, 1);
}

/// Source  Zeiler: ADADELTA (2012).
template <class T>
void adadelta_step(const sdk::Call& call) {
  step_all<T>(call, Adadelta<T>{call.attr<tenon_attributes_adadelta>()}, 1);
}

}  // namespace
TENON_KERNEL_WITH(sgd_step, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(adam_step, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(rmsprop_step, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(amsgrad_step, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(adagrad_step, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(adadelta_step, (sdk::Traits{.in_place = true}), float, double)
}  // namespace tenon::cuda
