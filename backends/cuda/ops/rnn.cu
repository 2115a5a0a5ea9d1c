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

  /// The state after a step.
  __device__ Wide<T> next(const Unit& at, Wide<T> sum) const {
    const Wide<T> h_next = rectifies ? (sum < 0 ? Wide<T>(0) : sum) : std::tanh(sum);
    write_if(y, at.sequence, h_next);
    return h_next;
  }
  __device__ void operator()(const Unit& at) const {
    h[at.state] = narrow<T>(next(at, sums.of_input(at, 0) + sums.of_state(at, 0, products, 0, 1)));
  }

  // For all_steps.
  static constexpr int count = 1, extra_vectors = 0;
  struct Carried {};
  __device__ Carried start(const Unit&) const { return {}; }
  template <class Block>
  __device__ Wide<T> all_steps(Block& block, const Unit& at, const Wide<T>* state, Wide<T>, Carried) const {
    Wide<T> of_input = 0, sum[1];
    if (block.works()) of_input = sums.of_input(at, 0) + sums.state_bias(at, 0);  // arrives during the products
    block.template multiply<0>(state, sum);
    return block.works() ? widen(narrow<T>(next(at, of_input + sum[0]))) : Wide<T>(0);
  }
  __device__ void finish(const Unit&, Carried) const {}
};

template <class T>
struct RnnGradCell {
  const T *y, *dy, *dh;
  bool rectifies;
  GateGradients<T> d_gates;

  /// What a unit reads at a step.
  struct Values {
    Wide<T> y, dy;
  };
  __device__ Values read(const Unit& at) const { return {widen(y[at.sequence]), read_or_zero(dy, at.sequence)}; }
  __device__ Wide<T> slope(const Values& values, Wide<T> dh_after) const {
    const Wide<T> h = values.y;
    return (rectifies ? Wide<T>(h > 0 ? 1 : 0) : tanh_derivative(h)) * (values.dy + dh_after);
  }
  __device__ void operator()(const Unit& at) const { d_gates.write(at, 0, slope(read(at), read_or_zero(dh, at.state))); }

  // For all_steps_back.
  static constexpr int count = 1;
  struct Carried {};
  __device__ Carried start(const Unit&) const { return {}; }
  template <class Block>
  __device__ void gates_of(const Block& block, const Unit& at, Wide<T>* vector, const Values& values, Wide<T> dh_after, Carried) const {
    const Wide<T> d = slope(values, dh_after);
    d_gates.write(at, 0, d);
    block.write(vector, d);
  }
  template <class Block>
  __device__ Wide<T> before(Block& block, const Unit&, Wide<T>* vector, const Values&) const {
    block.exchange(vector, 1);
    return block.template sum<0, 1>(vector);
  }
  __device__ void finish(const Unit&, Carried) const {}
};

template <class T>
struct RnnCells : Forward<T> {
  T *sums, *products;

  RnnCells(const sdk::Call& call, ScratchArena& arena) : Forward<T>(call, 1, RnnCell<T>::extra_vectors, 1, arena) {
    sums = arena.allocate<T>(this->layer.rows() * this->layer.all_columns());
    products = arena.allocate<T>(this->layer.state_elements());
  }
  RnnCell<T> cells(const T* of_state) const {
    const sdk::Call& call = this->layer.call;
    return {{1, this->layer.units, sums, this->bias}, of_state, rectifies(call), this->h, output_or_null<T>(call, 0)};
  }
  void step(const Step& step) const { this->each(step, cells(this->product(this->before(step), 0, 1, products))); }
  void all_steps() const { this->all(cells(nullptr)); }
};

template <class T>
struct RnnGradCells : Backward<T> {
  RnnGradCells(const sdk::Call& call, ScratchArena& arena) : Backward<T>(call, 2, 7, 1, 1, arena) {}
  RnnGradCell<T> cells(const T* dh_after, T* of_this_step) const {
    return {this->y, this->dy, dh_after, rectifies(this->layer.call), GateGradients<T>{1, this->layer.units, this->d_gates, of_this_step}};
  }
  void all_steps() const { this->all(cells(nullptr, nullptr)); }
  void step(const Step& step) const {
    this->each(step, cells(this->after(step), this->of_step));
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
