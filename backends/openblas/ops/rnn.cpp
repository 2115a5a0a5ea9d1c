// SPDX-License-Identifier: Apache-2.0
// ops/rnn.cpp - the Elman recurrent layer: products with x for all steps at once, then for each step a product with packed weights and the
// activation. The gradient processes the steps in reverse.
#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rnn.cpp"
#include <hwy/foreach_target.h>

#include "recurrent/recurrent_cells.h"

#ifndef TENON_OPENBLAS_RNN_ROWS
#define TENON_OPENBLAS_RNN_ROWS
namespace tenon::openblas {
namespace {

/// Units [begin, end) of some rows of a step. The row stride of sums is sums_step, that of states `units`.
template <class T>
struct RnnRows {
  std::int64_t rows, begin, end, units, sums_step;
  bool is_relu;
  const T* sums;
  T* h;
};
template <class T>
struct RnnGradRows {
  std::int64_t rows, begin, end, units, sums_step;
  bool is_relu;
  const T *y, *dy, *dh;  ///< dy, dh NULL: 0
  T* d_sums;
};

}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

template <class T>
struct RnnCell {
  const RnnRows<T>& p;

  HWY_INLINE void operator()(std::int64_t row, const Units<T>& at) const {
    const Wide<T> d;
    const auto sum = at.load(p.sums + row * p.sums_step);
    at.store(p.is_relu ? Relu{}(d, sum) : Tanh{}(d, sum), p.h + row * p.units);
  }
};

template <class T>
struct RnnGradCell {
  const RnnGradRows<T>& p;

  HWY_INLINE void operator()(std::int64_t row, const Units<T>& at) const {
    const Wide<T> d;
    const auto dh = hn::Add(at.load_or_zero(row_of(p.dy, row, p.units)), at.load_or_zero(row_of(p.dh, row, p.units)));
    const auto y = at.load(p.y + row * p.units);
    const auto one = hn::Set(d, 1);
    const auto slope = p.is_relu ? hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), one) : slope_of_tanh(one, y);
    at.store(hn::Mul(slope, dh), p.d_sums + row * p.sums_step);
  }
};

}  // namespace

void rnn_rows_f32(const RnnRows<float>& p) {
  for_each_unit<float>(p.rows, p.begin, p.end, RnnCell<float>{p});
}
void rnn_rows_f64(const RnnRows<double>& p) {
  for_each_unit<double>(p.rows, p.begin, p.end, RnnCell<double>{p});
}
void rnn_grad_rows_f32(const RnnGradRows<float>& p) {
  for_each_unit<float>(p.rows, p.begin, p.end, RnnGradCell<float>{p});
}
void rnn_grad_rows_f64(const RnnGradRows<double>& p) {
  for_each_unit<double>(p.rows, p.begin, p.end, RnnGradCell<double>{p});
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "recurrent/recurrent.h"

namespace tenon::openblas {
namespace {

void run_rows(const RnnRows<float>& p) {
  TENON_DISPATCH(rnn_rows_f32)(p);
}
void run_rows(const RnnRows<double>& p) {
  TENON_DISPATCH(rnn_rows_f64)(p);
}
void run_rows(const RnnGradRows<float>& p) {
  TENON_DISPATCH(rnn_grad_rows_f32)(p);
}
void run_rows(const RnnGradRows<double>& p) {
  TENON_DISPATCH(rnn_grad_rows_f64)(p);
}

/// The working memory of a call of rnn.
template <class T>
struct RnnPlan {
  Recurrent<T> layer;
  ForwardPanels<T> panels;
  T *bias, *sums, *h;
  bool keeps_h;  ///< whether h of all steps is kept

  RnnPlan(const sdk::Call& call, sdk::ScratchArena& scratch) : layer(call, 0, 1), panels(layer, 1, scratch) {
    keeps_h = call.has_output(0);
    bias = scratch.allocate<T>(layer.all_columns());
    sums = scratch.allocate<T>(layer.rows() * layer.all_columns());
    h = keeps_h ? call.output<T>(0) : scratch.allocate<T>(2 * layer.state_elements());
  }
  /// The states of a direction after step s; if not kept, two buffers alternate, because threads read the previous step.
  T* h_of(std::int64_t d, std::int64_t s) const {
    return keeps_h ? layer.states(h, d, s) : layer.state(h + s % 2 * layer.state_elements(), d);
  }
};

/// h_t = f(x_t w' + h_(t-1) r' + bw + br), f tanh or max(0, .)
///
/// Shapes  x (T, B, I), w (D, H, I), r (D, H, H), b (D, 2 H) and h0 (D, B, H) or absent; y (T, D, B, H), y_h (D, B, H), each may be absent.
template <class T>
void rnn(const sdk::Call& call) {
  sdk::ScratchArena scratch(call.scratch);
  const RnnPlan<T> plan(call, scratch);
  const Recurrent<T>& layer = plan.layer;
  const std::int64_t units = layer.units, step = layer.row_step(1);
  const bool is_relu = call.attr<tenon_attributes_recurrent>().activation == TENON_RNN_RELU;
  const T* const h0 = call.has_input(4) ? call.input<T>(4) : nullptr;
  if (layer.b != nullptr) layer.add_biases(1, plan.bias);
  layer.input_product(layer.b == nullptr ? nullptr : plan.bias, plan.sums);
  plan.panels.prepare(layer);
  layer.run(false, {units, units}, [&](std::size_t phase, const StepPart& part) {
    const std::int64_t d = part.direction, s = part.step;
    T* const sums = layer.lines(plan.sums, d, s, 1);
    if (phase == 0) {
      const T* const before = s > 0 ? plan.h_of(d, s - 1) : h0 == nullptr ? nullptr : layer.state(h0, d);
      if (before != nullptr) layer.multiply(part, before, units, plan.panels.first(), sums, step, sums);
      return;
    }
    run_rows(RnnRows<T>{part.rows, part.column, part.column + part.columns, units, step, is_relu, sums + part.row * step,
                        plan.h_of(d, s) + part.row * units});
  });
  for (std::int64_t d = 0; d < layer.directions && call.has_output(1); ++d) {
    std::copy_n(plan.h_of(d, layer.steps - 1), layer.batch * units, layer.state(call.output<T>(1), d));
  }
}
std::size_t scratch(const sdk::Call& call) {
  return scratch_of_plan<RnnPlan>(call, 0);
}
std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
  return forward_pack_size(call, input, 1, 1);
}
void pack(const sdk::Call& call, std::uint32_t, void* out_packed) {
  forward_pack(call, 1, 1, out_packed);
}

/// The working memory of a call of rnn_grad.
template <class T>
struct RnnGradPlan {
  Recurrent<T> layer;
  RecurrentPanels<T> panels;
  T *d_sums, *dh, *states, *ones, *sums;

  RnnGradPlan(const sdk::Call& call, sdk::ScratchArena& scratch) : layer(call, 2, 1) {
    panels = layer.allocate_backward_panels(scratch, 0, 1);
    d_sums = scratch.allocate<T>(layer.rows() * layer.all_columns());
    dh = call.has_output(4) ? call.output<T>(4) : scratch.allocate<T>(layer.state_elements());
    states = scratch.allocate<T>(layer.rows() * layer.units);
    ones = scratch.allocate<T>(layer.rows());
    sums = scratch.allocate<T>(layer.all_columns());
  }
};

/// From the last step to the first: da = f'(y_t) (dy_t + dh), dh = da r; then dx = da w, dw = da' x, dr = da' h, db = sum of da
///
/// Shapes  as rnn; dy and dy_h (0 if absent), db and dh0 may be absent.
template <class T>
void rnn_grad(const sdk::Call& call) {
  sdk::ScratchArena scratch(call.scratch);
  const RnnGradPlan<T> plan(call, scratch);
  const Recurrent<T>& layer = plan.layer;
  const std::int64_t units = layer.units, step = layer.row_step(1);
  const bool is_relu = call.attr<tenon_attributes_recurrent>().activation == TENON_RNN_RELU;
  const auto given = [&](std::uint32_t i) { return call.has_input(i) ? call.input<T>(i) : nullptr; };
  const T *const dy = given(0), *const dy_h = given(1), *const h0 = given(6), *const y = given(7);
  layer.pack_backward(plan.panels, 0);
  layer.run(true, {units, units}, [&](std::size_t phase, const StepPart& part) {
    const std::int64_t d = part.direction, s = part.step, first = part.row * units;
    T* const d_sums = layer.lines(plan.d_sums, d, s, 1);
    if (phase == 1) {
      if (s > 0 || call.has_output(4)) layer.multiply(part, d_sums, step, plan.panels, layer.state(plan.dh, d), units, nullptr);
      return;
    }
    const auto rows_of = [&](const T* of_direction) { return of_direction == nullptr ? nullptr : of_direction + first; };
    const T* const dh = s < layer.steps - 1 ? layer.state(plan.dh, d) : dy_h == nullptr ? nullptr : layer.state(dy_h, d);
    run_rows(RnnGradRows<T>{part.rows, part.column, part.column + part.columns, units, step, is_relu, layer.states(y, d, s) + first,
                            rows_of(dy == nullptr ? nullptr : layer.states(dy, d, s)), rows_of(dh), d_sums + part.row * step});
  });
  layer.input_gradients(plan.d_sums);
  if (call.has_output(3)) {
    layer.column_sums(plan.d_sums, plan.ones, plan.sums);
    layer.bias_gradient(plan.sums, plan.sums);
  }
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    layer.gather_states(y, h0, d, plan.states);
    layer.recurrent_gradient(plan.d_sums, d, 0, 1, plan.states, units);
  }
}
std::size_t scratch_of_grad(const sdk::Call& call) {
  return scratch_of_plan<RnnGradPlan>(call, 2);
}

}  // namespace

TENON_KERNEL_WITH(rnn, (sdk::Traits{.scratch = scratch, .pack_size = pack_size, .pack = pack}), float, double)
TENON_KERNEL_WITH(rnn_grad, (sdk::Traits{.scratch = scratch_of_grad}), float, double)

}  // namespace tenon::openblas
#endif
