// SPDX-License-Identifier: Apache-2.0
// core/nonzero.h - the places of elements that are not 0.
#pragma once

#include <tenon/tensor.h>

namespace tenon {

/// A host tensor i64(rank, count): row i has the indices along axis i of the elements that are not 0, in row-major order. NaN is not 0.
/// A scalar gives (0, 0) or (0, 1).
Tensor nonzero(const Tensor& tensor);

}  // namespace tenon
