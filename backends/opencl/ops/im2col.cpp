// SPDX-License-Identifier: Apache-2.0
// Sliding windows as columns, and the inverse accumulation.
#include <tenon/sdk/kernel.h>

#include "kernel/launch.h"
#include "kernel/windows.h"

namespace tenon::opencl {
namespace {

template <class T>
void columns(const sdk::Call& call, const char* function, const sdk::Operand& image) {
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  Windows w = windows_of(call.attr<tenon_attributes_window>(), image);
  for (int d = 0; d < 2; ++d) {
    w.count[d] = (w.before[d] + w.size[d] + w.after[d] - (w.dilation[d] * (w.kernel[d] - 1) + 1)) / w.stride[d] + 1;
  }
  Launch(call, sources::im2col, function, types<T>()).value(w).value(count).out(call, 0).in(call, 0).over(count);
}

/// y[n, (c, k...), (i...)] = x[n, c, i strides + k dilations - pads_before], zeros outside of x
template <class T>
void im2col(const sdk::Call& call) {
  columns<T>(call, "im2col", call.inputs[0]);
}

/// y[n, c, i strides + k dilations - pads_before] += x[n, (c, k...), (i...)]; terms outside of y are dropped; integer sums wrap
template <class T>
void col2im(const sdk::Call& call) {
  columns<T>(call, "col2im", call.outputs[0]);
}

const char* refuse(const sdk::Call& call) {
  const std::uint32_t rank = std::max(call.inputs[0].rank, call.outputs[0].rank);
  return rank > 4 ? "images have one or two spatial dimensions here" : nullptr;
}

}  // namespace
TENON_KERNEL_WITH(im2col, (sdk::Traits{.refuse = refuse}), float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(col2im, (sdk::Traits{.refuse = refuse}), float, double, std::int32_t, std::int64_t)
}  // namespace tenon::opencl
