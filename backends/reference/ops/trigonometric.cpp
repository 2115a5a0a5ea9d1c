// SPDX-License-Identifier: Apache-2.0
// Sine, cosine and arc tangent: the C library's in f64, which reduces arguments of any magnitude exactly; rounded once.
#include <cmath>

#include "map.h"

namespace tenon::reference {
namespace {

/// y = sin x
template <class T>
void sin(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::sin(x); });
}

/// y = cos x
template <class T>
void cos(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::cos(x); });
}

/// y = the angle in [-pi/2, pi/2] whose tangent is x
template <class T>
void atan(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::atan(x); });
}

}  // namespace
TENON_KERNEL_WITH(sin, elementwise_traits, float, double)
TENON_KERNEL_WITH(cos, elementwise_traits, float, double)
TENON_KERNEL_WITH(atan, elementwise_traits, float, double)
}  // namespace tenon::reference
