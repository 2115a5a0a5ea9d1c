// SPDX-License-Identifier: Apache-2.0
// dispatch.h - from the dtype of a call to the type of its elements.
#pragma once

#include <tenon/sdk/element.h>

namespace tenon::cuda {

/// function<T>() for the type T of a floating dtype: f16, bf16, f32 or f64.
template <class Function>
auto dispatch_floating(tenon_dtype dtype, const Function& function) {
  return sdk::with_type<sdk::Half, sdk::BFloat16, float, double>(dtype, function);
}

}  // namespace tenon::cuda
