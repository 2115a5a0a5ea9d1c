// SPDX-License-Identifier: Apache-2.0
// recurrent.h - host code shared by rnn, gru and lstm: sizes, memory, and the matrix products of all steps and of one step. Kernels are in
// recurrent.cuh.
//
// Both directions of a layer are processed together: one product and one kernel per step, in which each direction has its own time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tenon/sdk/kernel.h>

#include "gemm/scratch_arena.h"
#include "recurrent/persistent.h"

namespace tenon::cuda {

/// The positions of one step. Passed to kernels by value.
struct Step {
  std::int64_t index;      ///< 0 is the first step of each direction
  std::int64_t time[2];    ///< per direction: the time in x and y
  std::int64_t before[2];  ///< per direction: the time of the previous step; invalid for step 0
  std::int64_t batch, units, directions, elements;
};

/// One layer: x (T, B, I), w (D, G H, I), r (D, G H, H), b (D, 2 G H) or absent, operands `first` to `first` + 3 of the call. A matrix over
/// all times has T B rows, one of a step has B.
struct Recurrent {
  const sdk::Call& call;
  std::uint32_t first;
  std::int64_t steps, batch, features, directions, units, gates;
  std::uint32_t direction;

  Recurrent(const sdk::Call& a_call, std::uint32_t first_operand, std::int64_t gate_count);

  std::int64_t rows() const { return steps * batch; }
  /// Columns of all gates of one direction; of all directions.
  std::int64_t columns() const { return gates * units; }
  std::int64_t all_columns() const { return directions * gates * units; }
  std::int64_t state_elements() const { return directions * batch * units; }
  /// True if direction d reads x backwards.
  bool reverse(std::int64_t d) const { return direction == TENON_DIRECTION_REVERSE || d == 1; }
  Step step(std::int64_t index) const;

  /// The kernel for all steps with `vectors` vectors of each row in shared memory, of which a step exchanges some `exchanges` times, if
  /// there is one and the options of the device allow it.
  PersistentPlan persistent_plan(int vectors, int exchanges, bool gradient) const;

  /// Workspace bytes of the largest product of a layer, or of its gradient.
  std::size_t forward_workspace() const;
  std::size_t backward_workspace() const;

  /// sums (T B, D G H) = x w'
  void input_product(void* sums, void* workspace) const;
  /// out (D, B, n H) = h r' for the n gates from `begin` on, h (D, B, H).
  void state_product(const void* h, std::int64_t begin, std::int64_t n, void* out, void* workspace) const;
  /// dh (D, B, H) = d r, or dh + d r, for the n gates from `begin` on. d is the gradient of a step's gates, (D, B, G H).
  void state_gradient(const void* d, std::int64_t begin, std::int64_t n, bool adds, void* dh, void* workspace) const;
  /// dx (result 0) and dw (result 1) from d_gates (T B, D G H), the gradients of the inputs' contribution to the gates.
  void input_gradients(const void* d_gates, void* workspace) const;
  /// dr (result 2) of the n gates from `begin` on in direction d: their columns of d_gates (T B, D G H) times states (T B, H), whose rows
  /// are `row_step` apart, in the order of x.
  void recurrent_gradient(const void* d_gates, std::int64_t d, std::int64_t begin, std::int64_t n, const void* states,
                          std::int64_t row_step, void* workspace) const;

 private:
  struct Factor {
    const void* data;
    sdk::MatrixView view;
    std::int64_t of_direction = 0;  ///< stride between directions
  };
  /// y = a b, or y + a b; for each direction, or once.
  void multiply(const Factor& a, const Factor& b, void* y, bool adds, bool each_direction, void* workspace) const;
  /// Element i of an operand of the layer's dtype.
  template <class Void>
  Void* at(Void* data, std::int64_t i) const {
    using Byte = std::conditional_t<std::is_const_v<Void>, const char, char>;
    return static_cast<Byte*>(data) + i * sdk::size_of(call.inputs[first].dtype);
  }
  const void* weights() const { return call.inputs[first + 1].data; }
  const void* recurrent_weights() const { return call.inputs[first + 2].data; }
};

}  // namespace tenon::cuda
