// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/kernel.h>

#include "kernel/launch.h"

namespace tenon::opencl {
namespace {

/// y[..., n] = bias[n] + sum over k of a[..., k] (b[n, k] - zero_points[n, i]) scales[n, i], i = k / block_size
template <class T>
void matmul_nbits(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_nbits>();
  const sdk::Operand &a = call.inputs[0], &b = call.inputs[1];
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  Launch launch(call, sources::matmul_nbits, "matmul_nbits", types<T>());
  launch.value(count).value(b.shape[0]).value(a.shape[a.rank - 1]).value(b.shape[1]).value(b.shape[2]).value(attributes.block_size);
  launch.value(static_cast<cl_int>(attributes.bits)).out(call, 0);
  for (std::uint32_t k = 0; k < 5; ++k) launch.in(call, k);
  launch.over(count);
}

}  // namespace
TENON_KERNEL(matmul_nbits, float, double)
}  // namespace tenon::opencl
