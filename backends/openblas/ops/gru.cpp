// SPDX-License-Identifier: Apache-2.0
// ops/gru.cpp - the gated recurrent unit: for each step products with the state and passes over gates and state. The gradient processes the
// steps in reverse.
#include "simd/foreach_target.h"

#include "recurrent/recurrent_cells.h"

#ifndef TENON_OPENBLAS_GRU
#define TENON_OPENBLAS_GRU
namespace tenon::openblas {
namespace {

enum Gate : std::int64_t { z_gate, r_gate, candidate, gate_count };
constexpr std::int64_t seen = gate_count;  // the candidate's view of the state, r h or h rh' + brh: stored with the gates but not a gate
constexpr std::int64_t kept_count = seen + 1;

/// If the reset gate scales a product, one pass over the units follows all products: `whole`. If it scales a factor of the candidate's
/// product, `reset` precedes that product and `finish` follows it.
enum class Stage { whole, reset, finish };

bool resets_last(const sdk::Call& call) {
  return call.attr<tenon_attributes_recurrent>().linear_before_reset != 0;
}

template <class T>
struct Gru : ForwardLayer<T> {
  bool reset_last;
  T* kept;              ///< (T, B, D, 4 H): z, r, h~, seen; NULL: not kept
  T* seen_state;        ///< (D, B, H), unless kept
  SumOf<T>* seen_sums;  ///< of bf16: (D, B, H), h rh' + brh

  Gru(const sdk::Call& a_call, sdk::ScratchArena& arena) : ForwardLayer<T>(a_call, arena, gate_count, candidate) {
    reset_last = resets_last(a_call);
    if (reset_last) this->summed_gates = candidate;
    kept = a_call.has_output(2) ? a_call.output<T>(2) : nullptr;
    seen_state = a_call.has_output(2) ? nullptr : arena.allocate<T>(this->state_elements());
    seen_sums = rounds_seen ? arena.allocate<SumOf<T>>(this->state_elements()) : nullptr;
  }
  static constexpr bool rounds_seen = !std::is_same_v<T, SumOf<T>>;
  Rows<T> kept_of(const StepPart& part) const { return this->in_gates(kept, part, kept_count); }
  Rows<T> seen_of(const StepPart& part) const {
    return kept == nullptr ? this->in_state(seen_state, part) : kept_of(part).from_column(seen * this->units);
  }
  /// Where h rh' + brh is.
  Rows<SumOf<T>> seen_sums_of(const StepPart& part) const {
    if constexpr (rounds_seen) {
      return this->in_state(seen_sums, part);
    } else {
      return seen_of(part);
    }
  }
  void multiply_seen(const StepPart& part) const;
  void multiply_reset(const StepPart& part) const;
  Phase pass(Stage stage) const;
  void run() const;
};

template <class T>
struct GruGrad : BackwardLayer<T> {
  bool reset_last;
  const T* kept;  ///< (T, B, D, 4 H): z, r, h~, seen
  T* d_reset;     ///< (D, B, H): the gradient of r h

  GruGrad(const sdk::Call& a_call, sdk::ScratchArena& arena)
      : BackwardLayer<T>(a_call, arena, 2, 7, gate_count, resets_last(a_call) ? gate_count : candidate, resets_last(a_call)) {
    reset_last = resets_last(a_call);
    kept = a_call.input<T>(8);
    d_reset = reset_last ? nullptr : arena.allocate<T>(this->state_elements());
  }
  Phase pass(Stage stage) const;
  void run() const;
};

}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

template <class T>
void gru_step(const Gru<T>& layer, const StepPart& part, Stage stage) {
  const Wide<SumOf<T>> d;
  const Rows<const T> before = layer.h.before(part);
  const Rows<SumOf<T>> sums = layer.sums_at(part), seen_sums = layer.seen_sums_of(part);
  const Rows<T> seen_state = layer.seen_of(part), kept = layer.kept_of(part), after = layer.h.after(part);
  for_each_unit<T>(layer, part, [&](const Units<SumOf<T>>& at) HWY_ATTR {
    const auto h = at.load_or_zero(before);
    auto z = at.load(sums, z_gate), r = at.load(sums, r_gate);
    if (stage != Stage::finish) {
      z = Sigmoid{}(d, z);
      r = Sigmoid{}(d, r);
    }
    if (stage == Stage::reset) {
      at.store(z, sums, z_gate);
      at.store(r, sums, r_gate);
      at.store(hn::Mul(r, h), seen_state);
      return;
    }
    auto sum = at.load(sums, candidate);
    if (stage == Stage::whole) {
      const auto state = at.load(seen_sums);
      sum = hn::MulAdd(r, state, sum);
      if (layer.rounds_seen && kept.data != nullptr) at.store(state, kept, seen);
    }
    const auto h_new = Tanh{}(d, sum);
    if (kept.data != nullptr) {
      at.store(z, kept, z_gate);
      at.store(r, kept, r_gate);
      at.store(h_new, kept, candidate);
    }
    at.store(hn::MulAdd(z, hn::Sub(h, h_new), h_new), after);
  });
}

template <class T>
void gru_grad_step(const GruGrad<T>& layer, const StepPart& part, Stage stage) {
  const Wide<T> d;
  const auto one = hn::Set(d, 1);
  const Rows<const T> kept = layer.in_gates(layer.kept, part, kept_count), before = layer.state_before(part);
  const Rows<const T> dy = layer.in_sequence(layer.dy, part), dh_after = layer.after(layer.dy_h, layer.dh, part);
  const Rows<T> of_input = layer.d_gates_of(part), of_state = layer.d_state_gates_of(part);
  const Rows<T> dh_before = layer.in_state(layer.dh, part), all_d_reset = layer.in_state(layer.d_reset, part);
  for_each_unit<T>(layer, part, [&](const Units<T>& at) HWY_ATTR {
    const auto h = at.load_or_zero(before), r = at.load(kept, r_gate);
    if (stage == Stage::finish) {
      const auto d_reset = at.load(all_d_reset);
      at.store(hn::Mul(hn::Mul(d_reset, h), slope_of_sigmoid(one, r)), of_input, r_gate);
      at.store(hn::MulAdd(d_reset, r, at.load(dh_before)), dh_before);
      return;
    }
    const auto z = at.load(kept, z_gate), h_new = at.load(kept, candidate);
    const auto dh = hn::Add(at.load_or_zero(dy), at.load_or_zero(dh_after));
    const auto dz = hn::Mul(hn::Mul(dh, hn::Sub(h, h_new)), slope_of_sigmoid(one, z));
    const auto dn = hn::Mul(hn::Mul(dh, hn::Sub(one, z)), slope_of_tanh(one, h_new));
    at.store(dz, of_input, z_gate);
    at.store(dn, of_input, candidate);
    at.store(hn::Mul(dh, z), dh_before);
    if (stage != Stage::whole) return;
    const auto dr = hn::Mul(hn::Mul(dn, at.load(kept, seen)), slope_of_sigmoid(one, r));
    at.store(dr, of_input, r_gate);
    at.store(dz, of_state, z_gate);
    at.store(dr, of_state, r_gate);
    at.store(hn::Mul(dn, r), of_state, candidate);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "elementwise/half.h"

namespace tenon::openblas {
namespace {

template <class T>
Phase Gru<T>::pass(Stage stage) const {
  return {this->units, [this, stage](const StepPart& part) { TENON_DISPATCH(gru_step<T>)(*this, part, stage); }};
}
template <class T>
Phase GruGrad<T>::pass(Stage stage) const {
  return {this->units, [this, stage](const StepPart& part) { TENON_DISPATCH(gru_grad_step<T>)(*this, part, stage); }};
}

/// seen = h rh' + brh
template <class T>
void Gru<T>::multiply_seen(const StepPart& part) const {
  const Rows<const T> before = this->h.before(part);
  const Rows<SumOf<T>> to = seen_sums_of(part);
  const T* const br = this->b == nullptr ? nullptr : this->b + (part.direction * 2 + 1) * this->columns() + candidate * this->units;
  if constexpr (!rounds_seen) {
    if (before.data != nullptr) return this->multiply(part, before, this->panels.second, to, {}, br);
  }
  for (std::int64_t row = 0; row < part.rows; ++row) {
    SumOf<T>* const line = to.data + row * to.stride + part.column;
    for (std::int64_t j = 0; j < part.columns; ++j) line[j] = br == nullptr ? SumOf<T>(0) : number_of(br[part.column + j]);
  }
  if (before.data != nullptr) this->multiply(part, before, this->panels.second, to, to);
}

/// The candidate's sums += (r h) rh'
template <class T>
void Gru<T>::multiply_reset(const StepPart& part) const {
  const Rows<SumOf<T>> to = this->sums_at(part).from_column(candidate * this->units);
  if (this->h.before(part).data != nullptr) this->multiply(part, seen_of(part), this->panels.second, to, to);
}

template <class T>
void Gru<T>::run() const {
  if (reset_last) {
    const Phase seen_product{this->units, [this](const StepPart& part) { multiply_seen(part); }};
    this->run_steps({this->state_product(), seen_product, pass(Stage::whole)});
  } else {
    const Phase reset_product{this->units, [this](const StepPart& part) { multiply_reset(part); }};
    this->run_steps({this->state_product(), pass(Stage::reset), reset_product, pass(Stage::finish)});
  }
}

template <class T>
void GruGrad<T>::run() const {
  if (reset_last) return this->run_steps({pass(Stage::whole), this->state_gradient(true)});
  const Phase reset_gradient{this->units, [this](const StepPart& part) {
                               const Rows<T> of_candidate = this->d_gates_of(part).from_column(candidate * this->units);
                               this->multiply(part, of_candidate, this->other_panels, this->in_state(d_reset, part));
                             }};
  this->run_steps({pass(Stage::reset), reset_gradient, pass(Stage::finish), this->state_gradient(true)});
  for (std::int64_t d = 0; d < this->directions; ++d) {
    // With an empty batch nothing was kept, and there is no memory to point into.
    const T* const resets = kept == nullptr ? nullptr : kept + (d * kept_count + seen) * this->units;
    this->recurrent_gradient(this->d_gates, d, candidate, gate_count, resets, this->directions * kept_count * this->units);
  }
}

/// z, r = s(x w' + h r' + b), h~ = tanh(x wh' + bwh + q), h_t = (1 - z) h~ + z h_(t-1); q = (r h) rh' + brh, or r (h rh' + brh) with
/// linear_before_reset
///
/// Shapes  x (T, B, I), w (D, 3 H, I), r (D, 3 H, H), b (D, 6 H) and h0 (D, B, H) or absent; y (T, D, B, H), y_h (D, B, H), gates
///         (T, B, D, 4 H) = (z, r, h~, r h or h rh' + brh), each may be absent.
template <class T>
void gru(const sdk::Call& call) {
  run_layer<Gru<T>>(call);
}

/// From the last step to the first: with dh the gradient of h_t, the gates' gradients are dh~ = dh (1 - z) (1 - h~^2),
/// dz = dh (h_(t-1) - h~) z (1 - z), dr = r (1 - r) times the gradient of r's result; dh of the previous step is dh z plus the gradients
/// through the products.
///
/// Shapes  as gru; dy and dy_h (0 if absent), db and dh0 may be absent.
template <class T>
void gru_grad(const sdk::Call& call) {
  run_layer<GruGrad<T>>(call);
}

}  // namespace

TENON_KERNEL_WITH(gru, layer_traits<Gru>, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(gru_grad, (gradient_traits<GruGrad, 2>), float, double)

}  // namespace tenon::openblas
#endif
