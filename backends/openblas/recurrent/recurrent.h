// SPDX-License-Identifier: Apache-2.0
// recurrent.h - the common parts of rnn, gru and lstm: sizes, the division of steps among threads, products with the recurrent weights as
// panels, and products over all steps at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/scratch_arena.h>

#include "gemm/panels.h"
#include "gemm/products.h"

namespace tenon::openblas {

/// A part of one step of one direction: rows of the batch, and columns of the phase's result.
struct StepPart {
  std::int64_t direction, step;  ///< step 0 is the first one in the order of this direction
  std::int64_t row, rows;
  std::int64_t column, columns;
};

/// A matrix of recurrent weights as panels, consecutively for each direction.
template <class T>
struct RecurrentPanels {
  std::int64_t k = 0, columns = 0;
  T* panels = nullptr;

  std::int64_t elements() const { return panel_elements<T>(k, columns); }
  const T* of(std::int64_t direction) const { return panels + direction * elements(); }
};

/// One layer: x (T, B, I), w (D, G H, I), r (D, G H, H), b (D, 2 G H) or absent, operands `first` to `first` + 3 of the call.
template <class T>
struct Recurrent {
  const sdk::Call& call;
  std::int64_t steps, batch, features, directions, units, gates;
  std::uint32_t direction;
  const T *x, *w, *r, *b;

  Recurrent(const sdk::Call& a_call, std::uint32_t first, std::int64_t gate_count);

  /// Columns of all gates of one direction; all_columns(): of all directions.
  std::int64_t columns() const { return gates * units; }
  std::int64_t all_columns() const { return directions * gates * units; }
  std::int64_t rows() const { return steps * batch; }
  std::int64_t state_elements() const { return directions * batch * units; }
  /// The time index in x and y of step s of direction d.
  std::int64_t time(std::int64_t d, std::int64_t s) const { return direction == TENON_DIRECTION_REVERSE || d == 1 ? steps - 1 - s : s; }
  /// The rows of direction d at step s in a sequence (T, D, B, H).
  template <class P>
  P* states(P* sequence, std::int64_t d, std::int64_t s) const {
    return sequence + (time(d, s) * directions + d) * batch * units;
  }
  template <class P>
  P* state(P* of_all, std::int64_t d) const {
    return of_all + d * batch * units;
  }
  /// The rows of direction d at step s in a sequence (T, B, D, count H); the row stride is row_step(count).
  template <class P>
  P* lines(P* sequence, std::int64_t d, std::int64_t s, std::int64_t count) const {
    return sequence + (time(d, s) * batch * directions + d) * count * units;
  }
  std::int64_t row_step(std::int64_t count) const { return directions * count * units; }

  /// Panels for h r' of gates [begin, end): a matrix (H, (end - begin) H).
  RecurrentPanels<T> allocate_forward_panels(sdk::ScratchArena& scratch, std::int64_t begin, std::int64_t end) const;
  /// Panels for d r of the same gates: a matrix ((end - begin) H, H).
  RecurrentPanels<T> allocate_backward_panels(sdk::ScratchArena& scratch, std::int64_t begin, std::int64_t end) const;
  /// Packs the panels with the gates from `begin` on.
  void pack_forward(const RecurrentPanels<T>& panels, std::int64_t begin) const;
  void pack_backward(const RecurrentPanels<T>& panels, std::int64_t begin) const;

  /// out (T B, D G H) = x w' + bias, where bias (D, G H) may be NULL.
  void input_product(const T* bias, T* out) const;
  /// out (D, G H) = bw + br for the first `summed_gates` gates, bw for the others. b must not be NULL.
  void add_biases(std::int64_t summed_gates, T* out) const;

  /// Calls body(phase, part) for all phases of all steps in order, from the last step to the first if `backward`. Phase p computes
  /// phase_columns[p] columns; a phase reads results of earlier phases and steps for the same rows. Rows are divided among the threads,
  /// each of which runs through all steps independently; if there are too few rows, columns are divided instead, phase by phase.
  template <std::size_t phases, class Body>
  void run(bool backward, const std::int64_t (&phase_columns)[phases], const Body& body) const;

  /// dx (result 0) and dw (result 1) from d_gates (T B, D G H), the gradients of the gates' terms in x.
  void input_gradients(const T* d_gates) const;
  /// out (D, G H) = the sums of d_gates (T B, D G H) over its rows; `ones` has T B elements.
  void column_sums(const T* d_gates, T* ones, T* out) const;
  /// db (result 3), if requested, from the sums of the gradients of the gates' terms in x and in h.
  void bias_gradient(const T* of_input, const T* of_state) const;
  /// dr (result 2) of gates [begin, end) of direction d: their columns of d_gates (T B, D G H) times states (T B, H), whose row stride is
  /// `step`, in the order of x.
  void recurrent_gradient(const T* d_gates, std::int64_t d, std::int64_t begin, std::int64_t end, const T* states, std::int64_t step) const;
  /// The state before each step, (T B, H) in the order of x, from y and h0 (NULL: 0).
  void gather_states(const T* y, const T* h0, std::int64_t d, T* out) const;

  /// y = a panels + residual for a part whose columns are those of the panels; residual may be NULL, or y.
  void multiply(const StepPart& part, const T* a, std::int64_t a_step, const RecurrentPanels<T>& panels, T* y, std::int64_t y_step,
                const T* residual, const T* bias = nullptr) const;

 private:
  void pack(const RecurrentPanels<T>& panels, const T* from, std::int64_t inner_step, std::int64_t column_step) const;
};

/// The weights of a forward layer: gates [0, split) and the others. If r (operand 2) is a constant or a parameter, they are packed ahead of
/// time, else at each call.
template <class T>
class ForwardPanels {
 public:
  ForwardPanels(const Recurrent<T>& layer, std::int64_t split, sdk::ScratchArena& scratch);
  /// Packs the weights unless they were packed ahead.
  void prepare(const Recurrent<T>& layer) const;
  const RecurrentPanels<T>& first() const { return first_; }
  const RecurrentPanels<T>& second() const { return second_; }

 private:
  RecurrentPanels<T> first_, second_;
  std::int64_t split_;
  bool packed_;
};
/// Traits::pack_size and Traits::pack of a layer with `gates` gates.
std::size_t forward_pack_size(const sdk::Call& call, std::uint32_t input, std::int64_t gates, std::int64_t split);
void forward_pack(const sdk::Call& call, std::int64_t gates, std::int64_t split, void* out_packed);

namespace recurrence {

// Multiply-adds worth handing to a thread, about 15 us.
constexpr double smallest_task = 1e6;
// With fewer rows, a thread does too little work per read of the recurrent weights.
constexpr std::int64_t min_rows = 4;

/// How the work of one step is divided.
struct Tiling {
  std::int64_t row_blocks;  ///< of each direction
  bool by_columns;
};
/// The tiling affects only the speed: every element is computed in the same way.
Tiling tiling_of(const sdk::Host& host, std::int64_t directions, std::int64_t batch, double step_work);

}  // namespace recurrence

template <class T>
template <std::size_t phases, class Body>
void Recurrent<T>::run(bool backward, const std::int64_t (&phase_columns)[phases], const Body& body) const {
  const double row_work = static_cast<double>(columns()) * static_cast<double>(units);
  const recurrence::Tiling tiling = recurrence::tiling_of(call.host, directions, batch, row_work * static_cast<double>(batch));
  if (tiling.by_columns) {
    constexpr std::int64_t width = panel_width<T>;
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::int64_t s = backward ? steps - 1 - i : i;
      for (std::size_t p = 0; p < phases; ++p) {
        const std::int64_t blocks = (phase_columns[p] + width - 1) / width;
        call.host.parallel_for(directions * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
          while (begin < end) {
            const std::int64_t d = begin / blocks, first = begin % blocks;
            const std::int64_t last = std::min(blocks, first + end - begin);
            body(p, StepPart{d, s, 0, batch, first * width, std::min(last * width, phase_columns[p]) - first * width});
            begin += last - first;
          }
        });
      }
    }
    return;
  }
  const double task_work = row_work * static_cast<double>(steps) * static_cast<double>(batch) / static_cast<double>(tiling.row_blocks);
  const auto grain = static_cast<std::int64_t>(recurrence::smallest_task / std::max(task_work, 1.0));
  call.host.parallel_for(directions * tiling.row_blocks, std::max<std::int64_t>(grain, 1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t d = task / tiling.row_blocks, block = task % tiling.row_blocks;
      const std::int64_t row = batch * block / tiling.row_blocks, rows = batch * (block + 1) / tiling.row_blocks - row;
      for (std::int64_t i = 0; i < steps; ++i) {
        for (std::size_t p = 0; p < phases; ++p) {
          body(p, StepPart{d, backward ? steps - 1 - i : i, row, rows, 0, phase_columns[p]});
        }
      }
    }
  });
}

/// The bytes of scratch memory that `Plan<T>(call)` allocates, with T the dtype of operand x.
template <template <class> class Plan>
std::size_t scratch_of_plan(const sdk::Call& call, std::uint32_t x) {
  sdk::ScratchArena scratch(nullptr);
  if (call.inputs[x].dtype == TENON_DTYPE_F64) {
    Plan<double>(call, scratch);
  } else {
    Plan<float>(call, scratch);
  }
  return scratch.required_bytes();
}

}  // namespace tenon::openblas
