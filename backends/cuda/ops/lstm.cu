// SPDX-License-Identifier: Apache-2.0
// The long short-term memory and its gradient through all steps.
#include "kernel/operands.h"
#include "recurrent/recurrent.cuh"

namespace tenon::cuda {
namespace {

enum Gate : int { in_gate, out_gate, forget_gate, candidate };
constexpr int gate_count = 4;

/// The state carried between steps, unrounded, (D, B, H).
template <class T>
struct Carried {
  Wide<T>* value;
  const T* first;  ///< used instead of `value` at the first step
  bool starts;
  __device__ Wide<T> read(const Unit& at) const { return starts ? read_or_zero(first, at.state) : value[at.state]; }
  __device__ void write(const Unit& at, Wide<T> x) const { value[at.state] = x; }
};

/// The stored gates may alias the sums: a thread reads those of its unit before it writes.
template <class T>
struct LstmCell {
  Sums<T> sums;
  const T* products;
  Carried<T> cell;
  GateValues<T> gates;
  T *h, *y, *cells, *last_cell;

  __device__ void operator()(const Unit& at) const {
    Wide<T> gate[gate_count];
#pragma unroll
    for (int g = 0; g < gate_count; ++g) {
      const Wide<T> sum = sums.of_input(at, g) + sums.of_state(at, g, products, g, gate_count);
      gate[g] = g == candidate ? std::tanh(sum) : functions::Sigmoid{}(sum);
    }
    const Wide<T> c = gate[forget_gate] * cell.read(at) + gate[in_gate] * gate[candidate];
    const Wide<T> next = gate[out_gate] * std::tanh(c);
#pragma unroll
    for (int g = 0; g < gate_count; ++g) gates.write_if(at, g, gate[g]);
    cell.write(at, c);
    h[at.state] = narrow<T>(next);
    write_if(y, at.sequence, next);
    write_if(cells, at.sequence, c);
    write_if(last_cell, at.state, c);
  }
};

template <class T>
struct LstmGradCell {
  GateValues<const T> gates;
  const T* cells;
  StatesBefore<T> cells_before;
  const T *dy, *dh;
  Carried<T> dc;
  T* dc0;
  GateGradients<T> d_gates;

  __device__ void operator()(const Unit& at) const {
    const Wide<T> i = gates.read(at, in_gate), o = gates.read(at, out_gate), f = gates.read(at, forget_gate), g = gates.read(at, candidate);
    const Wide<T> squashed = std::tanh(widen(cells[at.sequence]));
    const Wide<T> own = read_or_zero(dh, at.state) + read_or_zero(dy, at.sequence);
    const Wide<T> of_cell = dc.read(at) + own * o * tanh_derivative(squashed);
    d_gates.write(at, in_gate, of_cell * g * sigmoid_derivative(i));
    d_gates.write(at, out_gate, own * squashed * sigmoid_derivative(o));
    d_gates.write(at, forget_gate, of_cell * cells_before(at) * sigmoid_derivative(f));
    d_gates.write(at, candidate, of_cell * i * tanh_derivative(g));
    dc.write(at, of_cell * f);
    write_if(dc0, at.state, of_cell * f);
  }
};

template <class T>
struct LstmCells : Forward<T> {
  T *gates, *sums, *products;
  Wide<T>* cell;

  LstmCells(const sdk::Call& call, ScratchArena& arena) : Forward<T>(call, gate_count, arena) {
    gates = output_or_null<T>(call, 3);
    sums = call.has_output(3) ? gates : arena.allocate<T>(this->layer.rows() * this->layer.all_columns());
    products = arena.allocate<T>(this->layer.state_elements() * gate_count);
    cell = arena.allocate<Wide<T>>(this->layer.state_elements());
  }
  void step(const Step& step) const {
    const sdk::Call& call = this->layer.call;
    const std::int64_t units = this->layer.units;
    LstmCell<T> cells{};
    cells.sums = {gate_count, units, sums, this->bias};
    cells.products = this->product(this->before(step), 0, gate_count, products);
    cells.cell = {cell, input_or_null<T>(call, 5), step.index == 0};
    cells.gates = {gate_count, units, gates};
    cells.h = this->h;
    cells.y = output_or_null<T>(call, 0);
    cells.cells = output_or_null<T>(call, 4);
    cells.last_cell = step.index == this->layer.steps - 1 ? output_or_null<T>(call, 2) : nullptr;
    this->each(step, cells);
  }
};

template <class T>
struct LstmGradCells : Backward<T> {
  Wide<T>* dc;

  LstmGradCells(const sdk::Call& call, ScratchArena& arena) : Backward<T>(call, 3, 9, gate_count, arena) {
    dc = arena.allocate<Wide<T>>(this->layer.state_elements());
  }
  void step(const Step& step) const {
    const sdk::Call& call = this->layer.call;
    const std::int64_t units = this->layer.units;
    LstmGradCell<T> cells{};
    cells.gates = {gate_count, units, input_or_null<T>(call, 10)};
    cells.cells = input_or_null<T>(call, 11);
    cells.cells_before = {input_or_null<T>(call, 11), input_or_null<T>(call, 8)};
    cells.dy = this->dy;
    cells.dh = this->after(step);
    cells.dc = {dc, input_or_null<T>(call, 2), step.index == this->layer.steps - 1};
    cells.dc0 = step.index == 0 ? output_or_null<T>(call, 5) : nullptr;
    cells.d_gates = {gate_count, units, this->d_gates, this->of_step};
    this->each(step, cells);
    if (!this->needs_previous(step)) return;
    this->layer.state_gradient(this->side_by_side(step, this->d_gates, this->of_step), 0, gate_count, false, this->dh, this->workspace);
  }
  void finish() const {
    this->bias_gradient(this->d_gates, this->d_gates);
    this->recurrent_gradient(this->d_gates, 0, gate_count);
  }
};

/// i, o, f = s(x w' + h r' + b), g = tanh(x w' + h r' + b), c_t = f c_(t-1) + i g, h_t = o tanh(c_t)
///
/// Shapes      x (T, B, I), w (D, 4 H, I), r (D, 4 H, H), b (D, 8 H), h0 and c0 (D, B, H) or absent; y and cells (T, D, B, H), y_h and y_c
///             (D, B, H), gates (T, B, D, 4 H) = (i, o, f, g), each may be absent.
/// Dtypes      f16 and bf16: products are rounded to the dtype, states as y is; cells are carried in f32.
/// Attributes  direction.
template <class T>
void lstm(const sdk::Call& call) {
  run_layer<LstmCells<T>>(call);
}

/// From the last step to the first: dc += dh o (1 - tanh(c)^2), do = dh tanh(c) o (1 - o), di = dc g i (1 - i), df = dc c_(t-1) f (1 - f),
/// dg = dc i (1 - g^2); the previous step gets dc f and, with dG = (di, do, df, dg), dh = dG r. dx = dG w, dw = dG' x, dr = dG' h, db = sum
/// dG.
///
/// Shapes  as lstm; dy, dy_h, dy_c may be absent (0), db, dh0 and dc0 too.
template <class T>
void lstm_grad(const sdk::Call& call) {
  run_gradient<LstmGradCells, T>(call);
}

}  // namespace
TENON_KERNEL_WITH(lstm, (sdk::Traits{.scratch = scratch_of_layer<LstmCells>}), sdk::Half, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(lstm_grad, (sdk::Traits{.scratch = scratch_of_gradient<LstmGradCells, 3>}), sdk::Half, sdk::BFloat16, float, double)
}  // namespace tenon::cuda
