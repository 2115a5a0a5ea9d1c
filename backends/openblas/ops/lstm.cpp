// SPDX-License-Identifier: Apache-2.0
// ops/lstm.cpp - long short-term memory: for each step a product with the state, then one pass over gates, cell and state. The gradient
// processes the steps in reverse.
#include "simd/foreach_target.h"

#include "recurrent/recurrent_cells.h"

#ifndef TENON_OPENBLAS_LSTM
#define TENON_OPENBLAS_LSTM
namespace tenon::openblas {
namespace {

enum Gate : std::int64_t { in_gate, out_gate, forget_gate, candidate, gate_count };

template <class T>
struct Lstm : ForwardLayer<T> {
  States<T> c;
  T* kept_gates;  ///< (T, B, D, 4 H), of f32 and f64 in the place of the sums; NULL: not kept

  Lstm(const sdk::Call& a_call, sdk::ScratchArena& arena)
      : ForwardLayer<T>(a_call, arena, gate_count, gate_count, 3),
        c(*this, 4, this->input_or_null(5), arena),
        kept_gates(a_call.has_output(3) ? a_call.output<T>(3) : nullptr) {}
  void run() const;
};

template <class T>
struct LstmGrad : BackwardLayer<T> {
  const T *dy_c, *c0, *gates, *c;
  T* dc;  ///< (D, B, H): the gradient of the cell before the latest step

  LstmGrad(const sdk::Call& a_call, sdk::ScratchArena& arena) : BackwardLayer<T>(a_call, arena, 3, 9, gate_count, gate_count) {
    dy_c = this->input_or_null(2);
    c0 = this->input_or_null(8);
    gates = a_call.input<T>(10);
    c = a_call.input<T>(11);
    dc = this->output_or_scratch(5, this->state_elements(), arena);
  }
  void run() const;
};

}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

template <class T>
void lstm_step(const Lstm<T>& layer, const StepPart& part) {
  const Wide<SumOf<T>> d;
  const Rows<const T> c_before = layer.c.before(part);
  const Rows<SumOf<T>> sums = layer.sums_at(part);
  const Rows<T> gates = layer.in_gates(layer.kept_gates, part, gate_count), c_after = layer.c.after(part), h = layer.h.after(part);
  for_each_unit<T>(layer, part, [&](const Units<SumOf<T>>& at) HWY_ATTR {
    const auto i = Sigmoid{}(d, at.load(sums, in_gate)), o = Sigmoid{}(d, at.load(sums, out_gate));
    const auto f = Sigmoid{}(d, at.load(sums, forget_gate)), g = Tanh{}(d, at.load(sums, candidate));
    const auto c = hn::MulAdd(f, at.load_or_zero(c_before), hn::Mul(i, g));
    if (gates.data != nullptr) {
      at.store(i, gates, in_gate);
      at.store(o, gates, out_gate);
      at.store(f, gates, forget_gate);
      at.store(g, gates, candidate);
    }
    at.store(c, c_after);
    at.store(hn::Mul(o, Tanh{}(d, c)), h);
  });
}

template <class T>
void lstm_grad_step(const LstmGrad<T>& layer, const StepPart& part) {
  const Wide<T> d;
  const auto one = hn::Set(d, 1);
  const Rows<const T> gates = layer.in_gates(layer.gates, part, gate_count);
  const Rows<const T> c = layer.in_sequence(layer.c, part), c_before = layer.before(layer.c, layer.c0, part);
  const Rows<const T> dy = layer.in_sequence(layer.dy, part), dh_after = layer.after(layer.dy_h, layer.dh, part);
  const Rows<const T> dc_after = layer.after(layer.dy_c, layer.dc, part);
  const Rows<T> d_gates = layer.d_gates_of(part), dc_before = layer.in_state(layer.dc, part);
  for_each_unit<T>(layer, part, [&](const Units<T>& at) HWY_ATTR {
    const auto i = at.load(gates, in_gate), o = at.load(gates, out_gate);
    const auto f = at.load(gates, forget_gate), g = at.load(gates, candidate);
    const auto squashed = Tanh{}(d, at.load(c));
    const auto dh = hn::Add(at.load_or_zero(dy), at.load_or_zero(dh_after));
    const auto dc = hn::MulAdd(hn::Mul(dh, o), slope_of_tanh(one, squashed), at.load_or_zero(dc_after));
    at.store(hn::Mul(hn::Mul(dc, g), slope_of_sigmoid(one, i)), d_gates, in_gate);
    at.store(hn::Mul(hn::Mul(dh, squashed), slope_of_sigmoid(one, o)), d_gates, out_gate);
    at.store(hn::Mul(hn::Mul(dc, at.load_or_zero(c_before)), slope_of_sigmoid(one, f)), d_gates, forget_gate);
    at.store(hn::Mul(hn::Mul(dc, i), slope_of_tanh(one, g)), d_gates, candidate);
    at.store(hn::Mul(dc, f), dc_before);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

template <class T>
void Lstm<T>::run() const {
  this->run_steps({this->state_product(), {this->units, [this](const StepPart& part) { TENON_DISPATCH(lstm_step<T>)(*this, part); }}});
  c.copy_last_to(2);
}

template <class T>
void LstmGrad<T>::run() const {
  this->run_steps({{this->units,
                    [this](const StepPart& part) {
                      TENON_DISPATCH(lstm_grad_step<T>)
                      (*this, part);
                    }},
                   this->state_gradient(false)});
}

/// i, o, f = s(x w' + h r' + b), g = tanh(x w' + h r' + b), c_t = f c_(t-1) + i g, h_t = o tanh(c_t)
///
/// Shapes  x (T, B, I), w (D, 4 H, I), r (D, 4 H, H), b (D, 8 H), h0 and c0 (D, B, H) or absent; y and cells (T, D, B, H), y_h and y_c
///         (D, B, H), gates (T, B, D, 4 H) = (i, o, f, g), each may be absent.
/// Dtypes  f32, f64, and bf16 with sums and gates in f32.
template <class T>
void lstm(const sdk::Call& call) {
  run_layer<Lstm<T>>(call);
}

/// From the last step to the first: dc += dh o (1 - tanh(c)^2), do = dh tanh(c) o (1 - o), di = dc g i (1 - i), df = dc c_(t-1) f (1 - f),
/// dg = dc i (1 - g^2); the previous step has dc f and, with dG = (di, do, df, dg), dh = dG r. dx = dG w, dw = dG' x, dr = dG' h,
/// db = sum dG
///
/// Shapes  as lstm; dy, dy_h, dy_c (0 if absent), db, dh0 and dc0 may be absent.
template <class T>
void lstm_grad(const sdk::Call& call) {
  run_layer<LstmGrad<T>>(call);
}

}  // namespace

TENON_KERNEL_WITH(lstm, layer_traits<Lstm>, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(lstm_grad, (gradient_traits<LstmGrad, 3>), float, double)

}  // namespace tenon::openblas
#endif
