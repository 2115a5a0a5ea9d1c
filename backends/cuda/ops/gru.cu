// SPDX-License-Identifier: Apache-2.0
// The gated recurrent unit and its gradient through all steps.
#include "kernel/operands.h"
#include "recurrent/recurrent.cuh"

namespace tenon::cuda {
namespace {

enum Gate : int { z_gate, r_gate, candidate, seen };  // `seen`: the candidate's view of the state; stored with the gates but not a gate
constexpr int gate_count = 3;
constexpr int kept_count = 4;

bool resets_last(const sdk::Call& call) {
  return call.attr<tenon_attributes_recurrent>().linear_before_reset != 0;
}

/// Gates z and r, from the first two of the `n` gates whose products with h are given.
template <class T>
struct GatesOfState {
  Sums<T> sums;
  const T* products;
  int n;
  __device__ Wide<T> operator()(const Unit& at, Gate gate) const {
    return functions::Sigmoid{}(sums.of_input(at, gate) + sums.of_state(at, gate, products, gate, n));
  }
};

/// r h, for the product of the candidate.
template <class T>
struct ResetCell {
  GatesOfState<T> gates;
  const T* before;
  T* reset;
  __device__ void operator()(const Unit& at) const { reset[at.state] = narrow<T>(gates(at, r_gate) * read_or_zero(before, at.state)); }
};

template <class T>
struct GruCell {
  GatesOfState<T> gates;
  const T* reset_products;  ///< (r h) rh'; not with resets_last
  bool resets_last;
  const T* before;
  GateValues<T> kept;
  T *h, *y;

  __device__ void operator()(const Unit& at) const {
    const Wide<T> state = read_or_zero(before, at.state), z = gates(at, z_gate), r = gates(at, r_gate);
    const Wide<T> product = resets_last ? gates.sums.of_state(at, candidate, gates.products, candidate, gate_count)
                                        : gates.sums.of_state(at, candidate, reset_products, 0, 1);
    const Wide<T> h_new = std::tanh(gates.sums.of_input(at, candidate) + (resets_last ? r * product : product));
    const Wide<T> next = (1 - z) * h_new + z * state;
    kept.write_if(at, z_gate, z);
    kept.write_if(at, r_gate, r);
    kept.write_if(at, candidate, h_new);
    kept.write_if(at, seen, resets_last ? product : r * state);
    h[at.state] = narrow<T>(next);
    write_if(y, at.sequence, next);
  }
};

/// The gradients of all gates but r, whose gradient without resets_last needs the candidate's product. The state's gradient apart from the
/// products is written to `d_before`.
template <class T>
struct GruGradCell {
  GateValues<const T> kept;
  StatesBefore<T> before;
  const T *dy, *dh;
  bool resets_last;
  T* d_before;
  GateGradients<T> of_input, of_state;

  __device__ void operator()(const Unit& at) const {
    const Wide<T> z = kept.read(at, z_gate), h_new = kept.read(at, candidate);
    const Wide<T> own = read_or_zero(dh, at.state) + read_or_zero(dy, at.sequence);
    const Wide<T> of_z = own * (before(at) - h_new) * sigmoid_derivative(z), of_candidate = own * (1 - z) * tanh_derivative(h_new);
    of_input.write(at, z_gate, of_z);
    of_input.write(at, candidate, of_candidate);
    if (resets_last) {
      const Wide<T> r = kept.read(at, r_gate), of_r = of_candidate * kept.read(at, seen) * sigmoid_derivative(r);
      of_input.write(at, r_gate, of_r);
      of_state.write(at, z_gate, of_z);
      of_state.write(at, r_gate, of_r);
      of_state.write(at, candidate, of_candidate * r);
    }
    d_before[at.state] = narrow<T>(own * z);
  }
};

/// Gate r, from the gradient of r h.
template <class T>
struct ResetGradCell {
  GateValues<const T> kept;
  StatesBefore<T> before;
  const T* of_reset;
  T* d_before;
  GateGradients<T> of_input;

  __device__ void operator()(const Unit& at) const {
    const Wide<T> r = kept.read(at, r_gate), d = widen(of_reset[at.state]);
    of_input.write(at, r_gate, d * before(at) * sigmoid_derivative(r));
    d_before[at.state] = narrow<T>(widen(d_before[at.state]) + d * r);
  }
};

template <class T>
struct GruCells : Forward<T> {
  T *sums, *products, *reset, *reset_products;

  GruCells(const sdk::Call& call, ScratchArena& arena) : Forward<T>(call, gate_count, arena) {
    sums = arena.allocate<T>(this->layer.rows() * this->layer.all_columns());
    products = arena.allocate<T>(this->layer.state_elements() * gate_count);
    reset = arena.allocate<T>(this->layer.state_elements());
    reset_products = arena.allocate<T>(this->layer.state_elements());
  }
  void step(const Step& step) const {
    const sdk::Call& call = this->layer.call;
    const std::int64_t units = this->layer.units;
    const bool reset_last = resets_last(call);
    const int n = reset_last ? gate_count : candidate;
    const T* const before = this->before(step);
    GruCell<T> cells{};
    cells.gates = {{gate_count, units, sums, this->bias}, this->product(before, z_gate, n, products), n};
    if (!reset_last && before != nullptr) {
      this->each(step, ResetCell<T>{cells.gates, before, reset});
      cells.reset_products = this->product(reset, candidate, 1, reset_products);
    }
    cells.resets_last = reset_last;
    cells.before = before;
    cells.kept = {kept_count, units, output_or_null<T>(call, 2)};
    cells.h = this->h;
    cells.y = output_or_null<T>(call, 0);
    this->each(step, cells);
  }
};

template <class T>
struct GruGradCells : Backward<T> {
  T *of_state,
      *of_reset;  ///< of_state: gradients of h's contributions to the gates; with resets_last the candidate's differs from that of x

  GruGradCells(const sdk::Call& call, ScratchArena& arena) : Backward<T>(call, 2, 7, gate_count, arena) {
    of_state = resets_last(call) ? this->allocate_gates(arena) : this->d_gates;
    of_reset = arena.allocate<T>(this->layer.state_elements());
  }
  GateValues<const T> kept() const { return {kept_count, this->layer.units, this->layer.call.template input<T>(8)}; }
  void step(const Step& step) const {
    const bool reset_last = resets_last(this->layer.call);
    const StatesBefore<T> before{this->y, this->h0};
    const GateGradients<T> state_gates{gate_count, this->layer.units, of_state, this->of_step};
    GateGradients<T> input_gates = state_gates;
    if (reset_last) input_gates = {gate_count, this->layer.units, this->d_gates, nullptr};
    this->each(step, GruGradCell<T>{kept(), before, this->dy, this->after(step), reset_last, this->dh, input_gates, state_gates});
    const T* const of_gates = this->side_by_side(step, of_state, this->of_step);
    if (!reset_last) {
      this->layer.state_gradient(of_gates, candidate, 1, false, of_reset, this->workspace);
      this->each(step, ResetGradCell<T>{kept(), before, of_reset, this->dh, input_gates});
    }
    if (!this->needs_previous(step)) return;
    this->layer.state_gradient(of_gates, z_gate, reset_last ? gate_count : candidate, true, this->dh, this->workspace);
  }
  void finish() const {
    this->bias_gradient(this->d_gates, of_state);
    this->recurrent_gradient(of_state, z_gate, resets_last(this->layer.call) ? gate_count : candidate);
    if (resets_last(this->layer.call)) return;
    const std::int64_t kept_columns = kept_count * this->layer.units;
    for (std::int64_t d = 0; d < this->layer.directions; ++d) {
      this->layer.recurrent_gradient(of_state, d, candidate, 1, kept().data + d * kept_columns + seen * this->layer.units,
                                     this->layer.directions * kept_columns, this->workspace);
    }
  }
};

/// z, r = s(x w' + h r' + b), h~ = tanh(x wh' + bwh + q), h_t = (1 - z) h~ + z h_(t-1); q = (r h) rh' + brh, or r (h rh' + brh) with
/// linear_before_reset
///
/// Shapes      x (T, B, I), w (D, 3 H, I), r (D, 3 H, H), b (D, 6 H) and h0 (D, B, H) or absent; y (T, D, B, H), y_h (D, B, H), gates
///             (T, B, D, 4 H) = (z, r, h~, r h or h rh' + brh), each may be absent.
/// Dtypes      f16 and bf16: products are rounded to the dtype, states as y is.
/// Attributes  direction, linear_before_reset.
template <class T>
void gru(const sdk::Call& call) {
  run_layer<GruCells<T>>(call);
}

/// From the last step to the first: with dh the gradient of h_t, the gates' own gradients are dh~ = dh (1 - z) (1 - h~^2),
/// dz = dh (h_(t-1) - h~) z (1 - z), dr = (the factor of r)' r (1 - r); dh of the previous step is dh z plus the gradients through the
/// products.
///
/// Shapes  as gru; dy, dy_h may be absent (0), db and dh0 too.
template <class T>
void gru_grad(const sdk::Call& call) {
  run_gradient<GruGradCells, T>(call);
}

}  // namespace
TENON_KERNEL_WITH(gru, (sdk::Traits{.scratch = scratch_of_layer<GruCells>}), sdk::Half, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(gru_grad, (sdk::Traits{.scratch = scratch_of_gradient<GruGradCells, 2>}), sdk::Half, sdk::BFloat16, float, double)
}  // namespace tenon::cuda
