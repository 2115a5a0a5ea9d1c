// SPDX-License-Identifier: Apache-2.0
// Running sums along an axis.
#include <tenon/sdk/kernel.h>

#include <type_traits>

namespace tenon::reference {
namespace {

/// y[i] = x[0] + ... + x[i] along the axis; exclusive without x[i], reverse from the end.
///
/// Shapes  x, y dense.
/// Dtypes  floating types are summed in f64; integer sums wrap.
template <class T>
void cum_sum(const sdk::Call& call) {
  using Sum = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::common_type<double>>::type;
  const auto& attributes = call.attr<tenon_attributes_cum_sum>();
  const sdk::AxisView view = sdk::around_axis(call.inputs[0], attributes.axis);
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  for (std::int64_t o = 0; o < view.outer; ++o) {
    for (std::int64_t i = 0; i < view.inner; ++i) {
      Sum sum{};
      for (std::int64_t k = 0; k < view.n; ++k) {
        const std::int64_t place = attributes.reverse != 0 ? view.n - 1 - k : k;
        const std::int64_t at = (o * view.n + place) * view.inner + i;
        const Sum before = sum;
        sum += static_cast<Sum>(x[at]);
        y[at] = static_cast<T>(attributes.exclusive != 0 ? before : sum);
      }
    }
  }
}

}  // namespace
TENON_KERNEL(cum_sum, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::reference
