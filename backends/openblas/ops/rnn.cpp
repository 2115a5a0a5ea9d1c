// SPDX-License-Identifier: Apache-2.0
// ops/rnn.cpp - the Elman recurrent layer: for each step a product with the state, then the activation. The gradient processes the steps in
// reverse.
#include "simd/foreach_target.h"

#include "recurrent/recurrent_cells.h"

#ifndef TENON_OPENBLAS_RNN
#define TENON_OPENBLAS_RNN
namespace tenon::openblas {
namespace {

template <class T>
struct Rnn : ForwardLayer<T> {
  bool is_relu;

  Rnn(const sdk::Call& a_call, sdk::ScratchArena& arena)
      : ForwardLayer<T>(a_call, arena, 1, 1), is_relu(a_call.attr<tenon_attributes_recurrent>().activation == TENON_RNN_RELU) {}
  void run() const;
};

template <class T>
struct RnnGrad : BackwardLayer<T> {
  bool is_relu;

  RnnGrad(const sdk::Call& a_call, sdk::ScratchArena& arena)
      : BackwardLayer<T>(a_call, arena, 2, 7, 1, 1), is_relu(a_call.attr<tenon_attributes_recurrent>().activation == TENON_RNN_RELU) {}
  void run() const;
};

}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

template <class T>
void rnn_step(const Rnn<T>& layer, const StepPart& part) {
  const Wide<SumOf<T>> d;
  const Rows<SumOf<T>> sums = layer.sums_at(part);
  const Rows<T> h = layer.h.after(part);
  for_each_unit<T>(layer, part, [&](const Units<SumOf<T>>& at) HWY_ATTR {
    const auto sum = at.load(sums);
    at.store(layer.is_relu ? Relu{}(d, sum) : Tanh{}(d, sum), h);
  });
}

template <class T>
void rnn_grad_step(const RnnGrad<T>& layer, const StepPart& part) {
  const Wide<T> d;
  const auto one = hn::Set(d, 1);
  const Rows<const T> all_y = layer.in_sequence(layer.y, part), dy = layer.in_sequence(layer.dy, part);
  const Rows<const T> dh = layer.after(layer.dy_h, layer.dh, part);
  const Rows<T> d_sums = layer.d_gates_of(part);
  for_each_unit<T>(layer, part, [&](const Units<T>& at) HWY_ATTR {
    const auto y = at.load(all_y);
    const auto slope = layer.is_relu ? hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), one) : slope_of_tanh(one, y);
    at.store(hn::Mul(slope, hn::Add(at.load_or_zero(dy), at.load_or_zero(dh))), d_sums);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

template <class T>
void Rnn<T>::run() const {
  this->run_steps({this->state_product(), {this->units, [this](const StepPart& part) { TENON_DISPATCH(rnn_step<T>)(*this, part); }}});
}

template <class T>
void RnnGrad<T>::run() const {
  this->run_steps({{this->units,
                    [this](const StepPart& part) {
                      TENON_DISPATCH(rnn_grad_step<T>)
                      (*this, part);
                    }},
                   this->state_gradient(false)});
}

/// h_t = f(x_t w' + h_(t-1) r' + bw + br), f tanh or max(0, .)
///
/// Shapes  x (T, B, I), w (D, H, I), r (D, H, H), b (D, 2 H) and h0 (D, B, H) or absent; y (T, D, B, H), y_h (D, B, H), each may be absent.
template <class T>
void rnn(const sdk::Call& call) {
  run_layer<Rnn<T>>(call);
}

/// From the last step to the first: da = f'(y_t) (dy_t + dh), dh = da r; then dx = da w, dw = da' x, dr = da' h, db = sum of da
///
/// Shapes  as rnn; dy and dy_h (0 if absent), db and dh0 may be absent.
template <class T>
void rnn_grad(const sdk::Call& call) {
  run_layer<RnnGrad<T>>(call);
}

}  // namespace

TENON_KERNEL_WITH(rnn, layer_traits<Rnn>, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(rnn_grad, (gradient_traits<RnnGrad, 2>), float, double)

}  // namespace tenon::openblas
#endif
