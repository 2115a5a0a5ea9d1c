// SPDX-License-Identifier: Apache-2.0
// The plain recurrent layer and its gradient through all steps.
#include "recurrent.h"

namespace tenon::reference {
namespace {

/// h_t = f(x_t w' + h_(t-1) r' + bw + br), f tanh or max(0, .)
///
/// Shapes      x (T, B, I), w (D, H, I), r (D, H, H), b (D, 2 H) and h0 (D, B, H) or absent; y (T, D, B, H), y_h (D, B, H), each may be
///             absent.
/// Dtypes      f32, f64; everything up to the final rounding is f64, the state too.
/// Attributes  direction, activation.
template <class T>
void rnn(const sdk::Call& call) {
  const Recurrent<T> layer(call, 0, 1);
  const bool rectifies = call.attr<tenon_attributes_recurrent>().activation == TENON_RNN_RELU;
  double* h = static_cast<double*>(call.scratch);
  double* next = h + layer.units;
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    for (std::int64_t n = 0; n < layer.batch; ++n) {
      for (std::int64_t u = 0; u < layer.units; ++u) h[u] = element_or_zero<T>(call, 4, layer.in_state(d, n, u));
      for (std::int64_t s = 0; s < layer.steps; ++s) {
        const std::int64_t t = layer.time(d, s);
        for (std::int64_t u = 0; u < layer.units; ++u) {
          const double sum = layer.from_input(t, n, d, 0, u) + layer.from_state(h, d, 0, u);
          next[u] = rectifies ? (sum < 0 ? 0.0 : sum) : std::tanh(sum);
          put<T>(call, 0, layer.in_sequence(t, d, n, u), next[u]);
        }
        std::swap(h, next);
      }
      for (std::int64_t u = 0; u < layer.units; ++u) put<T>(call, 1, layer.in_state(d, n, u), h[u]);
    }
  }
}
std::size_t scratch(const sdk::Call& call) {
  return static_cast<std::size_t>(2 * call.inputs[2].shape[2]) * sizeof(double);
}

/// From the last step to the first: da = f'(y_t) (dy_t + dh), dh = da r; then dx = da w, dw = da' x, dr = da' h, db = sum of da.
///
/// Shapes  as rnn; dy, dy_h may be absent (0), db and dh0 too.
template <class T>
void rnn_grad(const sdk::Call& call) {
  const Recurrent<T> layer(call, 2, 1);
  const bool rectifies = call.attr<tenon_attributes_recurrent>().activation == TENON_RNN_RELU;
  const T* h0 = call.has_input(6) ? call.input<T>(6) : nullptr;
  const T* y = call.input<T>(7);
  double* const d_gates = static_cast<double*>(call.scratch);
  double* const dh = d_gates + layer.all_gates();
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    for (std::int64_t n = 0; n < layer.batch; ++n) {
      for (std::int64_t u = 0; u < layer.units; ++u) dh[u] = element_or_zero<T>(call, 1, layer.in_state(d, n, u));
      for (std::int64_t s = layer.steps; s-- > 0;) {
        const std::int64_t t = layer.time(d, s);
        double* const da = d_gates + layer.in_gates(t, n, d, 0, 0, 1);
        for (std::int64_t u = 0; u < layer.units; ++u) {
          const std::int64_t at = layer.in_sequence(t, d, n, u);
          const double slope = rectifies ? (y[at] > 0 ? 1.0 : 0.0) : (1 - double{y[at]}) * (1 + double{y[at]});
          da[u] = slope * (element_or_zero<T>(call, 0, at) + dh[u]);
        }
        for (std::int64_t u = 0; u < layer.units; ++u) dh[u] = layer.to_state(da, d, 0, 1, u);
      }
      for (std::int64_t u = 0; u < layer.units; ++u) put<T>(call, 4, layer.in_state(d, n, u), dh[u]);
    }
  }
  layer.input_gradients(call, d_gates);
  layer.bias_gradient(call, d_gates, 1);
  layer.recurrent_gradient(call, d_gates, 0, 1,
                           [&](std::int64_t d, std::int64_t s, std::int64_t n, std::int64_t u) { return layer.before(y, h0, d, s, n, u); });
}
std::size_t scratch_of_grad(const sdk::Call& call) {
  const std::int64_t units = call.inputs[4].shape[2];
  return static_cast<std::size_t>(call.inputs[7].count + units) * sizeof(double);
}

}  // namespace
TENON_KERNEL_WITH(rnn, (sdk::Traits{.scratch = scratch}), float, double)
TENON_KERNEL_WITH(rnn_grad, (sdk::Traits{.scratch = scratch_of_grad}), float, double)
}  // namespace tenon::reference
