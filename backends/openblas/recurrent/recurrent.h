// SPDX-License-Identifier: Apache-2.0
// recurrent.h - what rnn, gru and lstm share: sizes, working memory, the products, and the loop over the steps. A layer derives from
// ForwardLayer and its gradient from BackwardLayer; each adds its elementwise part of a step, for which recurrent_cells.h has the vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <type_traits>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/scratch_arena.h>

#include "gemm/panels.h"
#include "gemm/product_types.h"
#include "gemm/products.h"

namespace tenon::openblas {

/// A part of one step of one direction: rows of the batch, and columns of the phase's result.
struct StepPart {
  std::int64_t direction, step;  ///< step 0 is the first one in the order of this direction
  std::int64_t row, rows;
  std::int64_t column, columns;
};

/// A part of a step, the same in each step. A phase reads results of earlier phases and steps for the same rows.
struct Phase {
  std::int64_t columns;                          ///< of its result
  std::function<void(const StepPart&)> compute;  ///< captures at most two words, so that it needs no memory
};

/// The rows of a part in an operand. NULL: all are 0.
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t stride = 0;

  /// The same rows from column `first` on.
  Rows from_column(std::int64_t first) const { return {data == nullptr ? nullptr : data + first, stride}; }
  operator Rows<const T>() const requires(!std::is_const_v<T>) { return {data, stride}; }
};

/// Recurrent weights as panels, consecutively for each direction.
template <class T>
struct RecurrentPanels {
  std::int64_t first_row;  ///< of each direction's rows of r
  std::int64_t k, columns;
  std::int64_t inner_step, column_step;
  T* data;
};

/// One layer: x (T, B, I), w (D, G H, I), r (D, G H, H), b (D, 2 G H) and h0 (D, B, H) or absent, operands `first` to `first` + 4 of the
/// call.
template <class T>
struct Recurrent {
  const sdk::Call& call;
  std::int64_t steps, batch, features, directions, units, gates;
  std::uint32_t direction;
  const T *x, *w, *r, *b, *h0;

  Recurrent(const sdk::Call& a_call, std::uint32_t first, std::int64_t gate_count);

  /// Columns of all gates of one direction; all_columns(): of all directions.
  std::int64_t columns() const { return gates * units; }
  std::int64_t all_columns() const { return directions * gates * units; }
  std::int64_t rows() const { return steps * batch; }
  std::int64_t state_elements() const { return directions * batch * units; }
  /// The time index in x and y of step s of direction d.
  std::int64_t time(std::int64_t d, std::int64_t s) const { return direction == TENON_DIRECTION_REVERSE || d == 1 ? steps - 1 - s : s; }

  const T* input_or_null(std::uint32_t i) const { return call.has_input(i) ? call.input<T>(i) : nullptr; }
  T* output_or_scratch(std::uint32_t i, std::int64_t count, sdk::ScratchArena& arena) const {
    return call.has_output(i) ? call.output<T>(i) : arena.allocate<T>(count);
  }

  /// The rows of a part in a state (D, B, H), in a sequence (T, D, B, H) or in gates (T, B, D, count H).
  template <class P>
  Rows<P> in_state(P* state, const StepPart& part) const {
    return in(state, part.direction * batch + part.row, units);
  }
  template <class P>
  Rows<P> in_sequence(P* sequence, const StepPart& part) const {
    return in(sequence, (time(part.direction, part.step) * directions + part.direction) * batch + part.row, units);
  }
  template <class P>
  Rows<P> in_gates(P* all, const StepPart& part, std::int64_t count) const {
    const Rows<P> rows = in(all, (time(part.direction, part.step) * batch + part.row) * directions + part.direction, count * units);
    return {rows.data, directions * count * units};
  }
  /// The rows in a sequence at the previous step; at the first step, those in `first`.
  Rows<const T> before(const T* sequence, const T* first, StepPart part) const {
    if (part.step == 0) return in_state(first, part);
    --part.step;
    return in_sequence(sequence, part);
  }

  /// Panels of gates [begin, end), to be packed: for h r' a matrix (H, (end - begin) H), for d r a matrix ((end - begin) H, H).
  RecurrentPanels<T> forward_panels(std::int64_t begin, std::int64_t end, sdk::ScratchArena& arena) const;
  RecurrentPanels<T> backward_panels(std::int64_t begin, std::int64_t end, sdk::ScratchArena& arena) const;
  void pack(const RecurrentPanels<T>& panels) const;
  /// y = a panels + residual + bias for a part whose columns are those of the panels; residual may be y. With bf16, y is f32, residual is y
  /// or absent, and there is no bias.
  void multiply(const StepPart& part, Rows<const T> a, const RecurrentPanels<T>& panels, Rows<SumOf<T>> y,
                Rows<const SumOf<T>> residual = {}, const SumOf<T>* bias = nullptr) const;

  /// Computes all phases of all steps in order, from the last step to the first if `backward`. Rows are divided among the threads, each of
  /// which runs through all steps independently; if there are too few rows, columns are divided instead, phase by phase.
  void for_each_step(bool backward, std::initializer_list<Phase> phases) const;

 private:
  template <class P>
  static Rows<P> in(P* data, std::int64_t row, std::int64_t stride) {
    return {data == nullptr ? nullptr : data + row * stride, stride};
  }
};

/// The states of a layer after each step: all of them, in a result (T, D, B, H), or the latest two, because threads read the previous one.
template <class T>
class States {
 public:
  States(const Recurrent<T>& layer, std::uint32_t result, const T* first, sdk::ScratchArena& arena)
      : layer_(layer),
        is_kept_(layer.call.has_output(result)),
        data_(layer.output_or_scratch(result, 2 * layer.state_elements(), arena)),
        first_(first) {}
  Rows<T> after(const StepPart& part) const {
    return is_kept_ ? layer_.in_sequence(data_, part) : layer_.in_state(data_ + part.step % 2 * layer_.state_elements(), part);
  }
  Rows<const T> before(StepPart part) const {
    if (part.step == 0) return layer_.in_state(first_, part);
    --part.step;
    return after(part);
  }
  /// Copies the states after the last step to a result (D, B, H), if that is present.
  void copy_last_to(std::uint32_t result) const;

 private:
  const Recurrent<T>& layer_;
  bool is_kept_;
  T* data_;
  const T* first_;  ///< the state before the first step; NULL: 0
};

/// The weights of a layer as panels: those of gates [0, split), and of the others. If r is a constant or a parameter, they are packed ahead
/// of time, else at each call.
template <class T>
struct ForwardPanels {
  RecurrentPanels<T> first, second;
  std::size_t bytes;
  bool packed_ahead;

  /// `arena` is that of the call, or only has memory for the panels.
  ForwardPanels(const Recurrent<T>& layer, std::int64_t split, sdk::ScratchArena& arena);
};

/// A layer with its working memory. Results: y (T, D, B, H), y_h (D, B, H), and others of the layer; each may be absent. With bf16, states
/// are rounded at each step, as the products read them; sums are f32.
template <class T>
struct ForwardLayer : Recurrent<T> {
  ForwardPanels<T> panels;           ///< the first blocks in the arena, so that a layer can pack them ahead of time
  std::int64_t split, summed_gates;  ///< gates [0, summed_gates) are sums of the terms in x and in h, so that their biases are added
  T* input_panels;                   ///< of bf16: w (D G H, I) as panels; NULL: packed ahead
  SumOf<T>*bias, *sums;              ///< (D, G H); (T, B, D, G H): the terms in x with their bias, to which those in h are added
  States<T> h;

  /// The result `kept_sums`, if present, holds the sums, unless it has another type.
  ForwardLayer(const sdk::Call& a_call, sdk::ScratchArena& arena, std::int64_t gate_count, std::int64_t split_at,
               std::uint32_t kept_sums = TENON_NO_INDEX);
  ForwardLayer(const ForwardLayer&) = delete;
  ForwardLayer& operator=(const ForwardLayer&) = delete;

  Rows<SumOf<T>> sums_at(const StepPart& part) const { return this->in_gates(sums, part, this->gates); }
  /// sums += h r' for gates [0, split)
  Phase state_product() const;
  /// Computes sums = x w' + bias, then the steps, then y_h.
  void run_steps(std::initializer_list<Phase> phases) const;
  void pack_panels() const;

 private:
  void input_product() const;
};

/// The gradient of a layer with its working memory. Operands: dy and dy_h, 0 if absent, and those of the layer from `first` on. Results:
/// dx, dw, dr, and db and dh0, which may be absent.
template <class T>
struct BackwardLayer : Recurrent<T> {
  RecurrentPanels<T> panels, other_panels;  ///< of gates [0, split) and of the others
  std::int64_t split;
  const T *dy, *dy_h, *y;
  T *d_gates, *d_state_gates;  ///< (T, B, D, G H): gradients of the gates' terms in x and in h, which may be the same
  T* dh;                       ///< (D, B, H): that of the state before the latest step
  T *states, *ones, *sums, *state_sums;

  /// `own_state_gates`: the gradients of the terms in h differ from those of the terms in x.
  BackwardLayer(const sdk::Call& a_call, sdk::ScratchArena& arena, std::uint32_t first, std::uint32_t y_operand, std::int64_t gate_count,
                std::int64_t split_at, bool own_state_gates = false);
  BackwardLayer(const BackwardLayer&) = delete;
  BackwardLayer& operator=(const BackwardLayer&) = delete;

  Rows<T> d_gates_of(const StepPart& part) const { return this->in_gates(d_gates, part, this->gates); }
  Rows<T> d_state_gates_of(const StepPart& part) const { return this->in_gates(d_state_gates, part, this->gates); }
  Rows<const T> state_before(const StepPart& part) const { return this->before(y, this->h0, part); }
  /// The gradient of a state after a step: `last` after the last step, else what the following step wrote to `carried`.
  Rows<const T> after(const T* last, const T* carried, const StepPart& part) const {
    return this->in_state(part.step == this->steps - 1 ? last : carried, part);
  }
  /// dh = d r, or dh + d r, for gates [0, split) with d their gradients.
  Phase state_gradient(bool adds) const;
  /// Computes the steps from the last to the first, then dx, dw, db, and dr of gates [0, split).
  void run_steps(std::initializer_list<Phase> phases) const;
  /// dr of gates [begin, end) of direction d: their columns of d_gates (T B, D G H) times states (T B, H), whose row stride is `stride`, in
  /// the order of x.
  void recurrent_gradient(const T* gradients, std::int64_t d, std::int64_t begin, std::int64_t end, const T* factors,
                          std::int64_t stride) const;

 private:
  void input_gradients() const;
  void bias_gradient() const;
  void gather_states(std::int64_t d) const;
};

/// The weights w (D, G H, I) of bf16 as panels of the matrix (I, D G H).
std::size_t input_panels_bytes(const sdk::Call& call);
void pack_input_weights(const sdk::Call& call, sdk::BFloat16* out_panels);

/// Runs a layer or its gradient.
template <class Layer>
void run_layer(const sdk::Call& call) {
  sdk::ScratchArena arena(call.scratch);
  Layer(call, arena).run();
}

/// Traits::scratch of a gradient, with the dtype of operand x.
template <template <class> class Layer, std::uint32_t x>
std::size_t scratch_of_layer(const sdk::Call& call) {
  sdk::ScratchArena arena(nullptr);
  if (call.inputs[x].dtype == TENON_DTYPE_F64) {
    Layer<double>(call, arena);
  } else {
    Layer<float>(call, arena);
  }
  return arena.required_bytes();
}

template <template <class> class Layer, std::uint32_t x>
inline constexpr sdk::Traits gradient_traits{.scratch = scratch_of_layer<Layer, x>};

namespace recurrence {

constexpr std::uint32_t input_weights = 1, packed_operand = 2;  // w, of bf16 only, and r

template <template <class> class Layer>
std::size_t scratch(const sdk::Call& call) {
  return with_product_type(call.inputs[0].dtype, [&]<class T>(T) {
    sdk::ScratchArena arena(nullptr);
    Layer<T>(call, arena);
    return arena.required_bytes();
  });
}

/// Bytes of the panels of a layer, which are packed into `out_packed` unless that is NULL.
template <class Layer>
std::size_t pack_layer(const sdk::Call& call, void* out_packed) {
  sdk::ScratchArena arena(out_packed);
  sdk::Call unpacked = call;
  unpacked.packed = nullptr;
  const Layer layer(unpacked, arena);
  if (out_packed != nullptr) layer.pack_panels();
  return layer.panels.bytes;
}

template <template <class> class Layer>
std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
  return with_product_type(call.inputs[0].dtype, [&]<class T>(T) -> std::size_t {
    if (input == packed_operand) return pack_layer<Layer<T>>(call, nullptr);
    return input == input_weights && std::is_same_v<T, sdk::BFloat16> ? input_panels_bytes(call) : 0;
  });
}

template <template <class> class Layer>
void pack(const sdk::Call& call, std::uint32_t input, void* out_packed) {
  with_product_type(call.inputs[0].dtype, [&]<class T>(T) {
    if (input == packed_operand) return static_cast<void>(pack_layer<Layer<T>>(call, out_packed));
    if constexpr (std::is_same_v<T, sdk::BFloat16>) pack_input_weights(call, static_cast<T*>(out_packed));
  });
}

}  // namespace recurrence

template <template <class> class Layer>
inline constexpr sdk::Traits layer_traits{
    .scratch = recurrence::scratch<Layer>,
    .pack_size = recurrence::pack_size<Layer>,
    .pack = recurrence::pack<Layer>,
    .pack_form = [](const sdk::Call&, std::uint32_t) { return std::string("panels"); },  // of the gates, which the op says
};

}  // namespace tenon::openblas
