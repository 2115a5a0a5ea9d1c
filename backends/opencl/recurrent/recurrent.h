// SPDX-License-Identifier: Apache-2.0
// recurrent.h - shared by rnn, gru and lstm: sizes, scratch memory, products over all steps, and launches of recurrent/recurrent.cl.
#pragma once

#include <initializer_list>
#include <utility>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/scratch_arena.h>

#include "gemm/products.h"

namespace tenon::opencl {

/// `Layer` of recurrent/recurrent.cl.
struct Layer {
  std::int64_t steps, batch, directions, units, gates;
  std::int32_t reversed, variant;
};

/// One call: x (T, B, I), w (D, G H, I), r (D, G H, H) and b are operands `first` to `first` + 3.
template <class T>
class Recurrent {
 public:
  Recurrent(const sdk::Call& call, std::uint32_t first, std::int64_t gates, bool variant)
      : call_(call),
        first_(first),
        layer_{call.inputs[first].shape[0],
               call.inputs[first].shape[1],
               call.inputs[first + 2].shape[0],
               call.inputs[first + 2].shape[2],
               gates,
               call.attr<tenon_attributes_recurrent>().direction == TENON_DIRECTION_REVERSE ? 1 : 0,
               variant ? 1 : 0},
        features_(call.inputs[first].shape[2]) {}

  std::int64_t steps() const { return layer_.steps; }
  std::int64_t states() const { return layer_.directions * layer_.batch * layer_.units; }
  std::int64_t all_states() const { return layer_.steps * states(); }
  std::int64_t all_gates() const { return layer_.steps * layer_.batch * layer_.directions * layer_.gates * layer_.units; }

  /// A launch whose first argument is set.
  Launch launch(const char* function) const {
    Launch launch(call_, sources::recurrent, function, types<T>());
    launch.value(layer_);
    return launch;
  }
  /// state = operand `given`, or 0; also result `last`, which is final where there are no steps.
  void begin(const T* state, std::uint32_t given, std::uint32_t last) const {
    if (states() == 0) return;
    Launch(call_, sources::recurrent, "begin_states", types<T>())
        .value(states())
        .address(state)
        .in(call_, given)
        .out(call_, last)
        .over(states());
  }
  /// Result `to` = state.
  void end(const T* state, std::uint32_t to) const {
    if (states() == 0 || !call_.has_output(to)) return;
    const T* const result = call_.output<T>(to);
    Launch(call_, sources::recurrent, "begin_states", types<T>())
        .value(states())
        .address(result)
        .address(state)
        .address(nullptr)
        .over(states());
  }
  /// inputs = x w', for all steps.
  void multiply_inputs(const T* inputs) const {
    const std::int64_t columns = layer_.directions * layer_.gates * layer_.units;
    multiply_matrices(view(rows(), features_), call_.input<T>(first_), view(columns, features_).transposed(), call_.input<T>(first_ + 1),
                      inputs);
  }
  /// products (D, B, n H) = state r' for the n gates [begin, end).
  void multiply_state(const T* state, std::int64_t begin, std::int64_t end, const T* products) const {
    const std::int64_t units = layer_.units;
    Product<T> product;
    product.a_view = view(layer_.batch, units);
    product.b_view = view((end - begin) * units, units).transposed();
    product.batch = collapse<2>(&layer_.directions, 1, {sdk::Strides{layer_.batch * units}, sdk::Strides{layer_.gates * units * units}});
    product.a = state;
    product.b = call_.input<T>(first_ + 2) + begin * units * units;
    product.y = const_cast<T*>(products);
    multiply(stream_of(call_), product);
  }
  /// state (D, B, H) = d_gates r, added to it if it `adds`, for the gates [begin, end) of a step.
  void multiply_slopes(const T* d_gates, std::int64_t step, std::int64_t begin, std::int64_t end, bool adds, const T* state) const {
    const std::int64_t units = layer_.units;
    for (std::int64_t d = 0; d < layer_.directions; ++d) {
      const std::int64_t t = layer_.reversed != 0 || d == 1 ? layer_.steps - 1 - step : step;
      Product<T> product;
      product.a_view = {layer_.batch, (end - begin) * units, layer_.directions * layer_.gates * units, 1};
      product.b_view = view((end - begin) * units, units);
      product.a = d_gates + ((t * layer_.batch * layer_.directions + d) * layer_.gates + begin) * units;
      product.b = call_.input<T>(first_ + 2) + (d * layer_.gates + begin) * units * units;
      product.y = const_cast<T*>(state) + d * layer_.batch * units;
      product.beta = adds ? 1 : 0;
      multiply(stream_of(call_), product);
    }
  }
  /// dx and dw (results 0 and 1), and half 0 of db (result 3), from the gradients of x's contributions to the gates.
  void input_gradients(const T* d_gates) const {
    const std::int64_t columns = layer_.directions * layer_.gates * layer_.units;
    multiply_matrices(view(rows(), columns), d_gates, view(columns, features_), call_.input<T>(first_ + 1), call_.output<T>(0));
    multiply_matrices(view(rows(), columns).transposed(), d_gates, view(rows(), features_), call_.input<T>(first_), call_.output<T>(1));
    bias_gradient(d_gates, 0);
  }
  /// Half 0 (bw) or 1 (br) of db.
  void bias_gradient(const T* d_gates, std::int64_t half) const {
    if (!call_.has_output(3)) return;
    launch("bias_slopes").value(half).out(call_, 3).address(filled(d_gates)).over(layer_.directions * layer_.gates * layer_.units);
  }
  /// dr (result 2) for the gates [begin, end): the products of their gradients and of the states before them. `gates`: the operand that
  /// keeps r h, or an absent one. `factors`: scratch memory for the states of all steps.
  void recurrent_gradient(const T* d_gates, const T* factors, std::int64_t begin, std::int64_t end, std::uint32_t y, std::uint32_t h0,
                          std::uint32_t gates = ~0u) const {
    const std::int64_t units = layer_.units, width = layer_.directions * units;
    if (all_states() > 0) launch("factors").address(factors).in(call_, y).in(call_, h0).in(call_, gates).over(all_states());
    for (std::int64_t d = 0; d < layer_.directions; ++d) {
      const std::int64_t first = (d * layer_.gates + begin) * units;
      const sdk::MatrixView slopes{rows(), (end - begin) * units, layer_.gates * width, 1};
      multiply_matrices(slopes.transposed(), d_gates + first, {rows(), units, width, 1}, factors + d * units,
                        call_.output<T>(2) + first * units);
    }
  }

 private:
  std::int64_t rows() const { return layer_.steps * layer_.batch; }
  /// NULL for scratch memory of no elements.
  const T* filled(const T* scratch) const { return all_gates() == 0 ? nullptr : scratch; }
  static sdk::MatrixView view(std::int64_t rows, std::int64_t columns) { return {rows, columns, columns, 1}; }
  void multiply_matrices(const sdk::MatrixView& a_view, const T* a, const sdk::MatrixView& b_view, const T* b, const T* y) const {
    Product<T> product;
    product.a_view = a_view;
    product.b_view = b_view;
    product.a = a;
    product.b = b;
    product.y = const_cast<T*>(y);
    multiply(stream_of(call_), product);
  }

  const sdk::Call& call_;
  std::uint32_t first_;
  Layer layer_;
  std::int64_t features_;
};

}  // namespace tenon::opencl
