// SPDX-License-Identifier: Apache-2.0
// recurrent.cuh - kernels shared by rnn, gru and lstm, and the loop over the steps of a layer. Absent operands are NULL and read as 0.
//
// All steps are one kernel where plan_persistent says so (persistent.cuh). Otherwise a step is one product with the state and one kernel
// with a thread per unit: the operands of a step are small and in the L2 cache, so many threads are worth more than wide reads.
#pragma once

#include <array>

#include "elementwise/wide_call.cuh"
#include "kernel/dispatch.h"
#include "kernel/launch.h"
#include "kernel/operands.h"
#include "kernel/wide.cuh"
#include "recurrent/persistent.cuh"
#include "recurrent/recurrent.h"
#include "recurrent/unit.cuh"
#include "reduce/reduction.cuh"

namespace tenon::cuda {

/// cell(unit) for every unit of a step.
template <class Cell>
__global__ void each_unit(Cell cell, Step step) {
  for (std::int64_t i = thread_index(); i < step.elements; i += thread_count()) cell(unit_at(step, i));
}

/// The state of a sequence (T, D, B, H) at the previous step, or the initial state (D, B, H).
template <class T>
struct StatesBefore {
  const T *sequence, *first;
  __device__ Wide<T> operator()(const Unit& at) const {
    return at.before >= 0 ? widen(sequence[at.before]) : read_or_zero(first, at.state);
  }
};

/// y (1 - y) and 1 - y^2, the latter factored because it cancels near 1.
template <class W>
__device__ W sigmoid_derivative(W y) {
  return y * (1 - y);
}
template <class W>
__device__ W tanh_derivative(W y) {
  return (1 - y) * (1 + y);
}

/// The pre-activations of the gates.
template <class T>
struct Sums {
  std::int64_t gates, units;
  const T* from_input;  ///< x w', (T, B, D, G H)
  const T* bias;        ///< (D, 2 G H)

  /// x w' + bw
  __device__ Wide<T> of_input(const Unit& at, int gate) const {
    return widen(from_input[(at.line * gates + gate) * units + at.unit]) +
           read_or_zero(bias, (at.direction * 2 * gates + gate) * units + at.unit);
  }
  __device__ Wide<T> state_bias(const Unit& at, int gate) const {
    return read_or_zero(bias, ((at.direction * 2 + 1) * gates + gate) * units + at.unit);
  }
  /// h r' + br of `gate`, which has index `index` among the `n` gates whose products (D, B, n H) are given
  __device__ Wide<T> of_state(const Unit& at, int gate, const T* products, int index, int n) const {
    return read_or_zero(products, (at.row * n + index) * units + at.unit) + state_bias(at, gate);
  }
};

/// Unit u of the gates of each line, (T, B, D, count H).
template <class T>
struct GateValues {
  using W = Wide<std::remove_const_t<T>>;
  std::int64_t count, units;
  T* data;
  __device__ std::int64_t place(const Unit& at, int gate) const { return (at.line * count + gate) * units + at.unit; }
  __device__ W read(const Unit& at, int gate) const { return widen(data[place(at, gate)]); }
  __device__ void write_if(const Unit& at, int gate, W value) const { cuda::write_if(data, place(at, gate), value); }
};

/// Gradients of a step's gates: for the products of all steps and, with two directions, also densely for the product of the step.
template <class T>
struct GateGradients {
  std::int64_t count, units;
  T* all;   ///< (T, B, D, G H)
  T* step;  ///< (D, B, G H); NULL: the step's part of `all` already has this layout
  __device__ void write(const Unit& at, int gate, Wide<T> value) const {
    all[(at.line * count + gate) * units + at.unit] = narrow<T>(value);
    cuda::write_if(step, (at.row * count + gate) * units + at.unit, value);
  }
};

/// The state before each step, (T, B, H) in the order of x, for the direction whose `line` elements of a step start at `from`.
template <class T>
__global__ void gather_states(std::int64_t steps, std::int64_t line, std::int64_t from, std::int64_t elements, bool reverse,
                              StatesBefore<T> states, T* out) {
  for (std::int64_t i = thread_index(); i < steps * line; i += thread_count()) {
    const std::int64_t time = quotient(i, line), before = reverse ? time + 1 : time - 1;
    Unit at{};
    at.state = from + (i - time * line);
    at.before = before >= 0 && before < steps ? before * elements + at.state : -1;
    out[i] = narrow<T>(states(at));
  }
}

/// db (D, 2, G H) from the sums (D, G H) of the gradients of x's and of h's contributions to the gates.
template <class T>
__global__ void write_bias_gradient(std::int64_t columns, std::int64_t count, const T* of_input, const T* of_state, T* db) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t half = quotient(i, columns), k = i - half * columns, d = half / 2;
    db[i] = (half % 2 == 0 ? of_input : of_state)[d * columns + k];
  }
}

/// The state of a forward call, for any cell type.
template <class T>
struct Forward {
  Recurrent layer;
  Stream* stream;  ///< NULL while only memory is counted
  void* workspace;
  T* h;  ///< (D, B, H), of the latest step
  const T *h0, *bias;
  PersistentPlan plan;
  Wide<T>* exchanged;  ///< of the plan

  /// With `extra_vectors` of all_steps; a step exchanges vectors `exchanges` times.
  Forward(const sdk::Call& call, std::int64_t gates, int extra_vectors, int exchanges, ScratchArena& arena) : layer(call, 0, gates) {
    stream = call.stream == nullptr ? nullptr : &stream_of(call);
    workspace = arena.allocate_bytes(layer.forward_workspace());
    h = call.has_output(1) ? call.output<T>(1) : arena.allocate<T>(layer.state_elements());
    bias = input_or_null<T>(call, 3);
    h0 = input_or_null<T>(call, 4);
    plan = layer.persistent_plan(2 + extra_vectors, exchanges, false);
    exchanged = arena.allocate<Wide<T>>(plan.exchanged);
  }
  /// The state before a step; NULL: 0.
  const T* before(const Step& step) const { return step.index > 0 ? h : h0; }
  /// h r' of the gates, in `out`; NULL if h is NULL.
  const T* product(const T* state, std::int64_t begin, std::int64_t n, T* out) const {
    if (state == nullptr) return nullptr;
    layer.state_product(state, begin, n, out, workspace);
    return out;
  }
  template <class Cell>
  void each(const Step& step, const Cell& cell) const {
    launch_over(*stream, step.elements, each_unit<Cell>, cell, step);
  }
  /// All steps by one kernel.
  template <class Cell>
  void all(const Cell& cell) const {
    launch_persistent<T, Cell, false>(*stream, layer, plan, exchanged, cell, h0, output_or_null<T>(layer.call, 1));
  }
};

/// The state of a gradient call, whose operand x has index `first`. T is f32 or f64.
template <class T>
struct Backward {
  Recurrent layer;
  Stream* stream;
  void* workspace;
  T* d_gates;  ///< (T, B, D, G H)
  T* of_step;  ///< (D, B, G H) or NULL
  T* dh;       ///< (D, B, H), for the step before the latest one
  T* states;   ///< (T, B, H)
  T* sums[2];
  void* partials;
  const T *dy, *dy_h, *h0, *y;
  PersistentPlan plan;
  Wide<T>* exchanged;  ///< of the plan

  /// A step exchanges vectors `exchanges` times.
  Backward(const sdk::Call& call, std::uint32_t first, std::uint32_t y_operand, std::int64_t gates, int exchanges, ScratchArena& arena)
      : layer(call, first, gates) {
    stream = call.stream == nullptr ? nullptr : &stream_of(call);
    workspace = arena.allocate_bytes(layer.backward_workspace());
    d_gates = allocate_gates(arena);
    of_step = allocate_gates_of_step(arena);
    dh = call.has_output(4) ? call.output<T>(4) : arena.allocate<T>(layer.state_elements());
    states = arena.allocate<T>(layer.rows() * layer.units);
    for (auto& sum : sums) sum = arena.allocate<T>(layer.all_columns());
    partials = arena.allocate_bytes(scratch_of(shape().data(), strides().data(), 2, summed, sdk::dtype_of<T>));
    dy = input_or_null<T>(call, 0);
    dy_h = input_or_null<T>(call, 1);
    h0 = input_or_null<T>(call, first + 4);
    y = call.input<T>(y_operand);
    plan = layer.persistent_plan(static_cast<int>(2 * gates), exchanges, true);  // vectors of gates, for two steps
    exchanged = arena.allocate<Wide<T>>(plan.exchanged);
  }
  T* allocate_gates(ScratchArena& arena) const { return arena.allocate<T>(layer.rows() * layer.all_columns()); }
  T* allocate_gates_of_step(ScratchArena& arena) const {
    return layer.directions > 1 ? arena.allocate<T>(layer.batch * layer.all_columns()) : nullptr;
  }
  /// The gradients of a step's gates, densely as its product reads them.
  const T* side_by_side(const Step& step, const T* all, const T* of_this_step) const {
    return of_this_step != nullptr ? of_this_step : all + step.time[0] * layer.batch * layer.columns();
  }
  /// The gradient of the state after a step; NULL: 0.
  const T* after(const Step& step) const { return step.index == layer.steps - 1 ? dy_h : dh; }
  /// True if the gradient of the state before this step is needed.
  bool needs_previous(const Step& step) const { return step.index > 0 || layer.call.has_output(4); }
  template <class Cell>
  void each(const Step& step, const Cell& cell) const {
    launch_over(*stream, step.elements, each_unit<Cell>, cell, step);
  }
  /// All steps by one kernel.
  template <class Cell>
  void all(const Cell& cell) const {
    launch_persistent<T, Cell, true>(*stream, layer, plan, exchanged, cell, dy_h, output_or_null<T>(layer.call, 4));
  }

  /// db (result 3), if requested, from the gradients of x's and of h's contributions to the gates, summed over all rows.
  void bias_gradient(const T* of_input, const T* of_state) const {
    if (!layer.call.has_output(3)) return;
    add_up(of_input, sums[0]);
    if (of_state != of_input) add_up(of_state, sums[1]);
    const std::int64_t count = 2 * layer.all_columns();
    launch_over(*stream, count, write_bias_gradient<T>, layer.columns(), count, sums[0], of_state != of_input ? sums[1] : sums[0],
                layer.call.template output<T>(3));
  }
  /// dr (result 2) of the n gates from `begin` on that depend on the state itself.
  void recurrent_gradient(const T* of_state, std::int64_t begin, std::int64_t n) const {
    for (std::int64_t d = 0; d < layer.directions; ++d) {
      const std::int64_t line = layer.batch * layer.units;
      launch_over(*stream, layer.steps * line, gather_states<T>, layer.steps, line, d * line, layer.state_elements(), layer.reverse(d),
                  StatesBefore<T>{y, h0}, states);
      layer.recurrent_gradient(of_state, d, begin, n, states, layer.units, workspace);
    }
  }

 private:
  static constexpr std::uint32_t summed = 0b01;
  std::array<std::int64_t, 2> shape() const { return {layer.rows(), layer.all_columns()}; }
  std::array<std::int64_t, 2> strides() const { return {layer.all_columns(), 1}; }
  void add_up(const T* gates, T* out) const {
    const ReductionPlan reduction = plan_reduction(shape().data(), strides().data(), 2, summed, aligned_width<T>(gates));
    reduce(*stream, Sum<T>{}, Values<T>{gates}, reduction, out, partials);
  }
};

/// Runs a layer. Cells derives from Forward, with `sums` for x w', step(Step) and all_steps(), whose kernel has `extra_vectors` vectors of
/// each row in shared memory besides the states before and after a step.
template <class Cells>
void run_layer(const sdk::Call& call) {
  ScratchArena arena(call.scratch);
  const Cells cells(call, arena);
  cells.layer.input_product(cells.sums, cells.workspace);
  if (cells.plan) return cells.all_steps();
  for (std::int64_t s = 0; s < cells.layer.steps; ++s) cells.step(cells.layer.step(s));
}

/// Runs its gradient, from the last step to the first. Cells derives from Backward, with step(Step), all_steps() and
/// finish(), which computes the results over all steps. f16 and bf16 are computed in f32, so that small gradients do not underflow.
template <template <class> class Cells, class T>
void run_gradient(const sdk::Call& call) {
  ScratchArena arena(call.scratch);
  if constexpr (is_narrow<T>) {
    WideCall wide(call, arena);
    wide.read_inputs<T>();
    wide.call.scratch = arena.rest();
    run_gradient<Cells, float>(wide.call);
    wide.write_outputs<T>();
  } else {
    const Cells<T> cells(call, arena);
    if (cells.plan) {
      cells.all_steps();
    } else {
      for (std::int64_t s = cells.layer.steps; s-- > 0;) cells.step(cells.layer.step(s));
    }
    cells.layer.input_gradients(cells.d_gates, cells.workspace);
    cells.finish();
  }
}

template <class Cells>
std::size_t bytes_of(const sdk::Call& call) {
  ScratchArena arena(nullptr);
  Cells(call, arena);
  return arena.required_bytes();
}

/// Traits::scratch of a layer.
template <template <class> class Cells>
std::size_t scratch_of_layer(const sdk::Call& call) {
  return dispatch_floating(call.inputs[0].dtype, [&]<class T>() { return bytes_of<Cells<T>>(call); });
}
/// Traits::scratch of a gradient whose operand x has index `x`.
template <template <class> class Cells, std::uint32_t x>
std::size_t scratch_of_gradient(const sdk::Call& call) {
  return dispatch_floating(call.inputs[x].dtype, [&]<class T>() {
    if constexpr (is_narrow<T>) {
      ScratchArena arena(nullptr);
      const WideCall wide(call, arena);
      return arena.required_bytes() + bytes_of<Cells<float>>(wide.call);
    } else {
      return bytes_of<Cells<T>>(call);
    }
  });
}

}  // namespace tenon::cuda
