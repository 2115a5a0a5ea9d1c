// SPDX-License-Identifier: Apache-2.0
// ops/optimizer.cpp - optimizer steps: one vectorised pass over all parameters of a call.
#include "simd/foreach_target.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "simd/simd.h"

#include <tenon/sdk/kernel.h>

#ifndef TENON_OPENBLAS_OPTIMIZER_STEPS
#define TENON_OPENBLAS_OPTIMIZER_STEPS
namespace tenon::openblas {
namespace {

/// Elements of one parameter, its gradient and its optimizer states. Outputs that are not requested are NULL.
template <class T>
struct Span {
  const T* w = nullptr;
  const T* g = nullptr;
  const T* states[3] = {};
  T* new_w = nullptr;
  T* new_states[3] = {};
};

// The steps, with everything that does not depend on the element computed in f64.
struct Sgd {
  static constexpr int states = 0;
  double lr, weight_decay;
};
struct Momentum {
  static constexpr int states = 1;
  double lr, weight_decay, momentum;
  bool nesterov;
};
template <bool amsgrad>
struct Adam {
  static constexpr int states = amsgrad ? 3 : 2;
  double beta1, beta2;
  double rate;        ///< lr / (1 - beta1^step)
  double correction;  ///< 1 / sqrt(1 - beta2^step)
  double epsilon;
  double decay;  ///< lr weight_decay
};
struct Adagrad {
  static constexpr int states = 1;
  double lr, epsilon, weight_decay;
};
struct Adadelta {
  static constexpr int states = 2;
  double lr, rho, epsilon, weight_decay;
};
struct RmsProp {
  static constexpr int states = 1;
  double lr, rho, epsilon;
  bool epsilon_outside;
};

}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// One vector of each operand, updated in place.
template <class V>
struct Element {
  V w, g, s0, s1, s2;
};

/// Replaces subnormal numbers by 0. The averages of a parameter whose gradient has become 0 would be subnormal for thousands of steps, at a
/// hundred cycles per operation, while their contribution to w is far below its last bit.
template <class D, class V>
HWY_INLINE V without_subnormals(D d, V x) {
  return hn::IfThenZeroElse(hn::Lt(hn::Abs(x), hn::Set(d, std::numeric_limits<hn::TFromD<D>>::min())), x);
}

/// h = g + weight_decay w; w' = w - lr h
template <class D, class V>
HWY_INLINE void update(D d, const Sgd& by, Element<V>& e) {
  const V h = hn::MulAdd(hn::Set(d, static_cast<hn::TFromD<D>>(by.weight_decay)), e.w, e.g);
  e.w = hn::NegMulAdd(hn::Set(d, static_cast<hn::TFromD<D>>(by.lr)), h, e.w);
}

/// v' = momentum v + h; w' = w - lr v', with nesterov w - lr (h + momentum v')
template <class D, class V>
HWY_INLINE void update(D d, const Momentum& by, Element<V>& e) {
  const V momentum = hn::Set(d, static_cast<hn::TFromD<D>>(by.momentum));
  const V h = hn::MulAdd(hn::Set(d, static_cast<hn::TFromD<D>>(by.weight_decay)), e.w, e.g);
  e.s0 = without_subnormals(d, hn::MulAdd(momentum, e.s0, h));
  const V direction = by.nesterov ? hn::MulAdd(momentum, e.s0, h) : e.s0;
  e.w = hn::NegMulAdd(hn::Set(d, static_cast<hn::TFromD<D>>(by.lr)), direction, e.w);
}

/// m' = beta1 m + (1 - beta1) g; v' = beta2 v + (1 - beta2) g^2; w' = w - rate m' / (sqrt(v') correction + epsilon) - decay w; with
/// amsgrad v_max' = max(v_max, v') in place of v' under the root
template <class D, class V, bool amsgrad>
HWY_INLINE void update(D d, const Adam<amsgrad>& by, Element<V>& e) {
  using T = hn::TFromD<D>;
  e.s0 =
      without_subnormals(d, hn::MulAdd(hn::Set(d, static_cast<T>(by.beta1)), e.s0, hn::Mul(hn::Set(d, static_cast<T>(1 - by.beta1)), e.g)));
  const V square = hn::Mul(e.g, e.g);
  e.s1 = without_subnormals(
      d, hn::MulAdd(hn::Set(d, static_cast<T>(by.beta2)), e.s1, hn::Mul(hn::Set(d, static_cast<T>(1 - by.beta2)), square)));
  if constexpr (amsgrad) e.s2 = hn::Max(e.s2, e.s1);
  const V root =
      hn::MulAdd(hn::Sqrt(amsgrad ? e.s2 : e.s1), hn::Set(d, static_cast<T>(by.correction)), hn::Set(d, static_cast<T>(by.epsilon)));
  const V direction = hn::Div(hn::Mul(hn::Set(d, static_cast<T>(by.rate)), e.s0), root);
  e.w = hn::Sub(e.w, hn::MulAdd(hn::Set(d, static_cast<T>(by.decay)), e.w, direction));
}

/// h = g + weight_decay w; sum' = sum + h^2; w' = w - lr h / (sqrt(sum') + epsilon)
template <class D, class V>
HWY_INLINE void update(D d, const Adagrad& by, Element<V>& e) {
  using T = hn::TFromD<D>;
  const V h = hn::MulAdd(hn::Set(d, static_cast<T>(by.weight_decay)), e.w, e.g);
  e.s0 = hn::MulAdd(h, h, e.s0);
  const V root = hn::Add(hn::Sqrt(e.s0), hn::Set(d, static_cast<T>(by.epsilon)));
  e.w = hn::Sub(e.w, hn::Div(hn::Mul(hn::Set(d, static_cast<T>(by.lr)), h), root));
}

/// h = g + weight_decay w; v' = rho v + (1 - rho) h^2; d = h sqrt(delta + epsilon) / sqrt(v' + epsilon);
/// delta' = rho delta + (1 - rho) d^2; w' = w - lr d
template <class D, class V>
HWY_INLINE void update(D d, const Adadelta& by, Element<V>& e) {
  using T = hn::TFromD<D>;
  const V epsilon = hn::Set(d, static_cast<T>(by.epsilon));
  const V rho = hn::Set(d, static_cast<T>(by.rho));
  const V rest = hn::Set(d, static_cast<T>(1 - by.rho));
  const V h = hn::MulAdd(hn::Set(d, static_cast<T>(by.weight_decay)), e.w, e.g);
  e.s0 = without_subnormals(d, hn::MulAdd(rho, e.s0, hn::Mul(rest, hn::Mul(h, h))));
  const V change = hn::Div(hn::Mul(h, hn::Sqrt(hn::Add(e.s1, epsilon))), hn::Sqrt(hn::Add(e.s0, epsilon)));
  e.s1 = without_subnormals(d, hn::MulAdd(rho, e.s1, hn::Mul(rest, hn::Mul(change, change))));
  e.w = hn::NegMulAdd(hn::Set(d, static_cast<T>(by.lr)), change, e.w);
}

/// v' = rho v + (1 - rho) g^2; w' = w - lr g / sqrt(v' + epsilon), or / (sqrt(v') + epsilon)
template <class D, class V>
HWY_INLINE void update(D d, const RmsProp& by, Element<V>& e) {
  using T = hn::TFromD<D>;
  const V epsilon = hn::Set(d, static_cast<T>(by.epsilon));
  const V square = hn::Mul(e.g, e.g);
  e.s0 =
      without_subnormals(d, hn::MulAdd(hn::Set(d, static_cast<T>(by.rho)), e.s0, hn::Mul(hn::Set(d, static_cast<T>(1 - by.rho)), square)));
  const V root = by.epsilon_outside ? hn::Add(hn::Sqrt(e.s0), epsilon) : hn::Sqrt(hn::Add(e.s0, epsilon));
  e.w = hn::Sub(e.w, hn::Div(hn::Mul(hn::Set(d, static_cast<T>(by.lr)), e.g), root));
}

/// How far ahead of its use w is fetched: products on other cores have read it, and a store waits until those have given up the line.
constexpr std::uintptr_t fetched_bytes_ahead = 2048;

/// Fetches the line at this address, which may be past the end, for writing: the other cores give it up.
HWY_INLINE void fetch_for_writing(std::uintptr_t at) {
#if HWY_ARCH_X86_64 && HWY_COMPILER_GCC
  asm volatile("prefetchw (%0)" : : "r"(at));  // the compiler's own prefetch has it only with an option that older processors lack
#else
  __builtin_prefetch(reinterpret_cast<const void*>(at), 1, 3);
#endif
}

/// Every operand of an element is read before any is written, because outputs may share the storage of inputs.
template <class T, class Step>
void step(const Step& given, const Span<T>& span, std::int64_t n) {
  const Step by = given;  // copies, which no store through the span can alias: constants stay in registers
  const Span<T> s = span;
  const Wide<T> d;
  for (std::int64_t i = 0; i < n; i += lanes(d)) {
    fetch_for_writing(reinterpret_cast<std::uintptr_t>(s.new_w + i) + fetched_bytes_ahead);
    const std::int64_t m = n - i;
    const bool whole = m >= lanes(d);
    const auto load = [&](const T* p) HWY_ATTR { return whole ? hn::LoadU(d, p + i) : load_first(d, p + i, m); };
    Element<hn::Vec<Wide<T>>> e{load(s.w), load(s.g), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    if constexpr (Step::states > 0) e.s0 = load(s.states[0]);
    if constexpr (Step::states > 1) e.s1 = load(s.states[1]);
    if constexpr (Step::states > 2) e.s2 = load(s.states[2]);
    update(d, by, e);
    const auto store = [&](auto v, T* p) HWY_ATTR {
      if (p == nullptr) return;
      if (whole) {
        hn::StoreU(v, d, p + i);
      } else {
        store_first(v, d, p + i, m);
      }
    };
    store(e.w, s.new_w);
    if constexpr (Step::states > 0) store(e.s0, s.new_states[0]);
    if constexpr (Step::states > 1) store(e.s1, s.new_states[1]);
    if constexpr (Step::states > 2) store(e.s2, s.new_states[2]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements, over all parameters, worth a thread of their own: about 20 us from L2.
constexpr std::int64_t grain = 48 * 1024;

/// A call as groups, one per parameter. Inputs: `shared` operands, then (w g state...) of each group; outputs: (w state...) of each group.
template <class T, class Step>
class Groups {
 public:
  Groups(const sdk::Call& call, std::uint32_t shared) : call_(call), shared_(shared) {}

  std::uint32_t count() const { return (call_.input_count - shared_) / inputs; }
  std::int64_t size(std::uint32_t group) const { return call_.inputs[shared_ + group * inputs].count; }

  /// Elements of a group from `begin` on.
  Span<T> span(std::uint32_t group, std::int64_t begin) const {
    const std::uint32_t first = shared_ + group * inputs;
    Span<T> s;
    s.w = call_.input<T>(first) + begin;
    s.g = call_.input<T>(first + 1) + begin;
    s.new_w = output(group * outputs, begin);
    for (std::uint32_t k = 0; k < Step::states; ++k) {
      s.states[k] = call_.input<T>(first + 2 + k) + begin;
      s.new_states[k] = output(group * outputs + 1 + k, begin);
    }
    return s;
  }

  /// Whether the first output, which may share the storage of any input, is read by another group.
  bool first_output_is_read_elsewhere() const {
    if (!call_.has_output(0)) return false;
    for (std::uint32_t i = shared_ + inputs; i < call_.input_count; ++i) {
      if (call_.inputs[i].data == call_.outputs[0].data) return true;
    }
    return false;
  }

 private:
  static constexpr std::uint32_t inputs = 2 + Step::states;
  static constexpr std::uint32_t outputs = 1 + Step::states;

  T* output(std::uint32_t i, std::int64_t begin) const { return call_.has_output(i) ? call_.output<T>(i) + begin : nullptr; }

  const sdk::Call& call_;
  std::uint32_t shared_;
};

/// Processes groups [from, to) as one row of elements, divided among the threads.
template <class T, class Step>
void step_groups(const sdk::Call& call, const Groups<T, Step>& groups, const Step& by, std::uint32_t from, std::uint32_t to) {
  std::int64_t total = 0;
  for (std::uint32_t group = from; group < to; ++group) total += groups.size(group);
  const auto step_loop = TENON_DISPATCH(step<T, Step>);
  call.host.parallel_for(total, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t first = 0;  // the group's first element in the row
    for (std::uint32_t group = from; group < to && first < end; ++group) {
      const std::int64_t low = std::max(begin, first);
      const std::int64_t high = std::min(end, first + groups.size(group));
      if (low < high) step_loop(by, groups.span(group, low - first), high - low);
      first += groups.size(group);
    }
  });
}

template <class T, class Step>
void step_all(const sdk::Call& call, std::uint32_t shared, const Step& by) {
  const Groups<T, Step> groups(call, shared);
  if (groups.first_output_is_read_elsewhere()) {
    step_groups(call, groups, by, 1, groups.count());
    step_groups(call, groups, by, 0, 1);
  } else {
    step_groups(call, groups, by, 0, groups.count());
  }
}

/// h = g + weight_decay w; v' = momentum v + h; w' = w - lr v', with nesterov w - lr (h + momentum v'). Without momentum w' = w - lr h, and
/// there is no v.
template <class T>
void sgd_step(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_sgd>();
  const double lr = sdk::number_of(call.inputs[0]);
  if (a.momentum == 0) {
    step_all<T>(call, 1, Sgd{lr, a.weight_decay});
  } else {
    step_all<T>(call, 1, Momentum{lr, a.weight_decay, a.momentum, a.nesterov != 0});
  }
}

template <class T, bool amsgrad>
void step_by_moments(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_adam>();
  const double lr = sdk::number_of(call.inputs[0]);
  const auto step = static_cast<double>(*call.input<std::int64_t>(1));
  const double rate = lr / (1 - std::pow(a.beta1, step));
  const double correction = 1 / std::sqrt(1 - std::pow(a.beta2, step));
  step_all<T>(call, 2, Adam<amsgrad>{a.beta1, a.beta2, rate, correction, a.epsilon, lr * a.weight_decay});
}

/// m' = beta1 m + (1 - beta1) g; v' = beta2 v + (1 - beta2) g^2;
/// w' = w - lr (m' / (1 - beta1^step) / (sqrt(v' / (1 - beta2^step)) + epsilon) + weight_decay w), step from 1
template <class T>
void adam_step(const sdk::Call& call) {
  step_by_moments<T, false>(call);
}

/// v' = rho v + (1 - rho) g^2; w' = w - lr g / sqrt(v' + epsilon), or / (sqrt(v') + epsilon)
template <class T>
void rmsprop_step(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_rmsprop>();
  step_all<T>(call, 1, RmsProp{sdk::number_of(call.inputs[0]), a.rho, a.epsilon, a.epsilon_outside != 0});
}

/// m', v' as in adam_step; v_max' = max(v_max, v') in place of v' under the root
template <class T>
void amsgrad_step(const sdk::Call& call) {
  step_by_moments<T, true>(call);
}

/// h = g + weight_decay w; sum' = sum + h^2; w' = w - lr h / (sqrt(sum') + epsilon)
template <class T>
void adagrad_step(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_adagrad>();
  step_all<T>(call, 1, Adagrad{sdk::number_of(call.inputs[0]), a.epsilon, a.weight_decay});
}

/// v and delta are running means of h^2 and of the squared changes; w' = w - lr h sqrt(delta + epsilon) / sqrt(v' + epsilon)
template <class T>
void adadelta_step(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_adadelta>();
  step_all<T>(call, 1, Adadelta{sdk::number_of(call.inputs[0]), a.rho, a.epsilon, a.weight_decay});
}

constexpr sdk::Traits traits{.in_place = true};

}  // namespace

TENON_KERNEL_WITH(sgd_step, traits, float, double)
TENON_KERNEL_WITH(adam_step, traits, float, double)
TENON_KERNEL_WITH(rmsprop_step, traits, float, double)
TENON_KERNEL_WITH(amsgrad_step, traits, float, double)
TENON_KERNEL_WITH(adagrad_step, traits, float, double)
TENON_KERNEL_WITH(adadelta_step, traits, float, double)

}  // namespace tenon::openblas
#endif
