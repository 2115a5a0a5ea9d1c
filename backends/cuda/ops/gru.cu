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
/// The reset state, or its gradient, is exchanged before that of the other gates is known.
int exchanges_of(const sdk::Call& call) {
  return resets_last(call) ? 1 : 2;
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

/// The state after a step.
template <class T>
struct GruNext {
  bool resets_last;
  GateValues<T> kept;
  T* y;
  /// `product` is that of the candidate with its bias, `of_candidate` what x contributes to it.
  __device__ Wide<T> operator()(const Unit& at, Wide<T> state, Wide<T> z, Wide<T> r, Wide<T> of_candidate, Wide<T> product) const {
    const Wide<T> h_new = std::tanh(of_candidate + (resets_last ? r * product : product));
    const Wide<T> next = (1 - z) * h_new + z * state;
    kept.write_if(at, z_gate, z);
    kept.write_if(at, r_gate, r);
    kept.write_if(at, candidate, h_new);
    kept.write_if(at, seen, resets_last ? product : r * state);
    write_if(y, at.sequence, next);
    return next;
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
  const T* before;
  GruNext<T> next;
  T* h;

  __device__ void operator()(const Unit& at) const {
    const Wide<T> state = read_or_zero(before, at.state), z = gates(at, z_gate), r = gates(at, r_gate);
    const Wide<T> product = next.resets_last ? gates.sums.of_state(at, candidate, gates.products, candidate, gate_count)
                                             : gates.sums.of_state(at, candidate, reset_products, 0, 1);
    h[at.state] = narrow<T>(next(at, state, z, r, gates.sums.of_input(at, candidate), product));
  }

  // For all_steps.
  static constexpr int count = gate_count, extra_vectors = 1;  // r h
  struct Carried {};
  __device__ Carried start(const Unit&) const { return {}; }
  template <class Block>
  __device__ Wide<T> all_steps(Block& block, const Unit& at, const Wide<T>* state, Wide<T> h_before, Carried) const {
    Wide<T> of_input[gate_count] = {}, bias[gate_count] = {};
    if (block.works()) {  // read before the products, during which they arrive
#pragma unroll
      for (int g = 0; g < gate_count; ++g) {
        of_input[g] = gates.sums.of_input(at, g);
        bias[g] = gates.sums.state_bias(at, g);
      }
    }
    const auto gate = [&](int g, Wide<T> product) { return functions::Sigmoid{}(of_input[g] + (product + bias[g])); };
    Wide<T> z, r, product;
    if (next.resets_last) {
      Wide<T> products[gate_count];
      block.template multiply<0>(state, products);
      z = gate(z_gate, products[z_gate]);
      r = gate(r_gate, products[r_gate]);
      product = products[candidate];
    } else {
      Wide<T> products[candidate], of_reset[1];
      block.template multiply<0>(state, products);
      z = gate(z_gate, products[z_gate]);
      r = gate(r_gate, products[r_gate]);
      Wide<T>* const reset = block.vector(2);
      if (block.works()) block.write(reset, r * h_before);
      block.exchange(reset, 1);
      block.template multiply<candidate>(reset, of_reset);
      product = of_reset[0];
    }
    if (!block.works()) return 0;
    return widen(narrow<T>(next(at, h_before, z, r, of_input[candidate], product + bias[candidate])));
  }
  __device__ void finish(const Unit&, Carried) const {}
};

/// The gradients of all gates but r, whose gradient without resets_last needs the candidate's product. The state's gradient apart from the
/// products is written to `d_before`.
template <class T>
struct GruGradCell {
  GateValues<const T> kept;
  StatesBefore<T> state_before;
  const T *dy, *dh;
  bool resets_last;
  T* d_before;
  GateGradients<T> of_input, of_state;

  /// What a unit reads at a step; `own` becomes the gradient of its state.
  struct Values {
    Wide<T> z, r, h_new, seen_by_candidate, h_before, own;
  };
  __device__ Values read(const Unit& at) const {
    return {kept.read(at, z_gate), kept.read(at, r_gate), kept.read(at, candidate),
            kept.read(at, seen),   state_before(at),      read_or_zero(dy, at.sequence)};
  }
  /// Writes these gradients, and `out` has those of h's contributions, for the products. That of r is written only with resets_last.
  __device__ void write(const Unit& at, const Values& values, Wide<T> (&out)[gate_count]) const {
    const Wide<T> z = values.z, r = values.r, h_new = values.h_new;
    const Wide<T> of_z = values.own * (values.h_before - h_new) * sigmoid_derivative(z);
    const Wide<T> of_candidate = values.own * (1 - z) * tanh_derivative(h_new);
    const Wide<T> of_r = of_candidate * values.seen_by_candidate * sigmoid_derivative(r);
    of_input.write(at, z_gate, of_z);
    of_input.write(at, candidate, of_candidate);
    out[z_gate] = of_z;
    out[r_gate] = of_r;
    out[candidate] = resets_last ? of_candidate * r : of_candidate;
    if (!resets_last) return;
    of_input.write(at, r_gate, of_r);
#pragma unroll
    for (int g = 0; g < gate_count; ++g) of_state.write(at, g, out[g]);
  }
  __device__ void operator()(const Unit& at) const {
    Values values = read(at);
    values.own += read_or_zero(dh, at.state);
    Wide<T> of_products[gate_count];
    write(at, values, of_products);
    d_before[at.state] = narrow<T>(values.own * values.z);
  }

  // For all_steps_back.
  static constexpr int count = gate_count;
  struct Carried {};
  __device__ Carried start(const Unit&) const {
    return {};
  }
  template <class Block>
  __device__ void gates_of(const Block& block, const Unit& at, Wide<T>* vectors, Values& values, Wide<T> dh_after, Carried) const {
    values.own += dh_after;
    Wide<T> of_products[gate_count];
    write(at, values, of_products);
#pragma unroll
    for (int g = 0; g < gate_count; ++g) {
      if (resets_last || g != r_gate) block.write(block.vector_after(vectors, g), of_products[g]);
    }
  }
  template <class Block>
  __device__ Wide<T> before(Block& block, const Unit& at, Wide<T>* vectors, const Values& values) const {
    const Wide<T> own = values.own * values.z;
    if (resets_last) {
      block.exchange(vectors, gate_count);
      return own + block.template sum<0, gate_count>(vectors);
    }
    block.exchange(block.vector_after(vectors, candidate), 1);
    const Wide<T> of_reset = block.template sum<candidate, 1>(block.vector_after(vectors, candidate));
    if (block.works()) {
      const Wide<T> of_r = of_reset * values.h_before * sigmoid_derivative(values.r);
      of_input.write(at, r_gate, of_r);
      block.write(block.vector_after(vectors, r_gate), of_r);
    }
    block.exchange(vectors, candidate);  // of z and r
    return (own + of_reset * values.r) + block.template sum<0, candidate>(vectors);
  }
  __device__ void finish(const Unit&, Carried) const {}
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

  GruCells(const sdk::Call& call, ScratchArena& arena)
      : Forward<T>(call, gate_count, GruCell<T>::extra_vectors, exchanges_of(call), arena) {
    sums = arena.allocate<T>(this->layer.rows() * this->layer.all_columns());
    products = arena.allocate<T>(this->layer.state_elements() * gate_count);
    reset = arena.allocate<T>(this->layer.state_elements());
    reset_products = arena.allocate<T>(this->layer.state_elements());
  }
  /// What the cells of all steps have in common.
  GruCell<T> cells() const {
    const sdk::Call& call = this->layer.call;
    const std::int64_t units = this->layer.units;
    GruCell<T> cells{};
    cells.gates.sums = {gate_count, units, sums, this->bias};
    cells.next = {resets_last(call), {kept_count, units, output_or_null<T>(call, 2)}, output_or_null<T>(call, 0)};
    cells.h = this->h;
    return cells;
  }
  void step(const Step& step) const {
    const bool reset_last = resets_last(this->layer.call);
    const int n = reset_last ? gate_count : candidate;
    const T* const before = this->before(step);
    GruCell<T> cells = this->cells();
    cells.gates.products = this->product(before, z_gate, n, products);
    cells.gates.n = n;
    if (!reset_last && before != nullptr) {
      this->each(step, ResetCell<T>{cells.gates, before, reset});
      cells.reset_products = this->product(reset, candidate, 1, reset_products);
    }
    cells.before = before;
    this->each(step, cells);
  }
  void all_steps() const { this->all(cells()); }
};

template <class T>
struct GruGradCells : Backward<T> {
  T *of_state,
      *of_reset;  ///< of_state: gradients of h's contributions to the gates; with resets_last the candidate's differs from that of x

  GruGradCells(const sdk::Call& call, ScratchArena& arena) : Backward<T>(call, 2, 7, gate_count, exchanges_of(call), arena) {
    of_state = resets_last(call) ? this->allocate_gates(arena) : this->d_gates;
    of_reset = arena.allocate<T>(this->layer.state_elements());
  }
  GateValues<const T> kept() const { return {kept_count, this->layer.units, this->layer.call.template input<T>(8)}; }
  GruGradCell<T> cells(const T* dh_after, const GateGradients<T>& input_gates, const GateGradients<T>& state_gates) const {
    const StatesBefore<T> before{this->y, this->h0};
    return {kept(), before, this->dy, dh_after, resets_last(this->layer.call), this->dh, input_gates, state_gates};
  }
  void all_steps() const {
    const std::int64_t units = this->layer.units;
    this->all(cells(nullptr, {gate_count, units, this->d_gates, nullptr}, {gate_count, units, of_state, nullptr}));
  }
  void step(const Step& step) const {
    const bool reset_last = resets_last(this->layer.call);
    const StatesBefore<T> before{this->y, this->h0};
    const GateGradients<T> state_gates{gate_count, this->layer.units, of_state, this->of_step};
    GateGradients<T> input_gates = state_gates;
    if (reset_last) input_gates = {gate_count, this->layer.units, this->d_gates, nullptr};
    this->each(step, cells(this->after(step), input_gates, state_gates));
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
/// Dtypes      f16 and bf16: products of x are rounded to the dtype, those of states and r h where steps are launched, states as y is.
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
