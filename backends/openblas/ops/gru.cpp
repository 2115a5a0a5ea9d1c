// SPDX-License-Identifier: Apache-2.0
// ops/gru.cpp - the gated recurrent unit: products with x for all steps at once, then for each step products with packed weights and passes
// over gates and state. The gradient processes the steps in reverse.
#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gru.cpp"
#include <hwy/foreach_target.h>

#include "recurrent/recurrent_cells.h"

#ifndef TENON_OPENBLAS_GRU_ROWS
#define TENON_OPENBLAS_GRU_ROWS
namespace tenon::openblas {
namespace {

/// `whole` if the reset gate scales a product. Otherwise it scales a factor: `reset` runs before that product, `finish` after it.
enum class GruStage { whole, reset, finish };

/// Units [begin, end) of some rows of a step. The row stride of states is `units`, that of the others *_step; the parts of a row are
/// `units` apart.
template <class T>
struct GruRows {
  GruStage stage;
  std::int64_t rows, begin, end, units;
  T* sums;  ///< z, r, h~ before activation; `reset` replaces z and r by their activated values
  std::int64_t sums_step;
  T* seen;  ///< the state as input of h~: an input of `whole`, an output of `reset`
  std::int64_t seen_step;
  T* kept;  ///< (z, r, h~, .); NULL: not kept
  std::int64_t kept_step;
  const T* before;  ///< NULL: 0
  T* h;
};
template <class T>
struct GruGradRows {
  GruStage stage;
  std::int64_t rows, begin, end, units;
  const T* kept;  ///< (z, r, h~, seen)
  std::int64_t kept_step;
  const T *before, *dy, *dh;  ///< NULL: 0
  T* carried;                 ///< the elementwise part of the gradient of the previous state
  const T* d_reset;           ///< `finish`: the gradient of r h
  T *of_input, *of_state;     ///< the gradients of the terms in x and in h of z, r, h~; equal except for `whole`
  std::int64_t gates_step;
};

}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

template <class T>
struct GruCell {
  const GruRows<T>& p;

  HWY_INLINE void operator()(std::int64_t row, const Units<T>& at) const {
    const Wide<T> d;
    T* const sums = p.sums + row * p.sums_step;
    const auto before = at.load_or_zero(row_of(p.before, row, p.units));
    auto z = at.load(sums), r = at.load(sums + p.units);
    if (p.stage != GruStage::finish) {
      z = Sigmoid{}(d, z);
      r = Sigmoid{}(d, r);
    }
    if (p.stage == GruStage::reset) {
      at.store(z, sums);
      at.store(r, sums + p.units);
      at.store(hn::Mul(r, before), p.seen + row * p.seen_step);
      return;
    }
    auto sum = at.load(sums + 2 * p.units);
    if (p.stage == GruStage::whole) sum = hn::MulAdd(r, at.load(p.seen + row * p.seen_step), sum);
    const auto candidate = Tanh{}(d, sum);
    if (p.kept != nullptr) {
      T* const kept = p.kept + row * p.kept_step;
      at.store(z, kept);
      at.store(r, kept + p.units);
      at.store(candidate, kept + 2 * p.units);
    }
    at.store(hn::MulAdd(z, hn::Sub(before, candidate), candidate), p.h + row * p.units);
  }
};

template <class T>
struct GruGradCell {
  const GruGradRows<T>& p;

  HWY_INLINE void operator()(std::int64_t row, const Units<T>& at) const {
    const Wide<T> d;
    const auto one = hn::Set(d, 1);
    const T* const kept = p.kept + row * p.kept_step;
    T* const of_input = p.of_input + row * p.gates_step;
    T* const carried = p.carried + row * p.units;
    const auto before = at.load_or_zero(row_of(p.before, row, p.units));
    const auto r = at.load(kept + p.units);
    if (p.stage == GruStage::finish) {
      const auto d_reset = at.load(p.d_reset + row * p.units);
      at.store(hn::Mul(hn::Mul(d_reset, before), slope_of_sigmoid(one, r)), of_input + p.units);
      at.store(hn::MulAdd(d_reset, r, at.load(carried)), carried);
      return;
    }
    const auto z = at.load(kept), candidate = at.load(kept + 2 * p.units);
    const auto own = hn::Add(at.load_or_zero(row_of(p.dy, row, p.units)), at.load_or_zero(row_of(p.dh, row, p.units)));
    const auto dz = hn::Mul(hn::Mul(own, hn::Sub(before, candidate)), slope_of_sigmoid(one, z));
    const auto dn = hn::Mul(hn::Mul(own, hn::Sub(one, z)), slope_of_tanh(one, candidate));
    at.store(dz, of_input);
    at.store(dn, of_input + 2 * p.units);
    at.store(hn::Mul(own, z), carried);
    if (p.stage != GruStage::whole) return;
    T* const of_state = p.of_state + row * p.gates_step;
    const auto dr = hn::Mul(hn::Mul(dn, at.load(kept + 3 * p.units)), slope_of_sigmoid(one, r));
    at.store(dr, of_input + p.units);
    at.store(dz, of_state);
    at.store(dr, of_state + p.units);
    at.store(hn::Mul(dn, r), of_state + 2 * p.units);
  }
};

}  // namespace

void gru_rows_f32(const GruRows<float>& p) {
  for_each_unit<float>(p.rows, p.begin, p.end, GruCell<float>{p});
}
void gru_rows_f64(const GruRows<double>& p) {
  for_each_unit<double>(p.rows, p.begin, p.end, GruCell<double>{p});
}
void gru_grad_rows_f32(const GruGradRows<float>& p) {
  for_each_unit<float>(p.rows, p.begin, p.end, GruGradCell<float>{p});
}
void gru_grad_rows_f64(const GruGradRows<double>& p) {
  for_each_unit<double>(p.rows, p.begin, p.end, GruGradCell<double>{p});
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "recurrent/recurrent.h"

namespace tenon::openblas {
namespace {

constexpr std::int64_t gate_count = 3;
constexpr std::int64_t candidate = 2;  // the index of h~ among the gates z, r, h~
constexpr std::int64_t seen_part = 3;  // the index of `seen` among the parts that are kept

void run_rows(const GruRows<float>& p) {
  TENON_DISPATCH(gru_rows_f32)(p);
}
void run_rows(const GruRows<double>& p) {
  TENON_DISPATCH(gru_rows_f64)(p);
}
void run_rows(const GruGradRows<float>& p) {
  TENON_DISPATCH(gru_grad_rows_f32)(p);
}
void run_rows(const GruGradRows<double>& p) {
  TENON_DISPATCH(gru_grad_rows_f64)(p);
}

/// The working memory of a call of gru.
template <class T>
struct GruPlan {
  Recurrent<T> layer;
  ForwardPanels<T> panels;  ///< of z and r, and of the candidate
  T *bias, *sums, *kept, *seen, *h;
  bool keeps_h;  ///< whether h of all steps is kept
  bool reset_last;

  GruPlan(const sdk::Call& call, sdk::ScratchArena& scratch) : layer(call, 0, gate_count), panels(layer, candidate, scratch) {
    reset_last = call.attr<tenon_attributes_recurrent>().linear_before_reset != 0;
    keeps_h = call.has_output(0);
    bias = scratch.allocate<T>(layer.all_columns());
    sums = scratch.allocate<T>(layer.rows() * layer.all_columns());
    kept = call.has_output(2) ? call.output<T>(2) : nullptr;
    seen = call.has_output(2) ? nullptr : scratch.allocate<T>(layer.state_elements());
    h = keeps_h ? call.output<T>(0) : scratch.allocate<T>(2 * layer.state_elements());
  }
  /// The states of a direction after step s; if not kept, two buffers alternate, because threads read the previous step.
  T* h_of(std::int64_t d, std::int64_t s) const {
    return keeps_h ? layer.states(h, d, s) : layer.state(h + s % 2 * layer.state_elements(), d);
  }
  T* kept_of(std::int64_t d, std::int64_t s) const { return kept == nullptr ? nullptr : layer.lines(kept, d, s, 4); }
  T* seen_of(std::int64_t d, std::int64_t s) const {
    return kept == nullptr ? layer.state(seen, d) : kept_of(d, s) + seen_part * layer.units;
  }
  std::int64_t seen_step() const { return kept == nullptr ? layer.units : layer.row_step(4); }

  const T* before(const T* h0, std::int64_t d, std::int64_t s) const {
    return s > 0 ? h_of(d, s - 1) : h0 == nullptr ? nullptr : layer.state(h0, d);
  }
  /// br of the candidate; NULL: 0.
  const T* seen_bias(std::int64_t d) const {
    return layer.b == nullptr ? nullptr : layer.b + (d * 2 + 1) * layer.columns() + candidate * layer.units;
  }
  void run_stage(GruStage stage, const T* h0, const StepPart& part) const {
    const std::int64_t d = part.direction, s = part.step, units = layer.units;
    const T* const previous = before(h0, d, s);
    GruRows<T> rows{};
    rows.stage = stage;
    rows.rows = part.rows;
    rows.begin = part.column;
    rows.end = part.column + part.columns;
    rows.units = units;
    rows.sums_step = layer.row_step(3);
    rows.sums = layer.lines(sums, d, s, 3) + part.row * rows.sums_step;
    rows.seen_step = seen_step();
    rows.seen = seen_of(d, s) + part.row * rows.seen_step;
    rows.kept_step = layer.row_step(4);
    rows.kept = kept == nullptr ? nullptr : kept_of(d, s) + part.row * rows.kept_step;
    rows.before = previous == nullptr ? nullptr : previous + part.row * units;
    rows.h = h_of(d, s) + part.row * units;
    run_rows(rows);
  }
};

/// seen = h rh' + brh for a part; without a state, brh.
template <class T>
void multiply_seen(const GruPlan<T>& plan, const T* before, const StepPart& part) {
  T* const seen = plan.seen_of(part.direction, part.step);
  const T* const bias = plan.seen_bias(part.direction);
  if (before != nullptr) {
    plan.layer.multiply(part, before, plan.layer.units, plan.panels.second(), seen, plan.seen_step(), nullptr, bias);
    return;
  }
  for (std::int64_t row = part.row; row < part.row + part.rows; ++row) {
    T* const to = seen + row * plan.seen_step() + part.column;
    if (bias == nullptr) {
      std::fill_n(to, part.columns, T(0));
    } else {
      std::copy_n(bias + part.column, part.columns, to);
    }
  }
}

/// z, r = s(x w' + h r' + b), h~ = tanh(x wh' + bwh + q), h_t = (1 - z) h~ + z h_(t-1); q = (r h) rh' + brh, or r (h rh' + brh) with
/// linear_before_reset
///
/// Shapes  x (T, B, I), w (D, 3 H, I), r (D, 3 H, H), b (D, 6 H) and h0 (D, B, H) or absent; y (T, D, B, H), y_h (D, B, H), gates
///         (T, B, D, 4 H) = (z, r, h~, r h or h rh' + brh), each may be absent.
template <class T>
void gru(const sdk::Call& call) {
  sdk::ScratchArena scratch(call.scratch);
  const GruPlan<T> plan(call, scratch);
  const Recurrent<T>& layer = plan.layer;
  const std::int64_t units = layer.units, step = layer.row_step(3);
  const T* const h0 = call.has_input(4) ? call.input<T>(4) : nullptr;
  if (layer.b != nullptr) layer.add_biases(plan.reset_last ? candidate : candidate + 1, plan.bias);
  layer.input_product(layer.b == nullptr ? nullptr : plan.bias, plan.sums);
  plan.panels.prepare(layer);
  const auto add_gates = [&](const StepPart& part, const T* before) {
    T* const sums = layer.lines(plan.sums, part.direction, part.step, 3);
    if (before != nullptr) layer.multiply(part, before, units, plan.panels.first(), sums, step, sums);
  };
  if (plan.reset_last) {
    layer.run(false, {candidate * units, units, units}, [&](std::size_t phase, const StepPart& part) {
      const T* const before = plan.before(h0, part.direction, part.step);
      if (phase == 0) return add_gates(part, before);
      if (phase == 1) return multiply_seen(plan, before, part);
      plan.run_stage(GruStage::whole, h0, part);
    });
  } else {
    layer.run(false, {candidate * units, units, units, units}, [&](std::size_t phase, const StepPart& part) {
      const T* const before = plan.before(h0, part.direction, part.step);
      if (phase == 0) return add_gates(part, before);
      if (phase == 1) return plan.run_stage(GruStage::reset, h0, part);
      if (phase == 3) return plan.run_stage(GruStage::finish, h0, part);
      T* const sums = layer.lines(plan.sums, part.direction, part.step, 3) + candidate * units;
      if (before != nullptr) {
        layer.multiply(part, plan.seen_of(part.direction, part.step), plan.seen_step(), plan.panels.second(), sums, step, sums);
      }
    });
  }
  for (std::int64_t d = 0; d < layer.directions && call.has_output(1); ++d) {
    std::copy_n(plan.h_of(d, layer.steps - 1), layer.batch * units, layer.state(call.output<T>(1), d));
  }
}
std::size_t scratch(const sdk::Call& call) {
  return scratch_of_plan<GruPlan>(call, 0);
}
std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
  return forward_pack_size(call, input, gate_count, candidate);
}
void pack(const sdk::Call& call, std::uint32_t, void* out_packed) {
  forward_pack(call, gate_count, candidate, out_packed);
}

/// The working memory of a call of gru_grad.
template <class T>
struct GruGradPlan {
  Recurrent<T> layer;
  RecurrentPanels<T> panels, candidate_panels;  ///< of all gates with linear_before_reset; else of z and r, and of the candidate
  T *of_input, *of_state, *dh, *d_reset, *states, *ones, *input_sums, *state_sums;
  bool reset_last;

  GruGradPlan(const sdk::Call& call, sdk::ScratchArena& scratch) : layer(call, 2, 3) {
    reset_last = call.attr<tenon_attributes_recurrent>().linear_before_reset != 0;
    panels = layer.allocate_backward_panels(scratch, 0, reset_last ? candidate + 1 : candidate);
    if (!reset_last) candidate_panels = layer.allocate_backward_panels(scratch, candidate, candidate + 1);
    of_input = scratch.allocate<T>(layer.rows() * layer.all_columns());
    of_state = reset_last ? scratch.allocate<T>(layer.rows() * layer.all_columns()) : of_input;
    dh = call.has_output(4) ? call.output<T>(4) : scratch.allocate<T>(layer.state_elements());
    d_reset = reset_last ? nullptr : scratch.allocate<T>(layer.state_elements());
    states = scratch.allocate<T>(layer.rows() * layer.units);
    ones = scratch.allocate<T>(layer.rows());
    input_sums = scratch.allocate<T>(layer.all_columns());
    state_sums = reset_last ? scratch.allocate<T>(layer.all_columns()) : input_sums;
  }
};

/// From the last step to the first: with dh the gradient of h_t, the gates' gradients are dh~ = dh (1 - z) (1 - h~^2),
/// dz = dh (h_(t-1) - h~) z (1 - z), dr = r (1 - r) times the gradient of r's result; dh of the previous step is dh z plus the gradients
/// through the products.
///
/// Shapes  as gru; dy and dy_h (0 if absent), db and dh0 may be absent.
template <class T>
void gru_grad(const sdk::Call& call) {
  sdk::ScratchArena scratch(call.scratch);
  const GruGradPlan<T> plan(call, scratch);
  const Recurrent<T>& layer = plan.layer;
  const std::int64_t units = layer.units, step = layer.row_step(3), kept_step = layer.row_step(4);
  const auto given = [&](std::uint32_t i) { return call.has_input(i) ? call.input<T>(i) : nullptr; };
  const T *const dy = given(0), *const dy_h = given(1), *const h0 = given(6), *const y = given(7), *const all_kept = given(8);

  const auto run_stage = [&](GruStage stage, const StepPart& part) {
    const std::int64_t d = part.direction, s = part.step, first = part.row * units;
    const auto rows_of = [&](const T* of_direction) { return of_direction == nullptr ? nullptr : of_direction + first; };
    GruGradRows<T> rows{};
    rows.stage = stage;
    rows.rows = part.rows;
    rows.begin = part.column;
    rows.end = part.column + part.columns;
    rows.units = units;
    rows.kept_step = kept_step;
    rows.kept = layer.lines(all_kept, d, s, 4) + part.row * kept_step;
    rows.before = rows_of(s > 0 ? layer.states(y, d, s - 1) : h0 == nullptr ? nullptr : layer.state(h0, d));
    rows.dy = rows_of(dy == nullptr ? nullptr : layer.states(dy, d, s));
    rows.dh = rows_of(s < layer.steps - 1 ? layer.state(plan.dh, d) : dy_h == nullptr ? nullptr : layer.state(dy_h, d));
    rows.carried = layer.state(plan.dh, d) + first;
    rows.d_reset = plan.d_reset == nullptr ? nullptr : layer.state(plan.d_reset, d) + first;
    rows.gates_step = step;
    rows.of_input = layer.lines(plan.of_input, d, s, 3) + part.row * step;
    rows.of_state = layer.lines(plan.of_state, d, s, 3) + part.row * step;
    run_rows(rows);
  };
  const auto backpropagate_state = [&](const StepPart& part) {
    T* const dh = layer.state(plan.dh, part.direction);
    const T* const of_state = layer.lines(plan.of_state, part.direction, part.step, 3);
    if (part.step > 0 || call.has_output(4)) layer.multiply(part, of_state, step, plan.panels, dh, units, dh);
  };
  layer.pack_backward(plan.panels, 0);
  if (plan.reset_last) {
    layer.run(true, {units, units}, [&](std::size_t phase, const StepPart& part) {
      if (phase == 0) return run_stage(GruStage::whole, part);
      backpropagate_state(part);
    });
  } else {
    layer.pack_backward(plan.candidate_panels, candidate);
    layer.run(true, {units, units, units, units}, [&](std::size_t phase, const StepPart& part) {
      if (phase == 0) return run_stage(GruStage::reset, part);
      if (phase == 2) return run_stage(GruStage::finish, part);
      if (phase == 3) return backpropagate_state(part);
      const T* const of_candidate = layer.lines(plan.of_input, part.direction, part.step, 3) + candidate * units;
      layer.multiply(part, of_candidate, step, plan.candidate_panels, layer.state(plan.d_reset, part.direction), units, nullptr);
    });
  }

  layer.input_gradients(plan.of_input);
  if (call.has_output(3)) {
    layer.column_sums(plan.of_input, plan.ones, plan.input_sums);
    if (plan.reset_last) layer.column_sums(plan.of_state, plan.ones, plan.state_sums);
    layer.bias_gradient(plan.input_sums, plan.state_sums);
  }
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    layer.gather_states(y, h0, d, plan.states);
    layer.recurrent_gradient(plan.of_state, d, 0, plan.reset_last ? candidate + 1 : candidate, plan.states, units);
    if (plan.reset_last) continue;
    // With an empty batch nothing was kept, and there is no memory to point into.
    const T* const seen = all_kept == nullptr ? nullptr : all_kept + (d * 4 + seen_part) * units;
    layer.recurrent_gradient(plan.of_input, d, candidate, candidate + 1, seen, kept_step);
  }
}
std::size_t scratch_of_grad(const sdk::Call& call) {
  return scratch_of_plan<GruGradPlan>(call, 2);
}

}  // namespace

TENON_KERNEL_WITH(gru, (sdk::Traits{.scratch = scratch, .pack_size = pack_size, .pack = pack}), float, double)
TENON_KERNEL_WITH(gru_grad, (sdk::Traits{.scratch = scratch_of_grad}), float, double)

}  // namespace tenon::openblas
#endif
