// SPDX-License-Identifier: Apache-2.0
// The long short-term memory and its gradient through all steps.
#include "recurrent/recurrent.h"

namespace tenon::opencl {
namespace {

/// Scratch memory: the products of the inputs or the gradients of the gates, states and cells, and for the gradient the states of all
/// steps.
template <class T>
struct Memory {
  sdk::ScratchArena arena;
  T *inputs, *h, *c, *products, *factors;
  Memory(void* scratch, const Recurrent<T>& layer, bool gradient)
      : arena(scratch),
        inputs(arena.allocate<T>(layer.all_gates())),
        h(arena.allocate<T>(layer.states())),
        c(arena.allocate<T>(layer.states())),
        products(arena.allocate<T>(gradient ? 0 : 4 * layer.states())),
        factors(arena.allocate<T>(gradient ? layer.all_states() : 0)) {}
};

/// i, o, f = s(x w' + h r' + b), g = tanh(x w' + h r' + b), c_t = f c_(t-1) + i g, h_t = o tanh(c_t)
template <class T>
void lstm(const sdk::Call& call) {
  const Recurrent<T> layer(call, 0, 4, false);
  const Memory<T> memory(call.scratch, layer, false);
  layer.begin(memory.h, 4, 1);
  layer.begin(memory.c, 5, 2);
  if (layer.states() == 0) return;
  layer.multiply_inputs(memory.inputs);
  for (std::int64_t step = 0; step < layer.steps(); ++step) {
    layer.multiply_state(memory.h, 0, 4, memory.products);
    Launch launch = layer.launch("lstm_step");
    launch.value(step).address(memory.h).address(memory.inputs).address(memory.products).in(call, 3).out(call, 0).out(call, 1);
    launch.address(memory.c).out(call, 2).out(call, 3).out(call, 4).over(layer.states());
  }
}

/// From the last step to the first: the gradients of the gates and of the cells, then those of the state before.
template <class T>
void lstm_grad(const sdk::Call& call) {
  const Recurrent<T> layer(call, 3, 4, false);
  const Memory<T> memory(call.scratch, layer, true);
  layer.begin(memory.h, 1, 4);
  layer.begin(memory.c, 2, 5);
  for (std::int64_t step = layer.steps(); step-- > 0 && layer.states() > 0;) {
    {
      Launch launch = layer.launch("lstm_slopes");
      launch.value(step).address(memory.inputs).address(memory.h).in(call, 0).in(call, 9).in(call, 7);
      launch.address(memory.c).in(call, 10).in(call, 11).in(call, 8).over(layer.states());
    }
    layer.multiply_slopes(memory.inputs, step, 0, 4, false, memory.h);
  }
  layer.end(memory.h, 4);
  layer.end(memory.c, 5);
  layer.input_gradients(memory.inputs);
  layer.bias_gradient(memory.inputs, 1);
  layer.recurrent_gradient(memory.inputs, memory.factors, 0, 4, 9, 7);
}

template <std::uint32_t first>
std::size_t scratch(const sdk::Call& call) {
  if (call.inputs[first].dtype == TENON_DTYPE_F64) {
    return Memory<double>(nullptr, Recurrent<double>(call, first, 4, false), first != 0).arena.required_bytes();
  }
  return Memory<float>(nullptr, Recurrent<float>(call, first, 4, false), first != 0).arena.required_bytes();
}

}  // namespace
TENON_KERNEL_WITH(lstm, (sdk::Traits{.scratch = scratch<0>}), float, double)
TENON_KERNEL_WITH(lstm_grad, (sdk::Traits{.scratch = scratch<3>}), float, double)
}  // namespace tenon::opencl
