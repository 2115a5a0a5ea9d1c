// SPDX-License-Identifier: Apache-2.0
// The long short-term memory and its gradient through all steps.
#include "recurrent.h"

namespace tenon::reference {
namespace {

enum Gate : std::int64_t { in_gate, out_gate, forget_gate, candidate };

/// i, o, f = s(x w' + h r' + b), g = tanh(x w' + h r' + b), c_t = f c_(t-1) + i g, h_t = o tanh(c_t)
///
/// Shapes      x (T, B, I), w (D, 4 H, I), r (D, 4 H, H), b (D, 8 H), h0 and c0 (D, B, H) or absent; y and cells (T, D, B, H), y_h and y_c
///             (D, B, H), gates (T, B, D, 4 H) = (i, o, f, g), each may be absent.
/// Dtypes      f32, f64; everything up to the final rounding is f64, the states too.
/// Attributes  direction.
template <class T>
void lstm(const sdk::Call& call) {
  const Recurrent<T> layer(call, 0, 4);
  double* h = static_cast<double*>(call.scratch);
  double* next = h + layer.units;
  double* const c = next + layer.units;
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    for (std::int64_t n = 0; n < layer.batch; ++n) {
      for (std::int64_t u = 0; u < layer.units; ++u) {
        h[u] = element_or_zero<T>(call, 4, layer.in_state(d, n, u));
        c[u] = element_or_zero<T>(call, 5, layer.in_state(d, n, u));
      }
      for (std::int64_t s = 0; s < layer.steps; ++s) {
        const std::int64_t t = layer.time(d, s);
        for (std::int64_t u = 0; u < layer.units; ++u) {
          double gate[4];
          for (std::int64_t g = 0; g < 4; ++g) {
            const double sum = layer.from_input(t, n, d, g, u) + layer.from_state(h, d, g, u);
            gate[g] = g == candidate ? std::tanh(sum) : sigmoid_of(sum);
            put<T>(call, 3, layer.in_gates(t, n, d, g, u, 4), gate[g]);
          }
          c[u] = gate[forget_gate] * c[u] + gate[in_gate] * gate[candidate];
          next[u] = gate[out_gate] * std::tanh(c[u]);
          put<T>(call, 0, layer.in_sequence(t, d, n, u), next[u]);
          put<T>(call, 4, layer.in_sequence(t, d, n, u), c[u]);
        }
        std::swap(h, next);
      }
      for (std::int64_t u = 0; u < layer.units; ++u) {
        put<T>(call, 1, layer.in_state(d, n, u), h[u]);
        put<T>(call, 2, layer.in_state(d, n, u), c[u]);
      }
    }
  }
}
std::size_t scratch(const sdk::Call& call) {
  return static_cast<std::size_t>(3 * call.inputs[2].shape[2]) * sizeof(double);
}

/// From the last step to the first: dc += dh o (1 - tanh(c)^2), do = dh tanh(c) o (1 - o), di = dc g i (1 - i), df = dc c_(t-1) f (1 - f),
/// dg = dc i (1 - g^2); the previous step gets dc f and, with dG = (di, do, df, dg), dh = dG r. dx = dG w, dw = dG' x, dr = dG' h, db = sum
/// dG.
///
/// Shapes  as lstm; dy, dy_h, dy_c may be absent (0), db, dh0 and dc0 too.
template <class T>
void lstm_grad(const sdk::Call& call) {
  const Recurrent<T> layer(call, 3, 4);
  const std::int64_t units = layer.units;
  const T* h0 = call.has_input(7) ? call.input<T>(7) : nullptr;
  const T* c0 = call.has_input(8) ? call.input<T>(8) : nullptr;
  const T* y = call.input<T>(9);
  const T* gates = call.input<T>(10);
  const T* cells = call.input<T>(11);
  double* const d_gates = static_cast<double*>(call.scratch);
  double* const dh = d_gates + layer.all_gates();
  double* const dc = dh + units;
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    for (std::int64_t n = 0; n < layer.batch; ++n) {
      for (std::int64_t u = 0; u < units; ++u) {
        dh[u] = element_or_zero<T>(call, 1, layer.in_state(d, n, u));
        dc[u] = element_or_zero<T>(call, 2, layer.in_state(d, n, u));
      }
      for (std::int64_t s = layer.steps; s-- > 0;) {
        const std::int64_t t = layer.time(d, s);
        double* const da = d_gates + layer.in_gates(t, n, d, 0, 0, 4);
        for (std::int64_t u = 0; u < units; ++u) {
          const auto gate = [&](Gate g) { return double{gates[layer.in_gates(t, n, d, g, u, 4)]}; };
          const double i = gate(in_gate), o = gate(out_gate), f = gate(forget_gate), g = gate(candidate);
          const std::int64_t at = layer.in_sequence(t, d, n, u);
          const double squashed = std::tanh(double{cells[at]});
          const double own = dh[u] + element_or_zero<T>(call, 0, at);
          const double of_cell = dc[u] + own * o * (1 - squashed) * (1 + squashed);
          da[in_gate * units + u] = of_cell * g * i * (1 - i);
          da[out_gate * units + u] = own * squashed * o * (1 - o);
          da[forget_gate * units + u] = of_cell * layer.before(cells, c0, d, s, n, u) * f * (1 - f);
          da[candidate * units + u] = of_cell * i * (1 - g) * (1 + g);
          dc[u] = of_cell * f;
        }
        for (std::int64_t u = 0; u < units; ++u) dh[u] = layer.to_state(da, d, 0, 4, u);
      }
      for (std::int64_t u = 0; u < units; ++u) {
        put<T>(call, 4, layer.in_state(d, n, u), dh[u]);
        put<T>(call, 5, layer.in_state(d, n, u), dc[u]);
      }
    }
  }
  layer.input_gradients(call, d_gates);
  layer.bias_gradient(call, d_gates, 1);
  layer.recurrent_gradient(call, d_gates, 0, 4,
                           [&](std::int64_t d, std::int64_t s, std::int64_t n, std::int64_t u) { return layer.before(y, h0, d, s, n, u); });
}
std::size_t scratch_of_grad(const sdk::Call& call) {
  const std::int64_t units = call.inputs[5].shape[2];
  return static_cast<std::size_t>(call.inputs[10].count + 2 * units) * sizeof(double);
}

}  // namespace
TENON_KERNEL_WITH(lstm, (sdk::Traits{.scratch = scratch}), float, double)
TENON_KERNEL_WITH(lstm_grad, (sdk::Traits{.scratch = scratch_of_grad}), float, double)
}  // namespace tenon::reference
