// SPDX-License-Identifier: Apache-2.0
// recurrent.h - shared by rnn, gru and lstm: sizes, the order of the steps, sums of products, and common parts of the gradients.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>

#include <tenon/sdk/kernel.h>

namespace tenon::reference {

/// One layer: x (T, B, I), w (D, G H, I), r (D, G H, H), b (D, 2 G H) or absent, operands `first` to `first` + 3 of the call.
template <class T>
struct Recurrent {
  std::int64_t steps, batch, features, directions, units, gates;
  std::uint32_t direction;
  const T *x, *w, *r, *b;

  Recurrent(const sdk::Call& call, std::uint32_t first, std::int64_t gate_count)
      : steps(call.inputs[first].shape[0]),
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

  /// The time of step s of direction d in x and y.
  std::int64_t time(std::int64_t d, std::int64_t s) const { return direction == TENON_DIRECTION_REVERSE || d == 1 ? steps - 1 - s : s; }
  /// Element u of a (T, D, B, H).
  std::int64_t in_sequence(std::int64_t t, std::int64_t d, std::int64_t n, std::int64_t u) const {
    return ((t * directions + d) * batch + n) * units + u;
  }
  /// Element u of a (D, B, H).
  std::int64_t in_state(std::int64_t d, std::int64_t n, std::int64_t u) const { return (d * batch + n) * units + u; }
  /// Unit u of gate g of a (T, B, D, count H).
  std::int64_t in_gates(std::int64_t t, std::int64_t n, std::int64_t d, std::int64_t g, std::int64_t u, std::int64_t count) const {
    return (((t * batch + n) * directions + d) * count + g) * units + u;
  }

  /// x_t w' + bw of unit u of gate g.
  double from_input(std::int64_t t, std::int64_t n, std::int64_t d, std::int64_t g, std::int64_t u) const {
    const T* row = w + ((d * gates + g) * units + u) * features;
    const T* step = x + (t * batch + n) * features;
    double sum = b == nullptr ? 0.0 : double{b[(d * 2 * gates + g) * units + u]};
    for (std::int64_t i = 0; i < features; ++i) sum += double{step[i]} * double{row[i]};
    return sum;
  }
  /// h r' + br of unit u of gate g.
  double from_state(const double* h, std::int64_t d, std::int64_t g, std::int64_t u) const {
    const T* row = r + ((d * gates + g) * units + u) * units;
    double sum = b == nullptr ? 0.0 : double{b[((d * 2 + 1) * gates + g) * units + u]};
    for (std::int64_t i = 0; i < units; ++i) sum += h[i] * double{row[i]};
    return sum;
  }
  /// dh of unit u through gates [begin, end), whose gradients (G, H) are `d_gates`.
  double to_state(const double* d_gates, std::int64_t d, std::int64_t begin, std::int64_t end, std::int64_t u) const {
    double sum = 0;
    for (std::int64_t row = begin * units; row < end * units; ++row) sum += d_gates[row] * double{r[(d * gates * units + row) * units + u]};
    return sum;
  }
  /// The state before step s: the y of the previous step, h0 or 0.
  double before(const T* y, const T* h0, std::int64_t d, std::int64_t s, std::int64_t n, std::int64_t u) const {
    if (s > 0) return double{y[in_sequence(time(d, s - 1), d, n, u)]};
    return h0 == nullptr ? 0.0 : double{h0[in_state(d, n, u)]};
  }
  std::int64_t all_gates() const { return steps * batch * directions * gates * units; }

  /// dx, dw and the first half of db (results 0, 1, 3) from the gradients (T, B, D, G H) of x's contributions to the gates.
  void input_gradients(const sdk::Call& call, const double* d_gates) const {
    const std::int64_t columns = gates * units, rows = steps * batch;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < features; ++i) {
        double sum = 0;
        for (std::int64_t k = 0; k < directions * columns; ++k) {
          sum += d_gates[row * directions * columns + k] * double{w[k * features + i]};
        }
        call.output<T>(0)[row * features + i] = static_cast<T>(sum);
      }
    }
    for (std::int64_t k = 0; k < directions * columns; ++k) {
      for (std::int64_t i = 0; i < features; ++i) {
        double sum = 0;
        for (std::int64_t row = 0; row < rows; ++row) sum += d_gates[row * directions * columns + k] * double{x[row * features + i]};
        call.output<T>(1)[k * features + i] = static_cast<T>(sum);
      }
    }
    bias_gradient(call, d_gates, 0);
  }
  /// Half 0 (bw) or 1 (br) of db.
  void bias_gradient(const sdk::Call& call, const double* d_gates, std::int64_t half) const {
    if (!call.has_output(3)) return;
    const std::int64_t columns = gates * units, rows = steps * batch;
    for (std::int64_t d = 0; d < directions; ++d) {
      for (std::int64_t k = 0; k < columns; ++k) {
        double sum = 0;
        for (std::int64_t row = 0; row < rows; ++row) sum += d_gates[(row * directions + d) * columns + k];
        call.output<T>(3)[(d * 2 + half) * columns + k] = static_cast<T>(sum);
      }
    }
  }
  /// dr (result 2) for the gates of one product, [begin, end): state(d, s, n, u) is the factor of r at step s.
  template <class State>
  void recurrent_gradient(const sdk::Call& call, const double* d_gates, std::int64_t begin, std::int64_t end, const State& state) const {
    for (std::int64_t d = 0; d < directions; ++d) {
      for (std::int64_t k = begin * units; k < end * units; ++k) {
        for (std::int64_t u = 0; u < units; ++u) {
          double sum = 0;
          for (std::int64_t s = 0; s < steps; ++s) {
            for (std::int64_t n = 0; n < batch; ++n) {
              sum += d_gates[((time(d, s) * batch + n) * directions + d) * gates * units + k] * state(d, s, n, u);
            }
          }
          call.output<T>(2)[(d * gates * units + k) * units + u] = static_cast<T>(sum);
        }
      }
    }
  }
};

/// Element i of an operand; 0 if it is absent.
template <class T>
double element_or_zero(const sdk::Call& call, std::uint32_t operand, std::int64_t i) {
  return call.has_input(operand) ? double{call.input<T>(operand)[i]} : 0.0;
}
/// Writes element i of a result, unless it is absent.
template <class T>
void put(const sdk::Call& call, std::uint32_t result, std::int64_t i, double value) {
  if (call.has_output(result)) call.output<T>(result)[i] = static_cast<T>(value);
}

inline double sigmoid_of(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

}  // namespace tenon::reference
