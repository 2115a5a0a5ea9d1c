// Where along an axis the largest element is.
#include <tenon/sdk/kernel.h>

#include <cmath>

namespace tenon::reference {
namespace {

/// y = the least j for which x[j] is largest, along `axis`. NaN counts as larger than everything, so the first NaN wins.
///
/// Shapes      x dense, y without the axis, or with 1 in its place (keepdims).
/// Attributes  axis: 0 <= axis < rank, of at least one element unless y is empty.
template <class T>
void arg_max(const sdk::Call& call) {
  const auto [outer, n, inner] = sdk::around_axis(call.inputs[0], call.attr<tenon_attributes_axis>().axis);
  const T* x = call.input<T>(0);
  std::int64_t* y = call.output<std::int64_t>(0);
  for (std::int64_t o = 0; o < outer; ++o, x += n * inner) {
    for (std::int64_t i = 0; i < inner; ++i) {
      std::int64_t best = 0;
      for (std::int64_t j = 1; j < n && !std::isnan(x[best * inner + i]); ++j) {
        const T candidate = x[j * inner + i];
        if (candidate > x[best * inner + i] || std::isnan(candidate)) best = j;
      }
      *y++ = best;
    }
  }
}

const char* refuse(const sdk::Call& call) {
  const bool empty_axis = call.inputs[0].shape[call.attr<tenon_attributes_axis>().axis] == 0;
  return empty_axis && call.outputs[0].count > 0 ? "arg_max: the axis has no element to choose" : nullptr;
}

}  // namespace
TENON_KERNEL_WITH(arg_max, (sdk::Traits{.refuse = refuse}), float, double)
}  // namespace tenon::reference
