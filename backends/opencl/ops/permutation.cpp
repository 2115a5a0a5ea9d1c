// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/kernel.h>

#include <bit>

#include "kernel/launch.h"

namespace tenon::opencl {
namespace {

constexpr std::int64_t draw_bytes = 16;  // Draw in kernel/random.cl

std::int64_t padded(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

/// y = 0 .. n-1 in ascending order of (word i, i)
template <class T>
void random_permutation(const sdk::Call& call) {
  const std::int64_t n = call.outputs[0].count;
  if (n == 0) return;
  const std::int64_t count = padded(n);
  Launch(call, sources::random, "begin_permutation", types<T>())
      .value(count)
      .value(n)
      .address(call.scratch)
      .in(call, 0)
      .value(call.attr<tenon_attributes_random>().stream)
      .over(count);
  for (std::int64_t run = 2; run <= count; run *= 2) {
    for (std::int64_t distance = run / 2; distance > 0; distance /= 2) {
      Launch launch(call, sources::random, "sort_draws", types<T>());
      launch.value(count / 2).value(run).value(distance).address(call.scratch).over(count / 2);
    }
  }
  Launch(call, sources::random, "end_permutation", types<T>()).value(n).out(call, 0).address(call.scratch).over(n);
}

std::size_t scratch(const sdk::Call& call) {
  return call.outputs[0].count == 0 ? 0 : static_cast<std::size_t>(padded(call.outputs[0].count) * draw_bytes);
}

}  // namespace
TENON_KERNEL_WITH(random_permutation, (sdk::Traits{.scratch = scratch}), std::int64_t)
}  // namespace tenon::opencl
