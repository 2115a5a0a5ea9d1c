// SPDX-License-Identifier: Apache-2.0
// Floats as integers of 8 or 16 bits, and back.
#include <tenon/sdk/element.h>

#include <limits>

#include "kernel/launch.h"
#include "kernel/layout.h"

namespace tenon::opencl {
namespace {

template <class Q>
std::string integer() {
  return std::string(" -DQ=") + type_name<Q>() + " -DQ_LOW=" + std::to_string(std::numeric_limits<Q>::lowest()) +
         " -DQ_HIGH=" + std::to_string(std::numeric_limits<Q>::max());
}
std::string integer(tenon_dtype dtype) {
  if (dtype == TENON_DTYPE_I32) return " -DQ=int -DQ_LOW=0 -DQ_HIGH=0";  // of DequantizeLinear
  return sdk::with_type<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t>(dtype, []<class Q>() { return integer<Q>(); });
}

template <class T>
void elementwise(const sdk::Call& call, const char* function, tenon_dtype dtype) {
  const Layout layout = call.has_input(2) ? layout_of_inputs<3>(call) : layout_of_inputs<2>(call);
  if (layout.count == 0) return;
  Launch launch(call, sources::quantize, function, types<T>() + integer(dtype));
  launch.value(layout).out(call, 0).in(call, 0).in(call, 1).in(call, 2).over(layout.count);
}

/// y = saturate(round(x / scale) + zero_point), ties to even
template <class T>
void quantize_linear(const sdk::Call& call) {
  elementwise<T>(call, "quantize_linear", call.outputs[0].dtype);
}

/// y = (x - zero_point) scale, in the arithmetic of y
template <class T>
void dequantize_linear(const sdk::Call& call) {
  elementwise<T>(call, "dequantize_linear", call.inputs[0].dtype);
}

/// scale = (high - low) / 255 for the range [low, high] of x and 0; zero_point = round(-low / scale); y = x quantised by them
template <class T>
void dynamic_quantize_linear(const sdk::Call& call) {
  const std::string options = types<T>() + integer<std::uint8_t>();
  const std::int64_t count = call.inputs[0].count;
  Launch(call, sources::quantize, "range_of", options).value(count).out(call, 1).out(call, 2).in(call, 0).over(1);
  if (count == 0) return;
  Layout layout;
  layout.count = layout.sizes[0] = count;
  layout.rank = 1;
  layout.strides[0][0] = 1;
  Launch launch(call, sources::quantize, "quantize_linear", options);
  launch.value(layout).out(call, 0).in(call, 0).out(call, 1).out(call, 2).over(count);
}

constexpr sdk::Traits traits{.strided = true};

}  // namespace
TENON_KERNEL_WITH(quantize_linear, traits, float, double)
TENON_KERNEL_WITH(dequantize_linear, traits, float, double)
TENON_KERNEL(dynamic_quantize_linear, float)
}  // namespace tenon::opencl
