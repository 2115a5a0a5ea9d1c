// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/random.h>
#include <tenon/sdk/rounding.h>

#include "kernel/launch.h"

namespace tenon::opencl {
namespace {

/// y = 0 with probability p, else x / (1 - p); p = 0 is the identity. y may be x.
template <class T>
void dropout(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_random>();
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  Launch(call, sources::random, "dropout", types<T>())
      .value(count)
      .out(call, 0)
      .in(call, 1)
      .value(a.stream)
      .in(call, 0)
      .value(sdk::random::bernoulli_threshold(a.a))
      .value(sdk::random::dropout_scale<T>(a.a))
      .over(sdk::ceil_div(count, 4));
}

}  // namespace
TENON_KERNEL_WITH(dropout, (sdk::Traits{.in_place = true}), float, double)
}  // namespace tenon::opencl
