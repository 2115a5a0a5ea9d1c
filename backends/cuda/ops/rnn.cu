// SPDX-License-Identifier: Apache-2.0
// The plain recurrent layer and its gradient through all steps.
#include "kernel/operands.h"
#include "recurrent/recurrent.cuh"

namespace tenon::cuda {
namespace {

bool rectifies(const sdk::Call& call) {
  return call.attr<tenon_attributes_recurrent>().activation == TENON_RNN_RELU;
}

template <class T>
struct RnnCell {
  Sums<T> sums;
  const T* products;
  bool rectifies;
  T *h, *y;

  __device__ void operator()(const Unit& at) const {
    const Wide<T> sum = sums.of_input(at, 0) + sums.of_state(at, 0, products, 0, 1);
    const Wide<T> next = rectifies ? (sum < 0 ? Wide<T>(0) : sum) : std::tanh(sum);
    h[at.state] = narrow<T>(next);
    write_if(y, at.sequence, next);
  }
};

template <class T>
struct RnnGradCell {
  const T *y, *dy, *dh;
  bool rectifies;
  GateGradients<T> d_gates;

  __device__ void operator()(const Unit& at) const {
    const Wide<T> h = widen(y[at.sequence]);
    const Wide<T> slope = rectifies ? Wide<T>(h > 0 ? 1 : 0) : tanh_derivative(h);
    d_gates.write(at, 0, slope * (read_or_zero(dy, at.sequence) + read_or_zero(dh, at.state)));
  }
};

template <class T>
struct RnnCells : Forward<T> {
  T *sums, *products;

  RnnCells(const sdk::Call& call, ScratchArena& arena) : Forward<T>(call, 1, arena) {
    sums = arena.allocate<T>(this->layer.rows() * this->layer.all_columns());
    products = arena.allocate<T>(this->layer.state_elements());
  }
  void step(const Step& step) const {
    const sdk::Call& call = this->layer.call;
    const T* const of_state = this->product(this->before(step), 0, 1, products);
    this->each(step, RnnCell<T>{{1, this->layer.units, sums, this->bias}, of_state, rectifies(call), this->h, output_or_null<T>(call, 0)});
  }
};

template <class T>
struct RnnGradCells : Backward<T> {
  RnnGradCells(const sdk::Call& call, ScratchArena& arena) : Backward<T>(call, 2, 7, 1, arena) {}
  void step(const Step& step) const {
    this->each(step, RnnGradCell<T>{this->y, this->dy, this->after(step), rectifies(this->layer.call),
                                    GateGradients<T>{1, this->layer.units, this->d_gates, this->of_step}});
    if (!this->needs_previous(step)) return;
    this->layer.state_gradient(this->side_by_side(step, this->d_gates, this->of_step), 0, 1, false, this->dh, this->workspace);
  }
  void finish() const {
    this->bias_gradient(this->d_gates, this->d_gates);
    this->recurrent_gradient(this->d_gates, 0, 1);
  }
};

/// h_t = f(x_t w' + h_(t-1) r' + bw + br), f tanh or max(0, .)
///
/// Shapes      x (T, B, I), w (D, H, I), r (D, H, H), b (D, 2 H) and h0 (D, B, H) or absent; y (T, D, B, H), y_h (D, B, H), each may be
///             absent.
/// Attributes  direction, activation.
template <class T>
void rnn(const sdk::Call& call) {
  run_layer<RnnCells<T>>(call);
}

/// From the last step to the first: da = f'(y_t) (dy_t + dh), dh = da r; then dx = da w, dw = da' x, dr = da' h, db = sum of da.
///
/// Shapes  as rnn; dy, dy_h may be absent (0), db and dh0 too.
template <class T>
void rnn_grad(const sdk::Call& call) {
  run_gradient<RnnGradCells, T>(call);
}

}  // namespace
TENON_KERNEL_WITH(rnn, (sdk::Traits{.scratch = scratch_of_layer<RnnCells>}), sdk::Half, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(rnn_grad, (sdk::Traits{.scratch = scratch_of_gradient<RnnGradCells, 2>}), sdk::Half, sdk::BFloat16, float, double)
}  // namespace tenon::cuda
