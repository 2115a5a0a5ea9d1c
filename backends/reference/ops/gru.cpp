// SPDX-License-Identifier: Apache-2.0
// The gated recurrent unit and its gradient through all steps.
#include "recurrent.h"

namespace tenon::reference {
namespace {

enum Gate : std::int64_t {
  z_gate,
  r_gate,
  candidate,
  seen
};  // `seen`: the candidate's view of the state; stored with the gates but not a gate

/// z, r = s(x w' + h r' + b), h~ = tanh(x wh' + bwh + q), h_t = (1 - z) h~ + z h_(t-1); q = (r h) rh' + brh, or r (h rh' + brh) with
/// linear_before_reset
///
/// Shapes      x (T, B, I), w (D, 3 H, I), r (D, 3 H, H), b (D, 6 H) and h0 (D, B, H) or absent; y (T, D, B, H), y_h (D, B, H), gates
///             (T, B, D, 4 H) = (z, r, h~, r h or h rh' + brh), each may be absent.
/// Dtypes      f32, f64; everything up to the final rounding is f64, the state too.
/// Attributes  direction, linear_before_reset.
template <class T>
void gru(const sdk::Call& call) {
  const Recurrent<T> layer(call, 0, 3);
  const bool reset_last = call.attr<tenon_attributes_recurrent>().linear_before_reset != 0;
  const std::int64_t units = layer.units;
  double* h = static_cast<double*>(call.scratch);
  double* next = h + units;
  double* const z = next + units;
  double* const r = z + units;
  double* const reset = r + units;
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    for (std::int64_t n = 0; n < layer.batch; ++n) {
      for (std::int64_t u = 0; u < units; ++u) h[u] = element_or_zero<T>(call, 4, layer.in_state(d, n, u));
      for (std::int64_t s = 0; s < layer.steps; ++s) {
        const std::int64_t t = layer.time(d, s);
        for (std::int64_t u = 0; u < units; ++u) {
          z[u] = sigmoid_of(layer.from_input(t, n, d, z_gate, u) + layer.from_state(h, d, z_gate, u));
          r[u] = sigmoid_of(layer.from_input(t, n, d, r_gate, u) + layer.from_state(h, d, r_gate, u));
          reset[u] = r[u] * h[u];
        }
        for (std::int64_t u = 0; u < units; ++u) {
          const double product = layer.from_state(reset_last ? h : reset, d, candidate, u);
          const double h_new = std::tanh(layer.from_input(t, n, d, candidate, u) + (reset_last ? r[u] * product : product));
          next[u] = (1 - z[u]) * h_new + z[u] * h[u];
          const double kept[4] = {z[u], r[u], h_new, reset_last ? product : reset[u]};
          for (std::int64_t g = 0; g < 4; ++g) put<T>(call, 2, layer.in_gates(t, n, d, g, u, 4), kept[g]);
          put<T>(call, 0, layer.in_sequence(t, d, n, u), next[u]);
        }
        std::swap(h, next);
      }
      for (std::int64_t u = 0; u < units; ++u) put<T>(call, 1, layer.in_state(d, n, u), h[u]);
    }
  }
}
std::size_t scratch(const sdk::Call& call) {
  return static_cast<std::size_t>(5 * call.inputs[2].shape[2]) * sizeof(double);
}

/// From the last step to the first: with dh the gradient of h_t, the gates' own gradients are dh~ = dh (1 - z) (1 - h~^2),
/// dz = dh (h_(t-1) - h~) z (1 - z), dr = (the factor of r)' r (1 - r); dh of the previous step is dh z plus the gradients through the
/// products.
///
/// Shapes  as gru; dy, dy_h may be absent (0), db and dh0 too.
template <class T>
void gru_grad(const sdk::Call& call) {
  const Recurrent<T> layer(call, 2, 3);
  const bool reset_last = call.attr<tenon_attributes_recurrent>().linear_before_reset != 0;
  const std::int64_t units = layer.units;
  const T* h0 = call.has_input(6) ? call.input<T>(6) : nullptr;
  const T* y = call.input<T>(7);
  const T* kept = call.input<T>(8);
  double* const of_input = static_cast<double*>(call.scratch);  // gradients of x's contribution to each gate
  double* const of_state = of_input + layer.all_gates();        // gradients of the contribution of h, or r h
  double* const dh = of_state + layer.all_gates();
  double* const next = dh + units;
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    for (std::int64_t n = 0; n < layer.batch; ++n) {
      for (std::int64_t u = 0; u < units; ++u) dh[u] = element_or_zero<T>(call, 1, layer.in_state(d, n, u));
      for (std::int64_t s = layer.steps; s-- > 0;) {
        const std::int64_t t = layer.time(d, s);
        double* const da = of_input + layer.in_gates(t, n, d, 0, 0, 3);
        double* const dp = of_state + layer.in_gates(t, n, d, 0, 0, 3);
        const auto gate = [&](Gate g, std::int64_t u) { return double{kept[layer.in_gates(t, n, d, g, u, 4)]}; };
        for (std::int64_t u = 0; u < units; ++u) {
          const double z = gate(z_gate, u), r = gate(r_gate, u), h_new = gate(candidate, u);
          const double own = dh[u] + element_or_zero<T>(call, 0, layer.in_sequence(t, d, n, u));
          da[z_gate * units + u] = own * (layer.before(y, h0, d, s, n, u) - h_new) * z * (1 - z);
          da[candidate * units + u] = own * (1 - z) * (1 - h_new) * (1 + h_new);
          dp[z_gate * units + u] = da[z_gate * units + u];
          dp[candidate * units + u] = da[candidate * units + u] * (reset_last ? r : 1.0);
          next[u] = own * z;
        }
        for (std::int64_t u = 0; u < units; ++u) {
          const double r = gate(r_gate, u);
          double scaled = 0;  // gradient with respect to r
          if (reset_last) {
            scaled = da[candidate * units + u] * gate(seen, u);
          } else {
            const double of_reset = layer.to_state(dp, d, candidate, candidate + 1, u);
            scaled = of_reset * layer.before(y, h0, d, s, n, u);
            next[u] += of_reset * r;
          }
          da[r_gate * units + u] = dp[r_gate * units + u] = scaled * r * (1 - r);
        }
        for (std::int64_t u = 0; u < units; ++u) dh[u] = next[u] + layer.to_state(dp, d, z_gate, reset_last ? candidate + 1 : candidate, u);
      }
      for (std::int64_t u = 0; u < units; ++u) put<T>(call, 4, layer.in_state(d, n, u), dh[u]);
    }
  }
  const auto state = [&](std::int64_t d, std::int64_t s, std::int64_t n, std::int64_t u) { return layer.before(y, h0, d, s, n, u); };
  const auto reset = [&](std::int64_t d, std::int64_t s, std::int64_t n, std::int64_t u) {
    return double{kept[layer.in_gates(layer.time(d, s), n, d, seen, u, 4)]};
  };
  layer.input_gradients(call, of_input);
  layer.bias_gradient(call, of_state, 1);
  layer.recurrent_gradient(call, of_state, z_gate, candidate, state);
  if (reset_last) {
    layer.recurrent_gradient(call, of_state, candidate, candidate + 1, state);
  } else {
    layer.recurrent_gradient(call, of_state, candidate, candidate + 1, reset);
  }
}
std::size_t scratch_of_grad(const sdk::Call& call) {
  const std::int64_t units = call.inputs[4].shape[2];
  return static_cast<std::size_t>(2 * 3 * call.inputs[7].count + 2 * units) * sizeof(double);
}

}  // namespace
TENON_KERNEL_WITH(gru, (sdk::Traits{.scratch = scratch}), float, double)
TENON_KERNEL_WITH(gru_grad, (sdk::Traits{.scratch = scratch_of_grad}), float, double)
}  // namespace tenon::reference
