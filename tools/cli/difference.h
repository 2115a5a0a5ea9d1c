// SPDX-License-Identifier: Apache-2.0
// cli/difference.h - how far results are from those of another computation.
#pragma once

#include <tenon/tensor.h>

namespace tenon::cli {

/// The largest difference of elements, as a fraction of the largest finite expected element or of `min_scale`, whichever is more. Equal
/// infinities and two NaN differ by 0; a NaN or an infinity on one side only by infinity.
/// Errors  another dtype or shape; `what` says of what: "the file".
double largest_difference(const Tensor& expected, const Tensor& got, double min_scale, const char* what);

}  // namespace tenon::cli
