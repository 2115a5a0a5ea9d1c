// SPDX-License-Identifier: Apache-2.0
// com.example.SoftClip: y = limit tanh(x / limit), which is x near 0 and never leaves (-limit, limit).
//
// Shapes  x, y of any shape.
// Dtypes  f32, f64.
#include <tenon/sdk/error.h>
#include <tenon/sdk/vendor_op.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "extension.h"
#include "kernels_run.h"

namespace tenon::example {
namespace {

/// The dtype and the shape of y, before any device is open.
void infer(sdk::VendorInference& at) {
  const tenon_tensor_desc& x = at.input(0);
  if (x.dtype != TENON_DTYPE_F32 && x.dtype != TENON_DTYPE_F64) {
    throw sdk::Error(TENON_INVALID_ARGUMENT, "expected x of f32 or f64, got " + sdk::describe(x));
  }
  const double limit = at.attributes.number("limit");
  if (!(limit > 0)) throw sdk::Error(TENON_INVALID_ARGUMENT, "expected a limit above 0, got " + std::to_string(limit));
  at.result_like(0);
}

template <class T>
void soft_clip(const sdk::Call& call) {
  const T* const x = call.input<T>(0);
  T* const y = call.output<T>(0);
  const T limit = static_cast<T>(sdk::VendorAttributes(call).number("limit"));
  constexpr std::int64_t grain = 4096;
  call.host.parallel_for(call.inputs[0].count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y[i] = limit * std::tanh(x[i] / limit);
  });
  ++kernels_run();
  const auto* const observer = call.host.extension<example_observer>(EXAMPLE_OBSERVER_NAME, EXAMPLE_OBSERVER_VERSION);
  if (observer != nullptr) observer->kernel_run(observer->context, call.inputs[0].count);
}

}  // namespace
TENON_KERNEL_WITH(soft_clip, (sdk::Traits{.in_place = true}), float, double)
TENON_VENDOR_INFER(soft_clip, infer)
}  // namespace tenon::example
