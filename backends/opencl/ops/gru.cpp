// SPDX-License-Identifier: Apache-2.0
// The gated recurrent unit and its gradient through all steps.
#include "recurrent/recurrent.h"

namespace tenon::opencl {
namespace {

bool resets_last(const sdk::Call& call) {
  return call.attr<tenon_attributes_recurrent>().linear_before_reset != 0;
}

/// Scratch memory: the products of the inputs or the gradients of the gates, those of the states' contributions, and
/// states, for the gradient those of all steps.
template <class T>
struct Memory {
  sdk::ScratchArena arena;
  T *inputs, *of_state, *h, *next, *z, *reset, *reset_state, *products, *factors;
  Memory(void* scratch, const Recurrent<T>& layer, bool gradient)
      : arena(scratch),
        inputs(arena.allocate<T>(layer.all_gates())),
        of_state(arena.allocate<T>(gradient ? layer.all_gates() : 0)),
        h(arena.allocate<T>(layer.states())),
        next(arena.allocate<T>(gradient ? layer.states() : 0)),
        z(arena.allocate<T>(gradient ? 0 : layer.states())),
        reset(arena.allocate<T>(layer.states())),
        reset_state(arena.allocate<T>(gradient ? 0 : layer.states())),
        products(arena.allocate<T>(gradient ? 0 : 3 * layer.states())),
        factors(arena.allocate<T>(gradient ? layer.all_states() : 0)) {}
};

/// z, r = s(x w' + h r' + b), h~ = tanh(x wh' + bwh + q), h_t = (1 - z) h~ + z h_(t-1); q = (r h) rh' + brh, or r (h rh' + brh) with
/// linear_before_reset
template <class T>
void gru(const sdk::Call& call) {
  const Recurrent<T> layer(call, 0, 3, resets_last(call));
  const Memory<T> memory(call.scratch, layer, false);
  layer.begin(memory.h, 4, 1);
  if (layer.states() == 0) return;
  layer.multiply_inputs(memory.inputs);
  const bool last = resets_last(call);
  for (std::int64_t step = 0; step < layer.steps(); ++step) {
    layer.multiply_state(memory.h, 0, last ? 3 : 2, memory.products);
    {
      Launch launch = layer.launch("gru_gates");
      launch.value(step).address(memory.z).address(memory.reset).address(memory.reset_state).address(memory.h).address(memory.inputs);
      launch.address(memory.products).in(call, 3).over(layer.states());
    }
    if (!last) layer.multiply_state(memory.reset_state, 2, 3, memory.products);
    Launch launch = layer.launch("gru_step");
    launch.value(step).address(memory.h).address(memory.inputs).address(memory.products).in(call, 3).out(call, 0).out(call, 1);
    launch.address(memory.z).address(memory.reset).address(memory.reset_state).out(call, 2).over(layer.states());
  }
}

template <class T>
void gru_grad(const sdk::Call& call) {
  const Recurrent<T> layer(call, 2, 3, resets_last(call));
  Memory<T> memory(call.scratch, layer, true);
  const bool last = resets_last(call);
  layer.begin(memory.h, 1, 4);
  for (std::int64_t step = layer.steps(); step-- > 0 && layer.states() > 0;) {
    {
      Launch launch = layer.launch("gru_slopes");
      launch.value(step).address(memory.inputs).address(memory.h).in(call, 0).in(call, 7).in(call, 6);
      launch.address(memory.of_state).address(memory.next).in(call, 8).over(layer.states());
    }
    if (!last) layer.multiply_slopes(memory.of_state, step, 2, 3, false, memory.reset);
    {
      Launch launch = layer.launch("gru_reset_slopes");
      launch.value(step)
          .address(memory.inputs)
          .address(memory.of_state)
          .address(memory.next)
          .in(call, 8)
          .address(memory.reset)
          .in(call, 7)
          .in(call, 6);
      launch.over(layer.states());
    }
    layer.multiply_slopes(memory.of_state, step, 0, last ? 3 : 2, true, memory.next);
    std::swap(memory.h, memory.next);
  }
  layer.end(memory.h, 4);
  layer.input_gradients(memory.inputs);
  layer.bias_gradient(memory.of_state, 1);
  layer.recurrent_gradient(memory.of_state, memory.factors, 0, 2, 7, 6);
  if (last) {
    layer.recurrent_gradient(memory.of_state, memory.factors, 2, 3, 7, 6);
  } else {
    layer.recurrent_gradient(memory.of_state, memory.factors, 2, 3, 7, 6, 8);
  }
}

template <std::uint32_t first>
std::size_t scratch(const sdk::Call& call) {
  if (call.inputs[first].dtype == TENON_DTYPE_F64) {
    return Memory<double>(nullptr, Recurrent<double>(call, first, 3, false), first != 0).arena.required_bytes();
  }
  return Memory<float>(nullptr, Recurrent<float>(call, first, 3, false), first != 0).arena.required_bytes();
}

}  // namespace
TENON_KERNEL_WITH(gru, (sdk::Traits{.scratch = scratch<0>}), float, double)
TENON_KERNEL_WITH(gru_grad, (sdk::Traits{.scratch = scratch<2>}), float, double)
}  // namespace tenon::opencl
