// SPDX-License-Identifier: Apache-2.0
#include "recurrent/recurrent.h"

namespace tenon::openblas {

namespace recurrence {

Tiling tiling_of(const sdk::Host& host, std::int64_t directions, std::int64_t batch, double step_work) {
  const std::int64_t threads = host.thread_count();
  const std::int64_t row_blocks = std::clamp<std::int64_t>((threads + directions - 1) / directions, 1, std::max<std::int64_t>(batch, 1));
  const bool enough = directions * row_blocks >= threads && (row_blocks == 1 || batch / row_blocks >= min_rows);
  const bool by_columns = !enough && threads > 1 && step_work * static_cast<double>(directions) >= smallest_task;
  return {row_blocks, by_columns};
}

}  // namespace recurrence

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
      b(call.has_input(first + 3) ? call.input<T>(first + 3) : nullptr) {}

template <class T>
RecurrentPanels<T> Recurrent<T>::allocate_forward_panels(sdk::ScratchArena& scratch, std::int64_t begin, std::int64_t end) const {
  RecurrentPanels<T> panels{units, (end - begin) * units, nullptr};
  panels.panels = scratch.allocate<T>(directions * panels.elements());
  return panels;
}

template <class T>
RecurrentPanels<T> Recurrent<T>::allocate_backward_panels(sdk::ScratchArena& scratch, std::int64_t begin, std::int64_t end) const {
  RecurrentPanels<T> panels{(end - begin) * units, units, nullptr};
  panels.panels = scratch.allocate<T>(directions * panels.elements());
  return panels;
}

template <class T>
void Recurrent<T>::pack(const RecurrentPanels<T>& panels, const T* from, std::int64_t inner_step, std::int64_t column_step) const {
  const std::int64_t count = panel_count<T>(panels.columns);
  const std::int64_t grain = std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, panels.k * panel_width<T>));
  call.host.parallel_for(directions * count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      PanelSource<T> source;
      source.data = from + i / count * columns() * units;
      source.inner = panels.k;
      source.inner_step = inner_step;
      source.columns = panels.columns;
      source.column_step = column_step;
      pack_panel(source, i % count, panels.panels + i / count * panels.elements());
    }
  });
}

template <class T>
void Recurrent<T>::pack_forward(const RecurrentPanels<T>& panels, std::int64_t begin) const {
  pack(panels, r + begin * units * units, 1, units);
}

template <class T>
void Recurrent<T>::pack_backward(const RecurrentPanels<T>& panels, std::int64_t begin) const {
  pack(panels, r + begin * units * units, units, 1);
}

template <class T>
void Recurrent<T>::input_product(const T* bias, T* out) const {
  const sdk::MatrixView weights{all_columns(), features, features, 1};
  Product<T> product{{rows(), features, features, 1}, weights.transposed(), T(1), x, w, out, {}};
  product.epilogue.bias = bias;
  check_sizes("recurrence", rows(), all_columns(), features);
  openblas::multiply(call.host, call.deterministic, product, {});
}

template <class T>
void Recurrent<T>::add_biases(std::int64_t summed_gates, T* out) const {
  for (std::int64_t d = 0; d < directions; ++d) {
    const T* const of_input = b + d * 2 * columns();
    const T* const of_state = of_input + columns();
    for (std::int64_t k = 0; k < columns(); ++k)
      out[d * columns() + k] = k < summed_gates * units ? of_input[k] + of_state[k] : of_input[k];
  }
}

template <class T>
void Recurrent<T>::input_gradients(const T* d_gates) const {
  const sdk::MatrixView gate_view{rows(), all_columns(), all_columns(), 1}, x_view{rows(), features, features, 1};
  const sdk::MatrixView w_view{all_columns(), features, features, 1};
  openblas::multiply(call.host, call.deterministic, Product<T>{gate_view, w_view, T(1), d_gates, w, call.output<T>(0), {}}, {});
  openblas::multiply(call.host, call.deterministic, Product<T>{gate_view.transposed(), x_view, T(1), d_gates, x, call.output<T>(1), {}},
                     {});
}

template <class T>
void Recurrent<T>::column_sums(const T* d_gates, T* ones, T* out) const {
  std::fill_n(ones, rows(), T(1));
  const sdk::MatrixView gate_view{rows(), all_columns(), all_columns(), 1};
  openblas::multiply(call.host, call.deterministic, Product<T>{{1, rows(), rows(), 1}, gate_view, T(1), ones, d_gates, out, {}}, {});
}

template <class T>
void Recurrent<T>::bias_gradient(const T* of_input, const T* of_state) const {
  if (!call.has_output(3)) return;
  T* const db = call.output<T>(3);
  for (std::int64_t d = 0; d < directions; ++d) {
    std::copy_n(of_input + d * columns(), columns(), db + d * 2 * columns());
    std::copy_n(of_state + d * columns(), columns(), db + (d * 2 + 1) * columns());
  }
}

template <class T>
void Recurrent<T>::recurrent_gradient(const T* d_gates, std::int64_t d, std::int64_t begin, std::int64_t end, const T* states,
                                      std::int64_t step) const {
  const std::int64_t first = d * columns() + begin * units;
  const sdk::MatrixView gate_view{rows(), (end - begin) * units, all_columns(), 1}, state_view{rows(), units, step, 1};
  T* const dr = call.output<T>(2) + first * units;
  openblas::multiply(call.host, call.deterministic, Product<T>{gate_view.transposed(), state_view, T(1), d_gates + first, states, dr, {}},
                     {});
}

template <class T>
void Recurrent<T>::gather_states(const T* y, const T* h0, std::int64_t d, T* out) const {
  const std::int64_t line = batch * units;
  call.host.parallel_for(steps, std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(line, 1)),
                         [&](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t s = begin; s < end; ++s) {
                             T* const to = out + time(d, s) * line;
                             if (s > 0) {
                               std::copy_n(this->states(y, d, s - 1), line, to);
                             } else if (h0 != nullptr) {
                               std::copy_n(this->state(h0, d), line, to);
                             } else {
                               std::fill_n(to, line, T(0));
                             }
                           }
                         });
}

template <class T>
void Recurrent<T>::multiply(const StepPart& part, const T* a, std::int64_t a_step, const RecurrentPanels<T>& panels, T* y,
                            std::int64_t y_step, const T* residual, const T* bias) const {
  PanelProduct<T> product;
  product.rows = part.rows;
  product.k = panels.k;
  product.columns = part.columns;
  product.a = a + part.row * a_step;
  product.a_step = a_step;
  product.panels = panels.of(part.direction) + part.column * panels.k;  // parts begin at whole panels
  product.y = y + part.row * y_step + part.column;
  product.y_step = y_step;
  if (residual != nullptr) product.residual = residual + part.row * y_step + part.column;
  if (bias != nullptr) product.bias = bias + part.column;
  multiply_panels(product);
}

namespace {

constexpr std::uint32_t recurrent_weights = 2;  // the index of operand r, forward

template <class T>
std::size_t pack_size_of(const sdk::Call& call, std::int64_t gates, std::int64_t split) {
  sdk::ScratchArena scratch(nullptr);
  sdk::Call unpacked = call;
  unpacked.packed = nullptr;
  ForwardPanels<T>(Recurrent<T>(unpacked, 0, gates), split, scratch);
  return scratch.required_bytes();
}

template <class T>
void pack_all(const sdk::Call& call, std::int64_t gates, std::int64_t split, void* out_packed) {
  sdk::ScratchArena scratch(out_packed);
  sdk::Call unpacked = call;
  unpacked.packed = nullptr;
  const Recurrent<T> layer(unpacked, 0, gates);
  ForwardPanels<T>(layer, split, scratch).prepare(layer);
}

}  // namespace

template <class T>
ForwardPanels<T>::ForwardPanels(const Recurrent<T>& layer, std::int64_t split, sdk::ScratchArena& scratch) : split_(split) {
  const void* const packed = layer.call.packed == nullptr ? nullptr : layer.call.packed[recurrent_weights];
  packed_ = packed != nullptr;
  sdk::ScratchArena ahead(const_cast<void*>(packed));
  sdk::ScratchArena& from = packed_ ? ahead : scratch;
  first_ = layer.allocate_forward_panels(from, 0, split);
  if (split < layer.gates) second_ = layer.allocate_forward_panels(from, split, layer.gates);
}

template <class T>
void ForwardPanels<T>::prepare(const Recurrent<T>& layer) const {
  if (packed_) return;
  layer.pack_forward(first_, 0);
  if (split_ < layer.gates) layer.pack_forward(second_, split_);
}

std::size_t forward_pack_size(const sdk::Call& call, std::uint32_t input, std::int64_t gates, std::int64_t split) {
  if (input != recurrent_weights) return 0;
  return call.inputs[input].dtype == TENON_DTYPE_F64 ? pack_size_of<double>(call, gates, split) : pack_size_of<float>(call, gates, split);
}

void forward_pack(const sdk::Call& call, std::int64_t gates, std::int64_t split, void* out_packed) {
  if (call.inputs[recurrent_weights].dtype == TENON_DTYPE_F64) {
    pack_all<double>(call, gates, split, out_packed);
  } else {
    pack_all<float>(call, gates, split, out_packed);
  }
}

template struct Recurrent<float>;
template struct Recurrent<double>;
template class ForwardPanels<float>;
template class ForwardPanels<double>;

}  // namespace tenon::openblas
