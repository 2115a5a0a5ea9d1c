// SPDX-License-Identifier: Apache-2.0
// Max and average pooling. ceil_mode is implied by the shape of the results.
#include <tenon/sdk/kernel.h>

#include <limits>

#include "kernel/lanes.h"
#include "kernel/windows.h"

namespace tenon::opencl {
namespace {

template <class T>
void max_pool(const sdk::Call& call) {
  const sdk::Operand& results = call.has_output(0) ? call.outputs[0] : call.outputs[1];
  if (results.count == 0) return;
  Windows w = windows_of(call.attr<tenon_attributes_window>(), call.inputs[0]);
  set_spatial(w.count, results);
  T lowest = std::numeric_limits<T>::lowest();
  if constexpr (std::numeric_limits<T>::has_infinity) lowest = -std::numeric_limits<T>::infinity();
  Launch(call, sources::pool, "max_pool", types<T>())
      .value(w)
      .value(results.count)
      .out(call, 0)
      .out(call, 1)
      .in(call, 0)
      .value(lowest)
      .over(results.count);
}

/// dx = 0, then dx[indices] += dy.
/// Errors  an index outside the image and channel of its dy, when the work is waited for.
template <class T>
void max_pool_grad(const sdk::Call& call) {
  const sdk::Operand &dx = call.outputs[0], &dy = call.inputs[0];
  const std::int64_t planes = dx.shape[0] * dx.shape[1];
  if (planes == 0) return;
  // The cores of a CPU are fastest with planes of their own, if there are enough.
  const bool is_cpu = stream_of(call).device().description().kind == TENON_DEVICE_CPU;
  const std::uint32_t width = is_cpu && planes >= 64 ? 1 : lanes_for(dx.count / planes);
  Launch(call, sources::pool, "max_pool_grad", types<T>())
      .value(planes)
      .value(dx.count / planes)
      .value(dy.count / planes)
      .value(width)
      .out(call, 0)
      .in(call, 0)
      .in(call, 1)
      .fault(call, TENON_OP_MaxPoolGrad)
      .over(planes * width);
}

/// Runs a kernel of average pooling over the elements of its result. `image` and `windows`: x and y, or their gradients.
template <class T>
void average(const sdk::Call& call, const char* kernel, const sdk::Operand& image, const sdk::Operand& windows) {
  const auto& a = call.attr<tenon_attributes_window>();
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  Windows w = windows_of(a, image);
  set_spatial(w.count, windows);
  Launch(call, sources::pool, kernel, types<T>())
      .value(w)
      .value(count)
      .out(call, 0)
      .in(call, 0)
      .value(static_cast<cl_int>(a.count_include_pad))
      .over(count);
}

/// The sum of each window, divided by the number of its elements inside the padded image, or inside x.
template <class T>
void average_pool(const sdk::Call& call) {
  average<T>(call, "average_pool", call.inputs[0], call.outputs[0]);
}
template <class T>
void average_pool_grad(const sdk::Call& call) {
  average<T>(call, "average_pool_grad", call.outputs[0], call.inputs[0]);
}

constexpr sdk::Traits traits{.refuse = refuse_volumes};

}  // namespace
TENON_KERNEL_WITH(max_pool, traits, float, double, std::int8_t, std::uint8_t)
TENON_KERNEL_WITH(max_pool_grad, traits, float, double)
TENON_KERNEL_WITH(average_pool, traits, float, double)
TENON_KERNEL_WITH(average_pool_grad, traits, float, double)
}  // namespace tenon::opencl
