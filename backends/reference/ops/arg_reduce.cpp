// SPDX-License-Identifier: Apache-2.0
// The index of the largest or smallest element along an axis.
#include <tenon/sdk/kernel.h>

namespace tenon::reference {
namespace {

/// y = the smallest j for which x[j] beats all others along `axis`. NaN beats everything, so the first NaN wins.
///
/// Shapes      x dense, y without the axis, or with 1 in its place (keepdims).
/// Attributes  axis: 0 <= axis < rank, of at least one element unless y is empty.
template <class T, class Beats>
void arg_reduce(const sdk::Call& call, Beats beats) {
  const auto [outer, n, inner] = sdk::around_axis(call.inputs[0], call.attr<tenon_attributes_axis>().axis);
  const T* x = call.input<T>(0);
  std::int64_t* y = call.output<std::int64_t>(0);
  const auto is_nan = [](T value) { return value != value; };
  for (std::int64_t o = 0; o < outer; ++o, x += n * inner) {
    for (std::int64_t i = 0; i < inner; ++i) {
      std::int64_t best = 0;
      for (std::int64_t j = 1; j < n && !is_nan(x[best * inner + i]); ++j) {
        const T candidate = x[j * inner + i];
        if (beats(candidate, x[best * inner + i]) || is_nan(candidate)) best = j;
      }
      *y++ = best;
    }
  }
}

/// The index of the largest.
template <class T>
void arg_max(const sdk::Call& call) {
  arg_reduce<T>(call, [](T a, T b) { return a > b; });
}

/// The index of the smallest.
template <class T>
void arg_min(const sdk::Call& call) {
  arg_reduce<T>(call, [](T a, T b) { return a < b; });
}

const char* refuse(const sdk::Call& call) {
  const bool empty_axis = call.inputs[0].shape[call.attr<tenon_attributes_axis>().axis] == 0;
  return empty_axis && call.outputs[0].count > 0 ? "the axis is empty; expected at least one element" : nullptr;
}

constexpr sdk::Traits traits{.refuse = refuse};

}  // namespace
TENON_KERNEL_WITH(arg_max, traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(arg_min, traits, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::reference
