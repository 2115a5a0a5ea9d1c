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
struct CarriedCell {
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
  CarriedCell<T> cell;
  GateValues<T> gates;
  T *h, *y, *cells, *last_cell;

  /// The state after a step, from the sums of its gates; c becomes the cell after it.
  __device__ Wide<T> next(const Unit& at, const Wide<T> (&sum)[gate_count], Wide<T>& c) const {
    Wide<T> gate[gate_count];
#pragma unroll
    for (int g = 0; g < gate_count; ++g) gate[g] = g == candidate ? std::tanh(sum[g]) : functions::Sigmoid{}(sum[g]);
    c = gate[forget_gate] * c + gate[in_gate] * gate[candidate];
    const Wide<T> h_next = gate[out_gate] * std::tanh(c);
#pragma unroll
    for (int g = 0; g < gate_count; ++g) gates.write_if(at, g, gate[g]);
    write_if(y, at.sequence, h_next);
    write_if(cells, at.sequence, c);
    return h_next;
  }
  __device__ void operator()(const Unit& at) const {
    Wide<T> sum[gate_count], c = cell.read(at);
#pragma unroll
    for (int g = 0; g < gate_count; ++g) sum[g] = sums.of_input(at, g) + sums.of_state(at, g, products, g, gate_count);
    h[at.state] = narrow<T>(next(at, sum, c));
    cell.write(at, c);
    write_if(last_cell, at.state, c);
  }

  // For all_steps.
  static constexpr int count = gate_count, extra_vectors = 0;
  using Carried = Wide<T>;  ///< the cell, unrounded
  __device__ Carried start(const Unit& at) const {
    return read_or_zero(cell.first, at.state);
  }
  template <class Block>
  __device__ Wide<T> all_steps(Block& block, const Unit& at, const Wide<T>* state, Wide<T>, Carried& c) const {
    Wide<T> of_input[gate_count] = {}, sum[gate_count];
    if (block.works()) {  // read before the products, during which they arrive
#pragma unroll
      for (int g = 0; g < gate_count; ++g) of_input[g] = sums.of_input(at, g) + sums.state_bias(at, g);
    }
    block.template multiply<0>(state, sum);
    if (!block.works()) return 0;
#pragma unroll
    for (int g = 0; g < gate_count; ++g) sum[g] += of_input[g];
    return widen(narrow<T>(next(at, sum, c)));
  }
  __device__ void finish(const Unit& at, Carried c) const {
    write_if(last_cell, at.state, c);
  }
};

template <class T>
struct LstmGradCell {
  GateValues<const T> gates;
  const T* cells;
  StatesBefore<T> cells_before;
  const T *dy, *dh;
  CarriedCell<T> dc;
  T* dc0;
  GateGradients<T> d_gates;

  /// What a unit reads at a step.
  struct Values {
    Wide<T> gate[gate_count], cell, cell_before, dy;
  };
  __device__ Values read(const Unit& at) const {
    Values values;
#pragma unroll
    for (int g = 0; g < gate_count; ++g) values.gate[g] = gates.read(at, g);
    values.cell = widen(cells[at.sequence]);
    values.cell_before = cells_before(at);
    values.dy = read_or_zero(dy, at.sequence);
    return values;
  }
  /// The gradients of the gates from that of the state, and of the cell in c, which becomes that of the cell before.
  __device__ void slopes(const Values& values, Wide<T> dh_after, Wide<T>& c, Wide<T> (&out)[gate_count]) const {
    const Wide<T> i = values.gate[in_gate], o = values.gate[out_gate], f = values.gate[forget_gate], g = values.gate[candidate];
    const Wide<T> squashed = std::tanh(values.cell);
    const Wide<T> own = dh_after + values.dy;
    const Wide<T> of_cell = c + own * o * tanh_derivative(squashed);
    out[in_gate] = of_cell * g * sigmoid_derivative(i);
    out[out_gate] = own * squashed * sigmoid_derivative(o);
    out[forget_gate] = of_cell * values.cell_before * sigmoid_derivative(f);
    out[candidate] = of_cell * i * tanh_derivative(g);
    c = of_cell * f;
  }
  __device__ void operator()(const Unit& at) const {
    Wide<T> c = dc.read(at), d[gate_count];
    slopes(read(at), read_or_zero(dh, at.state), c, d);
#pragma unroll
    for (int g = 0; g < gate_count; ++g) d_gates.write(at, g, d[g]);
    dc.write(at, c);
    write_if(dc0, at.state, c);
  }

  // For all_steps_back.
  static constexpr int count = gate_count;
  using Carried = Wide<T>;  ///< the gradient of the cell
  __device__ Carried start(const Unit& at) const {
    return read_or_zero(dc.first, at.state);
  }
  template <class Block>
  __device__ void gates_of(const Block& block, const Unit& at, Wide<T>* vectors, const Values& values, Wide<T> dh_after, Carried& c) const {
    Wide<T> d[gate_count];
    slopes(values, dh_after, c, d);
#pragma unroll
    for (int g = 0; g < gate_count; ++g) {
      d_gates.write(at, g, d[g]);
      block.write(block.vector_after(vectors, g), d[g]);
    }
  }
  template <class Block>
  __device__ Wide<T> before(Block& block, const Unit&, Wide<T>* vectors, const Values&) const {
    block.exchange(vectors, gate_count);
    return block.template sum<0, gate_count>(vectors);
  }
  __device__ void finish(const Unit& at, Carried c) const {
    write_if(dc0, at.state, c);
  }
};

template <class T>
struct LstmCells : Forward<T> {
  T *gates, *sums, *products;
  Wide<T>* cell;

  LstmCells(const sdk::Call& call, ScratchArena& arena) : Forward<T>(call, gate_count, LstmCell<T>::extra_vectors, 1, arena) {
    gates = output_or_null<T>(call, 3);
    sums = call.has_output(3) ? gates : arena.allocate<T>(this->layer.rows() * this->layer.all_columns());
    products = arena.allocate<T>(this->layer.state_elements() * gate_count);
    cell = arena.allocate<Wide<T>>(this->layer.state_elements());
  }
  /// What the cells of all steps have in common.
  LstmCell<T> cells() const {
    const sdk::Call& call = this->layer.call;
    const std::int64_t units = this->layer.units;
    LstmCell<T> cells{};
    cells.sums = {gate_count, units, sums, this->bias};
    cells.cell = {cell, input_or_null<T>(call, 5), true};
    cells.gates = {gate_count, units, gates};
    cells.h = this->h;
    cells.y = output_or_null<T>(call, 0);
    cells.cells = output_or_null<T>(call, 4);
    cells.last_cell = output_or_null<T>(call, 2);
    return cells;
  }
  void step(const Step& step) const {
    LstmCell<T> cells = this->cells();
    cells.products = this->product(this->before(step), 0, gate_count, products);
    cells.cell.starts = step.index == 0;
    if (step.index != this->layer.steps - 1) cells.last_cell = nullptr;
    this->each(step, cells);
  }
  void all_steps() const { this->all(cells()); }
};

template <class T>
struct LstmGradCells : Backward<T> {
  Wide<T>* dc;

  LstmGradCells(const sdk::Call& call, ScratchArena& arena) : Backward<T>(call, 3, 9, gate_count, 1, arena) {
    dc = arena.allocate<Wide<T>>(this->layer.state_elements());
  }
  /// What the cells of all steps have in common.
  LstmGradCell<T> cells() const {
    const sdk::Call& call = this->layer.call;
    const std::int64_t units = this->layer.units;
    LstmGradCell<T> cells{};
    cells.gates = {gate_count, units, input_or_null<T>(call, 10)};
    cells.cells = input_or_null<T>(call, 11);
    cells.cells_before = {input_or_null<T>(call, 11), input_or_null<T>(call, 8)};
    cells.dy = this->dy;
    cells.dc = {dc, input_or_null<T>(call, 2), true};
    cells.dc0 = output_or_null<T>(call, 5);
    cells.d_gates = {gate_count, units, this->d_gates, nullptr};
    return cells;
  }
  void all_steps() const { this->all(cells()); }
  void step(const Step& step) const {
    LstmGradCell<T> cells = this->cells();
    cells.dh = this->after(step);
    cells.dc.starts = step.index == this->layer.steps - 1;
    if (step.index != 0) cells.dc0 = nullptr;
    cells.d_gates.step = this->of_step;
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
/// Dtypes      f16 and bf16: products of x are rounded to the dtype, those of states where steps are launched, states as y is; cells are
///             carried in f32.
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
