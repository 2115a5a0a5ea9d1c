// SPDX-License-Identifier: Apache-2.0
// x / (1 + |x|), computed in f64 and rounded once.
#include <cmath>

#include "map.h"

namespace tenon::reference {
namespace {

/// y = x / (1 + |x|)
template <class T>
void softsign(const sdk::Call& call) {
  map<T>(call, [](double x) { return x / (1 + std::abs(x)); });
}

}  // namespace
TENON_KERNEL_WITH(softsign, elementwise_traits, float, double)
}  // namespace tenon::reference
