// SPDX-License-Identifier: Apache-2.0
// The largest or smallest elements along an axis.
#include <tenon/sdk/kernel.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

namespace tenon::reference {
namespace {

/// a before b in descending order: NaN is larger than every other value, and NaNs are equal.
template <class T>
bool larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(b)) return false;
    if (std::isnan(a)) return true;
  }
  return a > b;
}

/// The k best of each line along the axis in order, equal ones by their index; a line is sorted whole.
///
/// Shapes  x dense (..., n, ...), values and indices (..., k, ...).
template <class T>
void top_k(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_top_k>();
  const auto [outer, n, inner] = sdk::around_axis(call.inputs[0], attributes.axis);
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const T* x = call.input<T>(0) + o * n * inner + i;
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&, step = inner](std::int64_t a, std::int64_t b) {
        return attributes.largest != 0 ? larger(x[a * step], x[b * step]) : larger(x[b * step], x[a * step]);
      });
      for (std::int64_t k = 0; k < attributes.k; ++k) {
        const std::int64_t at = (o * attributes.k + k) * inner + i;
        call.output<std::int64_t>(1)[at] = order[static_cast<std::size_t>(k)];
        call.output<T>(0)[at] = x[order[static_cast<std::size_t>(k)] * inner];
      }
    }
  }
}

}  // namespace
TENON_KERNEL(top_k, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::reference
