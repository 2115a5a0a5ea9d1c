// SPDX-License-Identifier: Apache-2.0
#include "recurrent/recurrent.h"

#include <algorithm>

#include <tenon/sdk/matrix_view.h>
#include <tenon/sdk/rounding.h>

#include "elementwise/half.h"
#include "gemm/packed_products.h"
#include "gemm/panels.h"
#include "gemm/products.h"
#include "simd/subnormals.h"

namespace tenon::openblas {
namespace {

// Multiply-adds worth handing to a thread, about 15 us.
constexpr double smallest_task = 1e6;
// With fewer rows, a thread does too little work per read of the recurrent weights.
constexpr std::int64_t min_rows = 4;

/// How the work of one step is divided. It affects only the speed: every element is computed in the same way.
struct StepTiling {
  std::int64_t row_blocks;  ///< of each direction
  bool by_columns;
};

StepTiling step_tiling(std::int64_t threads, std::int64_t directions, std::int64_t batch, double step_work) {
  const std::int64_t row_blocks = std::clamp<std::int64_t>(sdk::ceil_div(threads, directions), 1, std::max<std::int64_t>(batch, 1));
  const bool enough = directions * row_blocks >= threads && (row_blocks == 1 || batch / row_blocks >= min_rows);
  const bool by_columns = !enough && threads > 1 && step_work * static_cast<double>(directions) >= smallest_task;
  return {row_blocks, by_columns};
}

/// A dense (rows, columns) matrix, or `columns` columns of one with this row stride.
sdk::MatrixView row_major(std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  return {rows, columns, stride, 1};
}

template <class T>
void matrix_product(const sdk::Call& call, const sdk::MatrixView& a_view, const T* a, const sdk::MatrixView& b_view, const T* b, T* y,
                    const T* bias = nullptr) {
  Product<T> product{a_view, b_view, T(1), a, b, y, {}};
  product.epilogue.bias = bias;
  multiply(call.host, call.deterministic, product, {});
}

}  // namespace

// ---------------------------------------------------------------- one layer

template <class T>
Recurrent<T>::Recurrent(const sdk::Call& a_call, std::uint32_t first, std::int64_t gate_count)
    : call(a_call),
      steps(call.inputs[first].shape[0]),
      batch(call.inputs[first].shape[1]),
      features(call.inputs[first].shape[2]),
      directions(call.inputs[first + 2].shape[0]),
      units(call.inputs[first + 2].shape[2]),
      gates(gate_count),
      direction(call.attr<tenon_attributes_recurrent>().direction),
      x(call.input<T>(first)),
      w(call.input<T>(first + 1)),
      r(call.input<T>(first + 2)),
      b(input_or_null(first + 3)),
      h0(input_or_null(first + 4)) {}

template <class T>
RecurrentPanels<T> Recurrent<T>::forward_panels(std::int64_t begin, std::int64_t end, sdk::ScratchArena& arena) const {
  const std::int64_t n = (end - begin) * units;
  return {begin * units, units, n, 1, units, arena.allocate<T>(directions * panel_elements<T>(units, n))};
}

template <class T>
RecurrentPanels<T> Recurrent<T>::backward_panels(std::int64_t begin, std::int64_t end, sdk::ScratchArena& arena) const {
  const std::int64_t n = (end - begin) * units;
  return {begin * units, n, units, units, 1, arena.allocate<T>(directions * panel_elements<T>(n, units))};
}

template <class T>
void Recurrent<T>::pack(const RecurrentPanels<T>& panels) const {
  const std::int64_t count = panel_count<T>(panels.columns);
  const std::int64_t grain = std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, panels.k * panel_width<T>));
  call.host.parallel_for(directions * count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      PanelSource<T> source;
      source.data = r + (i / count * columns() + panels.first_row) * units;
      source.inner = panels.k;
      source.inner_step = panels.inner_step;
      source.columns = panels.columns;
      source.column_step = panels.column_step;
      pack_panel(source, i % count, panels.data + i / count * panel_elements<T>(panels.k, panels.columns));
    }
  });
}

template <class T>
void Recurrent<T>::multiply(const StepPart& part, Rows<const T> a, const RecurrentPanels<T>& panels, Rows<SumOf<T>> y,
                            Rows<const SumOf<T>> residual, const SumOf<T>* bias) const {
  PanelProduct<T> product;
  product.rows = part.rows;
  product.k = panels.k;
  product.columns = part.columns;
  product.a = a.data;
  product.a_step = a.stride;
  // Parts begin at whole panels.
  product.panels =
      panels.data + part.direction * panel_elements<T>(panels.k, panels.columns) + part.column / panel_width<T> * panel_step<T>(panels.k);
  product.y_step = y.stride;
  if constexpr (std::is_same_v<T, sdk::BFloat16>) {
    product.wide_y = y.data + part.column;
    product.accumulates = residual.data != nullptr;
    product.streams = reads_panels_once(batch);
  } else {
    product.y = y.data + part.column;
    product.residual = residual.from_column(part.column).data;
    if (bias != nullptr) product.bias = bias + part.column;
  }
  multiply_panels(product);
}

template <class T>
void Recurrent<T>::for_each_step(bool backward, std::initializer_list<Phase> phases) const {
  const double row_work = static_cast<double>(columns()) * static_cast<double>(units);
  const double step_work = row_work * static_cast<double>(batch);
  const StepTiling tiling = step_tiling(call.host.thread_count(), directions, batch, step_work);
  // States that decay become subnormal. They are at most about 1, so that zero in their place changes a sum by 1e-38 times a weight.
  const bool forward = !backward;
  if (tiling.by_columns) {
    constexpr std::int64_t width = panel_width<T>;
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::int64_t s = backward ? steps - 1 - i : i;
      for (const Phase& phase : phases) {
        const std::int64_t blocks = sdk::ceil_div(phase.columns, width);
        call.host.parallel_for(directions * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
          const SubnormalsAreZero mode(forward);
          while (begin < end) {
            const std::int64_t d = begin / blocks, first = begin % blocks;
            const std::int64_t last = std::min(blocks, first + end - begin);
            phase.compute({d, s, 0, batch, first * width, std::min(last * width, phase.columns) - first * width});
            begin += last - first;
          }
        });
      }
    }
    return;
  }
  const double task_work = step_work * static_cast<double>(steps) / static_cast<double>(tiling.row_blocks);
  const auto grain = static_cast<std::int64_t>(smallest_task / std::max(task_work, 1.0));
  const std::int64_t blocks = tiling.row_blocks;
  call.host.parallel_for(directions * blocks, std::max<std::int64_t>(grain, 1), [&](std::int64_t begin, std::int64_t end) {
    const SubnormalsAreZero mode(forward);
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t d = task / blocks, block = task % blocks;
      const std::int64_t row = batch * block / blocks, rows = batch * (block + 1) / blocks - row;
      for (std::int64_t i = 0; i < steps; ++i) {
        for (const Phase& phase : phases) phase.compute({d, backward ? steps - 1 - i : i, row, rows, 0, phase.columns});
      }
    }
  });
}

template <class T>
void States<T>::copy_last_to(std::uint32_t result) const {
  if (!layer_.call.has_output(result)) return;
  T* const out = layer_.call.template output<T>(result);
  for (std::int64_t d = 0; d < layer_.directions; ++d) {
    const StepPart last{d, layer_.steps - 1, 0, layer_.batch, 0, layer_.units};
    std::copy_n(after(last).data, layer_.batch * layer_.units, layer_.in_state(out, last).data);
  }
}

// ---------------------------------------------------------------- forward

template <class T>
ForwardPanels<T>::ForwardPanels(const Recurrent<T>& layer, std::int64_t split, sdk::ScratchArena& arena) {
  const void* const packed = layer.call.packed == nullptr ? nullptr : layer.call.packed[recurrence::packed_operand];
  packed_ahead = packed != nullptr;
  sdk::ScratchArena ahead(const_cast<void*>(packed));
  sdk::ScratchArena& from = packed_ahead ? ahead : arena;
  first = layer.forward_panels(0, split, from);
  second = layer.forward_panels(split, layer.gates, from);
  bytes = from.required_bytes();
}

template <class T>
ForwardLayer<T>::ForwardLayer(const sdk::Call& a_call, sdk::ScratchArena& arena, std::int64_t gate_count, std::int64_t split_at,
                              std::uint32_t kept_sums)
    : Recurrent<T>(a_call, 0, gate_count),
      panels(*this, split_at, arena),
      split(split_at),
      summed_gates(gate_count),
      input_panels(nullptr),
      bias(arena.allocate<SumOf<T>>(this->all_columns())),
      h(*this, 0, this->h0, arena) {
  const std::int64_t count = this->rows() * this->all_columns();
  if constexpr (std::is_same_v<T, sdk::BFloat16>) {
    sums = arena.allocate<float>(count);
    const bool ahead = this->call.packed != nullptr && this->call.packed[recurrence::input_weights] != nullptr;
    if (!ahead) input_panels = arena.allocate<T>(panel_elements<T>(this->features, this->all_columns()));
  } else {
    sums = this->output_or_scratch(kept_sums, count, arena);
  }
}

template <class T>
void ForwardLayer<T>::pack_panels() const {
  this->pack(panels.first);
  this->pack(panels.second);
}

template <class T>
Phase ForwardLayer<T>::state_product() const {
  return {split * this->units, [this](const StepPart& part) {
            const Rows<const T> before = h.before(part);
            if (before.data != nullptr) this->multiply(part, before, panels.first, sums_at(part), sums_at(part));
          }};
}

/// sums = x w' + bias
template <class T>
void ForwardLayer<T>::input_product() const {
  const std::int64_t all = this->all_columns();
  if (this->rows() == 0) return;
  if constexpr (std::is_same_v<T, sdk::BFloat16>) {
    if (input_panels != nullptr) pack_input_weights(this->call, input_panels);
    PanelProduct<T> product;
    product.rows = this->rows();
    product.k = this->features;
    product.columns = all;
    product.a = this->x;
    product.a_step = this->features;
    product.panels = input_panels != nullptr ? input_panels : static_cast<const T*>(this->call.packed[recurrence::input_weights]);
    product.wide_y = sums;
    product.y_step = all;
    product.accumulates = this->b != nullptr;
    for (std::int64_t row = 0; row < this->rows() && this->b != nullptr; ++row) std::copy_n(bias, all, sums + row * all);
    multiply_packed(this->call.host, product);
  } else {
    matrix_product(this->call, row_major(this->rows(), this->features, this->features), this->x,
                   row_major(all, this->features, this->features).transposed(), this->w, sums, this->b == nullptr ? nullptr : bias);
  }
}

template <class T>
void ForwardLayer<T>::run_steps(std::initializer_list<Phase> phases) const {
  for (std::int64_t d = 0; d < this->directions && this->b != nullptr; ++d) {
    const T* const of_input = this->b + d * 2 * this->columns();
    const T* const of_state = of_input + this->columns();
    for (std::int64_t k = 0; k < this->columns(); ++k) {
      const SumOf<T> own = number_of(of_input[k]);
      bias[d * this->columns() + k] = k < summed_gates * this->units ? own + number_of(of_state[k]) : own;
    }
  }
  check_sizes("recurrence", this->rows(), this->all_columns(), this->features);
  input_product();
  if (!panels.packed_ahead) pack_panels();
  this->for_each_step(false, phases);
  h.copy_last_to(1);
}

// ---------------------------------------------------------------- backward

template <class T>
BackwardLayer<T>::BackwardLayer(const sdk::Call& a_call, sdk::ScratchArena& arena, std::uint32_t first, std::uint32_t y_operand,
                                std::int64_t gate_count, std::int64_t split_at, bool own_state_gates)
    : Recurrent<T>(a_call, first, gate_count), split(split_at) {
  panels = this->backward_panels(0, split, arena);
  other_panels = this->backward_panels(split, gate_count, arena);
  dy = this->input_or_null(0);
  dy_h = this->input_or_null(1);
  y = this->call.template input<T>(y_operand);
  d_gates = arena.allocate<T>(this->rows() * this->all_columns());
  d_state_gates = own_state_gates ? arena.allocate<T>(this->rows() * this->all_columns()) : d_gates;
  dh = this->output_or_scratch(4, this->state_elements(), arena);
  states = arena.allocate<T>(this->rows() * this->units);
  ones = arena.allocate<T>(this->rows());
  sums = arena.allocate<T>(this->all_columns());
  state_sums = own_state_gates ? arena.allocate<T>(this->all_columns()) : sums;
}

template <class T>
Phase BackwardLayer<T>::state_gradient(bool adds) const {
  return {this->units, [this, adds](const StepPart& part) {
            if (part.step == 0 && !this->call.has_output(4)) return;
            const Rows<T> out = this->in_state(dh, part);
            this->multiply(part, d_state_gates_of(part), panels, out, adds ? out : Rows<T>{});
          }};
}

template <class T>
void BackwardLayer<T>::run_steps(std::initializer_list<Phase> phases) const {
  this->pack(panels);
  this->pack(other_panels);
  this->for_each_step(true, phases);
  input_gradients();
  bias_gradient();
  for (std::int64_t d = 0; d < this->directions; ++d) {
    gather_states(d);
    recurrent_gradient(d_state_gates, d, 0, split, states, this->units);
  }
}

template <class T>
void BackwardLayer<T>::input_gradients() const {
  const std::int64_t all = this->all_columns();
  const sdk::MatrixView gate_view = row_major(this->rows(), all, all);
  matrix_product(this->call, gate_view, d_gates, row_major(all, this->features, this->features), this->w, this->call.template output<T>(0));
  matrix_product(this->call, gate_view.transposed(), d_gates, row_major(this->rows(), this->features, this->features), this->x,
                 this->call.template output<T>(1));
}

template <class T>
void BackwardLayer<T>::bias_gradient() const {
  if (!this->call.has_output(3)) return;
  std::fill_n(ones, this->rows(), T(1));
  const auto add_up = [&](const T* gradients, T* out) {
    matrix_product(this->call, row_major(1, this->rows(), this->rows()), ones,
                   row_major(this->rows(), this->all_columns(), this->all_columns()), gradients, out);
  };
  add_up(d_gates, sums);
  if (state_sums != sums) add_up(d_state_gates, state_sums);
  T* const db = this->call.template output<T>(3);
  for (std::int64_t d = 0; d < this->directions; ++d) {
    std::copy_n(sums + d * this->columns(), this->columns(), db + d * 2 * this->columns());
    std::copy_n(state_sums + d * this->columns(), this->columns(), db + (d * 2 + 1) * this->columns());
  }
}

template <class T>
void BackwardLayer<T>::recurrent_gradient(const T* gradients, std::int64_t d, std::int64_t begin, std::int64_t end, const T* factors,
                                          std::int64_t stride) const {
  const std::int64_t first = d * this->columns() + begin * this->units, n = (end - begin) * this->units;
  matrix_product(this->call, row_major(this->rows(), n, this->all_columns()).transposed(), gradients + first,
                 row_major(this->rows(), this->units, stride), factors, this->call.template output<T>(2) + first * this->units);
}

/// The states before each step, (T B, H) in the order of x.
template <class T>
void BackwardLayer<T>::gather_states(std::int64_t d) const {
  const std::int64_t line = this->batch * this->units;
  const std::int64_t grain = std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(line, 1));
  this->call.host.parallel_for(this->steps, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t s = begin; s < end; ++s) {
      const T* const from = state_before({d, s, 0, this->batch, 0, this->units}).data;
      T* const to = states + this->time(d, s) * line;
      if (from == nullptr) {
        std::fill_n(to, line, T(0));
      } else {
        std::copy_n(from, line, to);
      }
    }
  });
}

namespace {

sdk::MatrixView input_weights_of(const sdk::Call& call) {
  const sdk::Operand& w = call.inputs[recurrence::input_weights];
  return row_major(w.shape[0] * w.shape[1], w.shape[2], w.shape[2]).transposed();
}

}  // namespace

std::size_t input_panels_bytes(const sdk::Call& call) {
  const sdk::MatrixView w = input_weights_of(call);
  return static_cast<std::size_t>(panel_elements<sdk::BFloat16>(w.rows, w.columns)) * sizeof(sdk::BFloat16);
}

void pack_input_weights(const sdk::Call& call, sdk::BFloat16* out_panels) {
  pack_matrix(call.host, input_weights_of(call), call.input<sdk::BFloat16>(recurrence::input_weights), out_panels);
}

template struct Recurrent<sdk::BFloat16>;
template class States<sdk::BFloat16>;
template struct ForwardPanels<sdk::BFloat16>;
template struct ForwardLayer<sdk::BFloat16>;
template struct Recurrent<float>;
template struct Recurrent<double>;
template class States<float>;
template class States<double>;
template struct ForwardPanels<float>;
template struct ForwardPanels<double>;
template struct ForwardLayer<float>;
template struct ForwardLayer<double>;
template struct BackwardLayer<float>;
template struct BackwardLayer<double>;

}  // namespace tenon::openblas
