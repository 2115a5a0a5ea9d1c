// SPDX-License-Identifier: Apache-2.0
// attention_gradient.h - the gradient of attention by the kernels of attention_gradient.cu, for f16, bf16, f32 and f64.
#pragma once

#include <tenon/sdk/kernel.h>

namespace tenon::cuda {

/// p = exp(scores - log_sum), ds = p (dy v' - sum(dy y)): dq = scale ds k, dk = scale ds' q, dv = p' dy
///
/// Shapes  as Heads; dy and y (B, H, S, E), log_sum (B, H, S), dq, dk, dv as q, k, v; dense but for views of (B, S, H, D).
template <class T>
void attention_gradient(const sdk::Call& call);

}  // namespace tenon::cuda
