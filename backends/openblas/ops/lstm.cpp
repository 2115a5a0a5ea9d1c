// SPDX-License-Identifier: Apache-2.0
// ops/lstm.cpp - long short-term memory: products with x for all steps at once, then for each step a product with packed weights and one
// pass over gates, cell and state. The gradient processes the steps in reverse.
#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/lstm.cpp"
#include <hwy/foreach_target.h>

#include "recurrent/recurrent_cells.h"

#ifndef TENON_OPENBLAS_LSTM_ROWS
#define TENON_OPENBLAS_LSTM_ROWS
namespace tenon::openblas {
namespace {

/// Units [begin, end) of some rows of a step. The row stride of gates is gates_step, that of states `units`; the gates of a row are `units`
/// apart.
template <class T>
struct LstmRows {
  std::int64_t rows, begin, end, units, gates_step;
  T* gates;  ///< in: sums; out, if `keep`: (i, o, f, g)
  bool keep;
  const T* c_before;  ///< NULL: 0
  T *c, *h;
};
template <class T>
struct LstmGradRows {
  std::int64_t rows, begin, end, units, gates_step;
  const T *gates, *c, *c_before;  ///< c_before NULL: 0
  const T *dy, *dh;               ///< NULL: 0
  T* dc;                          ///< in: the gradient of c, unless `first`; out: that of the previous step
  const T* first_dc;              ///< replaces dc at the last step; NULL: 0
  bool first;
  T* d_gates;  ///< has the layout of gates
};

}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

template <class T>
struct LstmCell {
  const LstmRows<T>& p;

  HWY_INLINE void operator()(std::int64_t row, const Units<T>& at) const {
    const Wide<T> d;
    T* const gates = p.gates + row * p.gates_step;
    const std::int64_t state = row * p.units;
    const auto i = Sigmoid{}(d, at.load(gates));
    const auto o = Sigmoid{}(d, at.load(gates + p.units));
    const auto f = Sigmoid{}(d, at.load(gates + 2 * p.units));
    const auto g = Tanh{}(d, at.load(gates + 3 * p.units));
    const auto c = hn::MulAdd(f, at.load_or_zero(row_of(p.c_before, row, p.units)), hn::Mul(i, g));
    if (p.keep) {
      at.store(i, gates);
      at.store(o, gates + p.units);
      at.store(f, gates + 2 * p.units);
      at.store(g, gates + 3 * p.units);
    }
    at.store(c, p.c + state);
    at.store(hn::Mul(o, Tanh{}(d, c)), p.h + state);
  }
};

template <class T>
struct LstmGradCell {
  const LstmGradRows<T>& p;

  HWY_INLINE void operator()(std::int64_t row, const Units<T>& at) const {
    const Wide<T> d;
    const auto one = hn::Set(d, 1);
    const T* const gates = p.gates + row * p.gates_step;
    T* const d_gates = p.d_gates + row * p.gates_step;
    const auto i = at.load(gates), o = at.load(gates + p.units), f = at.load(gates + 2 * p.units), g = at.load(gates + 3 * p.units);
    const auto squashed = Tanh{}(d, at.load(p.c + row * p.units));
    const auto dh = hn::Add(at.load_or_zero(row_of(p.dy, row, p.units)), at.load_or_zero(row_of(p.dh, row, p.units)));
    T* const carried = p.dc + row * p.units;
    const auto later = at.load_or_zero(p.first ? row_of(p.first_dc, row, p.units) : carried);
    const auto dc = hn::MulAdd(hn::Mul(dh, o), slope_of_tanh(one, squashed), later);
    at.store(hn::Mul(hn::Mul(dc, g), slope_of_sigmoid(one, i)), d_gates);
    at.store(hn::Mul(hn::Mul(dh, squashed), slope_of_sigmoid(one, o)), d_gates + p.units);
    const auto before = at.load_or_zero(row_of(p.c_before, row, p.units));
    at.store(hn::Mul(hn::Mul(dc, before), slope_of_sigmoid(one, f)), d_gates + 2 * p.units);
    at.store(hn::Mul(hn::Mul(dc, i), slope_of_tanh(one, g)), d_gates + 3 * p.units);
    at.store(hn::Mul(dc, f), carried);
  }
};

}  // namespace

void lstm_rows_f32(const LstmRows<float>& p) {
  for_each_unit<float>(p.rows, p.begin, p.end, LstmCell<float>{p});
}
void lstm_rows_f64(const LstmRows<double>& p) {
  for_each_unit<double>(p.rows, p.begin, p.end, LstmCell<double>{p});
}
void lstm_grad_rows_f32(const LstmGradRows<float>& p) {
  for_each_unit<float>(p.rows, p.begin, p.end, LstmGradCell<float>{p});
}
void lstm_grad_rows_f64(const LstmGradRows<double>& p) {
  for_each_unit<double>(p.rows, p.begin, p.end, LstmGradCell<double>{p});
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "recurrent/recurrent.h"

namespace tenon::openblas {
namespace {

void run_rows(const LstmRows<float>& p) {
  TENON_DISPATCH(lstm_rows_f32)(p);
}
void run_rows(const LstmRows<double>& p) {
  TENON_DISPATCH(lstm_rows_f64)(p);
}
void run_rows(const LstmGradRows<float>& p) {
  TENON_DISPATCH(lstm_grad_rows_f32)(p);
}
void run_rows(const LstmGradRows<double>& p) {
  TENON_DISPATCH(lstm_grad_rows_f64)(p);
}

constexpr std::int64_t gate_count = 4;

/// The working memory of a call of lstm.
template <class T>
struct LstmPlan {
  Recurrent<T> layer;
  ForwardPanels<T> panels;
  T *bias, *gates, *h, *c;
  bool keeps_gates, keeps_h, keeps_c;  ///< whether those of all steps are kept

  LstmPlan(const sdk::Call& call, sdk::ScratchArena& scratch) : layer(call, 0, gate_count), panels(layer, gate_count, scratch) {
    keeps_h = call.has_output(0);
    keeps_gates = call.has_output(3);
    keeps_c = call.has_output(4);
    bias = scratch.allocate<T>(layer.all_columns());
    gates = keeps_gates ? call.output<T>(3) : scratch.allocate<T>(layer.rows() * layer.all_columns());
    h = keeps_h ? call.output<T>(0) : scratch.allocate<T>(2 * layer.state_elements());
    c = keeps_c ? call.output<T>(4) : scratch.allocate<T>(layer.state_elements());
  }
  /// The states of a direction after step s; if not kept, two buffers alternate, because threads read the previous step.
  T* h_of(std::int64_t d, std::int64_t s) const {
    return keeps_h ? layer.states(h, d, s) : layer.state(h + s % 2 * layer.state_elements(), d);
  }
  T* c_of(std::int64_t d, std::int64_t s) const { return keeps_c ? layer.states(c, d, s) : layer.state(c, d); }
};

/// i, o, f = s(x w' + h r' + b), g = tanh(x w' + h r' + b), c_t = f c_(t-1) + i g, h_t = o tanh(c_t)
///
/// Shapes  x (T, B, I), w (D, 4 H, I), r (D, 4 H, H), b (D, 8 H), h0 and c0 (D, B, H) or absent; y and cells (T, D, B, H), y_h and y_c
///         (D, B, H), gates (T, B, D, 4 H) = (i, o, f, g), each may be absent.
template <class T>
void lstm(const sdk::Call& call) {
  sdk::ScratchArena scratch(call.scratch);
  const LstmPlan<T> plan(call, scratch);
  const Recurrent<T>& layer = plan.layer;
  const std::int64_t units = layer.units, step = layer.row_step(4);
  const T* const h0 = call.has_input(4) ? call.input<T>(4) : nullptr;
  const T* const c0 = call.has_input(5) ? call.input<T>(5) : nullptr;
  if (layer.b != nullptr) layer.add_biases(4, plan.bias);
  layer.input_product(layer.b == nullptr ? nullptr : plan.bias, plan.gates);
  plan.panels.prepare(layer);
  layer.run(false, {4 * units, units}, [&](std::size_t phase, const StepPart& part) {
    const std::int64_t d = part.direction, s = part.step;
    T* const gates = layer.lines(plan.gates, d, s, 4);
    if (phase == 0) {
      const T* const before = s > 0 ? plan.h_of(d, s - 1) : h0 == nullptr ? nullptr : layer.state(h0, d);
      if (before != nullptr) layer.multiply(part, before, units, plan.panels.first(), gates, step, gates);
      return;
    }
    const T* const c_before = s > 0 ? plan.c_of(d, s - 1) : c0 == nullptr ? nullptr : layer.state(c0, d);
    const std::int64_t first = part.row * units;
    run_rows(LstmRows<T>{part.rows, part.column, part.column + part.columns, units, step, gates + part.row * step, plan.keeps_gates,
                         c_before == nullptr ? nullptr : c_before + first, plan.c_of(d, s) + first, plan.h_of(d, s) + first});
  });
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    const std::int64_t count = layer.batch * units;
    if (call.has_output(1)) std::copy_n(plan.h_of(d, layer.steps - 1), count, layer.state(call.output<T>(1), d));
    if (call.has_output(2)) std::copy_n(plan.c_of(d, layer.steps - 1), count, layer.state(call.output<T>(2), d));
  }
}
std::size_t scratch(const sdk::Call& call) {
  return scratch_of_plan<LstmPlan>(call, 0);
}
std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
  return forward_pack_size(call, input, gate_count, gate_count);
}
void pack(const sdk::Call& call, std::uint32_t, void* out_packed) {
  forward_pack(call, gate_count, gate_count, out_packed);
}

/// The working memory of a call of lstm_grad.
template <class T>
struct LstmGradPlan {
  Recurrent<T> layer;
  RecurrentPanels<T> panels;
  T *d_gates, *dh, *dc, *states, *ones, *sums;

  LstmGradPlan(const sdk::Call& call, sdk::ScratchArena& scratch) : layer(call, 3, 4) {
    panels = layer.allocate_backward_panels(scratch, 0, 4);
    d_gates = scratch.allocate<T>(layer.rows() * layer.all_columns());
    dh = call.has_output(4) ? call.output<T>(4) : scratch.allocate<T>(layer.state_elements());
    dc = call.has_output(5) ? call.output<T>(5) : scratch.allocate<T>(layer.state_elements());
    states = scratch.allocate<T>(layer.rows() * layer.units);
    ones = scratch.allocate<T>(layer.rows());
    sums = scratch.allocate<T>(layer.all_columns());
  }
};

/// From the last step to the first: dc += dh o (1 - tanh(c)^2), do = dh tanh(c) o (1 - o), di = dc g i (1 - i), df = dc c_(t-1) f (1 - f),
/// dg = dc i (1 - g^2); the previous step has dc f and, with dG = (di, do, df, dg), dh = dG r. dx = dG w, dw = dG' x, dr = dG' h,
/// db = sum dG
///
/// Shapes  as lstm; dy, dy_h, dy_c (0 if absent), db, dh0 and dc0 may be absent.
template <class T>
void lstm_grad(const sdk::Call& call) {
  sdk::ScratchArena scratch(call.scratch);
  const LstmGradPlan<T> plan(call, scratch);
  const Recurrent<T>& layer = plan.layer;
  const std::int64_t units = layer.units, step = layer.row_step(4);
  const auto given = [&](std::uint32_t i) { return call.has_input(i) ? call.input<T>(i) : nullptr; };
  const T *const dy = given(0), *const dy_h = given(1), *const dy_c = given(2), *const h0 = given(7), *const c0 = given(8);
  const T *const y = given(9), *const all_gates = given(10), *const cells = given(11);
  layer.pack_backward(plan.panels, 0);
  layer.run(true, {units, units}, [&](std::size_t phase, const StepPart& part) {
    const std::int64_t d = part.direction, s = part.step;
    const bool last = s == layer.steps - 1;
    T* const d_gates = layer.lines(plan.d_gates, d, s, 4);
    if (phase == 1) {
      if (s > 0 || call.has_output(4)) layer.multiply(part, d_gates, step, plan.panels, layer.state(plan.dh, d), units, nullptr);
      return;
    }
    const std::int64_t first = part.row * units;
    const auto rows_of = [&](const T* of_direction) { return of_direction == nullptr ? nullptr : of_direction + first; };
    LstmGradRows<T> rows{};
    rows.rows = part.rows;
    rows.begin = part.column;
    rows.end = part.column + part.columns;
    rows.units = units;
    rows.gates_step = step;
    rows.gates = layer.lines(all_gates, d, s, 4) + part.row * step;
    rows.c = layer.states(cells, d, s) + first;
    rows.c_before = rows_of(s > 0 ? layer.states(cells, d, s - 1) : c0 == nullptr ? nullptr : layer.state(c0, d));
    rows.dy = rows_of(dy == nullptr ? nullptr : layer.states(dy, d, s));
    rows.dh = rows_of(!last ? layer.state(plan.dh, d) : dy_h == nullptr ? nullptr : layer.state(dy_h, d));
    rows.dc = layer.state(plan.dc, d) + first;
    rows.first_dc = rows_of(dy_c == nullptr ? nullptr : layer.state(dy_c, d));
    rows.first = last;
    rows.d_gates = d_gates + part.row * step;
    run_rows(rows);
  });
  layer.input_gradients(plan.d_gates);
  if (call.has_output(3)) {
    layer.column_sums(plan.d_gates, plan.ones, plan.sums);
    layer.bias_gradient(plan.sums, plan.sums);
  }
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    layer.gather_states(y, h0, d, plan.states);
    layer.recurrent_gradient(plan.d_gates, d, 0, 4, plan.states, units);
  }
}
std::size_t scratch_of_grad(const sdk::Call& call) {
  return scratch_of_plan<LstmGradPlan>(call, 3);
}

}  // namespace

TENON_KERNEL_WITH(lstm, (sdk::Traits{.scratch = scratch, .pack_size = pack_size, .pack = pack}), float, double)
TENON_KERNEL_WITH(lstm_grad, (sdk::Traits{.scratch = scratch_of_grad}), float, double)

}  // namespace tenon::openblas
#endif
