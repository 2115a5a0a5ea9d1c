// SPDX-License-Identifier: Apache-2.0
// Activations beyond relu, sigmoid and tanh. Computed in f64, rounded once. At minus infinity, where the factors of a product are 0 and
// infinite, the result is the limit.
#include <cmath>

#include "map.h"

namespace tenon::reference {
namespace {

/// y = x where x > 0, else alpha x
template <class T>
void leaky_relu(const sdk::Call& call) {
  const double alpha = call.attr<tenon_attributes_alpha>().alpha;
  map<T>(call, [alpha](double x) { return x > 0 ? x : alpha * x; });
}

/// y = x where x > 0, else alpha (e^x - 1)
template <class T>
void elu(const sdk::Call& call) {
  const double alpha = call.attr<tenon_attributes_alpha>().alpha;
  map<T>(call, [alpha](double x) { return x > 0 ? x : alpha * std::expm1(x); });
}

/// y = log(1 + e^x), as max(x, 0) + log(1 + e^-|x|), whose exponential never overflows.
template <class T>
void softplus(const sdk::Call& call) {
  map<T>(call, [](double x) { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::abs(x))); });
}

/// y = x tanh(softplus x). With n = e^x that is x n (n + 2) / (n (n + 2) + 2), which has no cancellation; beyond 20 it is x.
template <class T>
void mish(const sdk::Call& call) {
  map<T>(call, [](double x) {
    if (x > 20) return x;
    if (std::isinf(x)) return -0.0;
    const double n = std::exp(x);
    return x * (n * (n + 2) / (n * (n + 2) + 2));
  });
}

/// x / (1 + e^(-u)): x sigmoid(u) where x and u have one sign.
double gated(double x, double u) {
  if (std::isinf(x) && x < 0) return -0.0;
  return x / (1 + std::exp(-u));
}

/// y = x sigmoid x
template <class T>
void silu(const sdk::Call& call) {
  map<T>(call, [](double x) { return gated(x, x); });
}

/// x Phi(x) = x/2 erfc(-x / sqrt 2), Phi the normal distribution: 1 + erf would cancel below -1.
///
/// z = -x / sqrt 2 is off by up to half an epsilon, which erfc turns into z^2 epsilon; its derivative corrects for the remainder.
double gelu_of(double x) {
  if (std::isinf(x)) return x > 0 ? x : -0.0;
  const double high = 0.7071067811865476, low = -4.833646656726457e-17;  // sqrt(1/2) as a sum
  const double z = -x * high;
  const double rest = std::fma(-x, high, -z) - x * low;
  const double two_over_root_pi = 1.1283791670955126;
  return 0.5 * x * (std::erfc(z) - two_over_root_pi * std::exp(-z * z) * rest);
}

/// y = x Phi(x), or x/2 (1 + tanh v) with v = sqrt(2/pi) (x + 0.044715 x^3), which is x sigmoid(2 v).
template <class T>
void gelu(const sdk::Call& call) {
  if (call.attr<tenon_attributes_gelu>().approximate_tanh == 0) return map<T>(call, gelu_of);
  const double twice = 1.5957691216057308;  // 2 sqrt(2/pi)
  map<T>(call, [=](double x) { return gated(x, twice * (x + 0.044715 * x * x * x)); });
}

}  // namespace
TENON_KERNEL_WITH(leaky_relu, elementwise_traits, float, double)
TENON_KERNEL_WITH(elu, elementwise_traits, float, double)
TENON_KERNEL_WITH(softplus, elementwise_traits, float, double)
TENON_KERNEL_WITH(mish, elementwise_traits, float, double)
TENON_KERNEL_WITH(gelu, elementwise_traits, float, double)
TENON_KERNEL_WITH(silu, elementwise_traits, float, double)
}  // namespace tenon::reference
