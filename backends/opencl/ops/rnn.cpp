// SPDX-License-Identifier: Apache-2.0
// The plain recurrent layer and its gradient through all steps.
#include "recurrent/recurrent.h"

namespace tenon::opencl {
namespace {

bool rectifies(const sdk::Call& call) {
  return call.attr<tenon_attributes_recurrent>().activation == TENON_RNN_RELU;
}

/// Scratch memory: the products of the inputs or the gradients of the gates, the state and its products, for the gradient the states of all
/// steps.
template <class T>
struct Memory {
  sdk::ScratchArena arena;
  T *inputs, *h, *products, *factors;
  Memory(void* scratch, const Recurrent<T>& layer, bool gradient)
      : arena(scratch),
        inputs(arena.allocate<T>(layer.all_gates())),
        h(arena.allocate<T>(layer.states())),
        products(arena.allocate<T>(gradient ? 0 : layer.states())),
        factors(arena.allocate<T>(gradient ? layer.all_states() : 0)) {}
};

/// h_t = f(x_t w' + h_(t-1) r' + bw + br), f tanh or max(0, .)
template <class T>
void rnn(const sdk::Call& call) {
  const Recurrent<T> layer(call, 0, 1, rectifies(call));
  const Memory<T> memory(call.scratch, layer, false);
  layer.begin(memory.h, 4, 1);
  if (layer.states() == 0) return;
  layer.multiply_inputs(memory.inputs);
  for (std::int64_t step = 0; step < layer.steps(); ++step) {
    layer.multiply_state(memory.h, 0, 1, memory.products);
    Launch launch = layer.launch("rnn_step");
    launch.value(step).address(memory.h).address(memory.inputs).address(memory.products).in(call, 3).out(call, 0).out(call, 1);
    launch.over(layer.states());
  }
}

/// From the last step to the first: da = f'(y_t) (dy_t + dh), dh = da r; then dx = da w, dw = da' x, dr = da' h, db = sum of da.
template <class T>
void rnn_grad(const sdk::Call& call) {
  const Recurrent<T> layer(call, 2, 1, rectifies(call));
  const Memory<T> memory(call.scratch, layer, true);
  layer.begin(memory.h, 1, 4);
  for (std::int64_t step = layer.steps(); step-- > 0 && layer.states() > 0;) {
    Launch launch = layer.launch("rnn_slopes");
    launch.value(step).address(memory.inputs).address(memory.h).in(call, 0).in(call, 7).in(call, 6).over(layer.states());
    layer.multiply_slopes(memory.inputs, step, 0, 1, false, memory.h);
  }
  layer.end(memory.h, 4);
  layer.input_gradients(memory.inputs);
  layer.bias_gradient(memory.inputs, 1);
  layer.recurrent_gradient(memory.inputs, memory.factors, 0, 1, 7, 6);
}

template <std::uint32_t first>
std::size_t scratch(const sdk::Call& call) {
  if (call.inputs[first].dtype == TENON_DTYPE_F64) {
    return Memory<double>(nullptr, Recurrent<double>(call, first, 1, false), first != 0).arena.required_bytes();
  }
  return Memory<float>(nullptr, Recurrent<float>(call, first, 1, false), first != 0).arena.required_bytes();
}

}  // namespace
TENON_KERNEL_WITH(rnn, (sdk::Traits{.scratch = scratch<0>}), float, double)
TENON_KERNEL_WITH(rnn_grad, (sdk::Traits{.scratch = scratch<2>}), float, double)
}  // namespace tenon::opencl
