// SPDX-License-Identifier: Apache-2.0
// ops/cum_sum.cpp - cumulative sums along an axis; neighbouring lines are summed together.
#include <algorithm>
#include <array>
#include <type_traits>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us.
constexpr std::int64_t grain = 16 * 1024;
// Lines summed together: their sums stay in L1.
constexpr std::int64_t bundle = 256;

/// Integers wrap; floating sums are accumulated in f64, because their error grows with the length of the line.
template <class T>
using Sum = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::common_type<double>>::type;

/// Sums `lines` neighbouring lines of n elements with stride `inner`, which is negative to start from the end.
template <class T>
void sum_lines(const T* x, T* y, std::int64_t lines, std::int64_t n, std::int64_t inner, bool exclusive) {
  std::array<Sum<T>, bundle> sums;
  std::fill_n(sums.begin(), lines, Sum<T>{});
  for (std::int64_t k = 0; k < n; ++k, x += inner, y += inner) {
    if (exclusive) {
      for (std::int64_t i = 0; i < lines; ++i) {
        const Sum<T> before = sums[static_cast<std::size_t>(i)];
        sums[static_cast<std::size_t>(i)] += static_cast<Sum<T>>(x[i]);
        y[i] = static_cast<T>(before);
      }
    } else {
      for (std::int64_t i = 0; i < lines; ++i) y[i] = static_cast<T>(sums[static_cast<std::size_t>(i)] += static_cast<Sum<T>>(x[i]));
    }
  }
}

/// y[i] = x[0] + ... + x[i] along the axis; exclusive without x[i], reverse from the end. y may be x.
template <class T>
void cum_sum(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_cum_sum>();
  const sdk::AxisView view = sdk::around_axis(call.inputs[0], attributes.axis);
  if (call.inputs[0].count == 0) return;
  const std::int64_t start = attributes.reverse != 0 ? (view.n - 1) * view.inner : 0;
  const std::int64_t step = attributes.reverse != 0 ? -view.inner : view.inner;
  const std::int64_t width = std::min(bundle, view.inner), bundles = (view.inner + width - 1) / width;
  call.host.parallel_for(view.outer * bundles, std::max<std::int64_t>(1, grain / (view.n * width)),
                         [&](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t task = begin; task < end; ++task) {
                             const std::int64_t first = task % bundles * width, at = task / bundles * view.n * view.inner + start + first;
                             sum_lines(call.input<T>(0) + at, call.output<T>(0) + at, std::min(width, view.inner - first), view.n, step,
                                       attributes.exclusive != 0);
                           }
                         });
}

}  // namespace
TENON_KERNEL_WITH(cum_sum, (sdk::Traits{.in_place = true}), float, double, std::int32_t, std::int64_t)
}  // namespace tenon::openblas
