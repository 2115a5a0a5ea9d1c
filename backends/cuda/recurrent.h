// recurrent.h - what rnn, gru and lstm share on the host: sizes, memory, and the products of all steps at once and of one step. Kernels are
// in recurrent.cuh.
//
// Both directions of a layer take their steps together: one product, one kernel, where elements of direction d come from its own time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tenon/sdk/kernel.h>

#include "parts.h"

namespace tenon::cuda {

/// Where the elements of one step lie. Passed to kernels by value.
struct Step {
  std::int64_t number;     ///< 0 is the first one that each direction takes
  std::int64_t time[2];    ///< of each direction: where x and y have it
  std::int64_t before[2];  ///< the time of the step before; nothing is there for number 0
  std::int64_t batch, units, directions, elements;
};

/// One layer: x (T, B, I), w (D, G H, I), r (D, G H, H), b (D, 2 G H) or absent, operands `first` to `first` + 3 of the call. Rows of
/// something for each time are T B, those of a step B.
struct Recurrent {
  const sdk::Call& call;
  std::uint32_t first;
  std::int64_t steps, batch, features, directions, units, gates;
  std::uint32_t direction;

  Recurrent(const sdk::Call& a_call, std::uint32_t first_operand, std::int64_t gate_count);

  std::int64_t rows() const { return steps * batch; }
  /// Columns of all gates of one direction, and of all directions.
  std::int64_t columns() const { return gates * units; }
  std::int64_t all_columns() const { return directions * gates * units; }
  std::int64_t state_elements() const { return directions * batch * units; }
  /// True if direction d takes x from its end.
  bool reverse(std::int64_t d) const { return direction == TENON_DIRECTION_REVERSE || d == 1; }
  Step step(std::int64_t number) const;

  /// What the largest product of a layer, or of its gradient, wants.
  std::size_t forward_workspace() const;
  std::size_t backward_workspace() const;

  /// sums (T B, D G H) = x w'
  void input_product(void* sums, void* workspace) const;
  /// out (D, B, n H) = h r' for the n gates from `begin` on, h (D, B, H).
  void state_product(const void* h, std::int64_t begin, std::int64_t n, void* out, void* workspace) const;
  /// dh (D, B, H) = d r, or dh + d r, for the n gates from `begin` on. d is the gradient of a step's gates, (D, B, G H).
  void state_gradient(const void* d, std::int64_t begin, std::int64_t n, bool adds, void* dh, void* workspace) const;
  /// dx (result 0) and dw (result 1) from d_gates (T B, D G H), the gradients of what x gives to the gates.
  void input_gradients(const void* d_gates, void* workspace) const;
  /// dr (result 2) of the n gates from `begin` on in direction d: their columns of d_gates (T B, D G H), times states (T B, H), whose rows
  /// lie `row_step` apart, in the order of x.
  void recurrent_gradient(const void* d_gates, std::int64_t d, std::int64_t begin, std::int64_t n, const void* states,
                          std::int64_t row_step, void* workspace) const;

 private:
  struct Factor {
    const void* data;
    MatrixView view;
    std::int64_t of_direction = 0;  ///< from one direction to the next
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
