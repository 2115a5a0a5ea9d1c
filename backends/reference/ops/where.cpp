// SPDX-License-Identifier: Apache-2.0
// One of two operands by a condition, with NumPy broadcasting. Elements are moved as they are.
#include <tenon/sdk/element.h>

#include "map.h"

namespace tenon::reference {
namespace {

/// y = condition ? a : b. y may be a or b.
///
/// Dtypes  every real one; the condition is bool.
template <class T>
void where(const sdk::Call& call) {
  const bool* condition = call.input<bool>(0);
  const T* a = call.input<T>(1);
  const T* b = call.input<T>(2);
  T* y = call.output<T>(0);
  sdk::for_each_element<3>(call, [&](std::int64_t i, const auto& at) { y[i] = condition[at[0]] ? a[at[1]] : b[at[2]]; });
}

}  // namespace
TENON_KERNEL_WITH(where, elementwise_traits, TENON_MOVABLE_TYPES)
}  // namespace tenon::reference
