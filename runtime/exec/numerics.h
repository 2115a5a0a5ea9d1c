// SPDX-License-Identifier: Apache-2.0
// exec/numerics.h - detection of NaN and infinity.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/tensor.h>

namespace tenon::exec {

struct NonFinite {
  std::int64_t index;  ///< of the first such element, in row-major order
  double value;
};

/// The first NaN or infinity of a dense f32 or f64 tensor; nothing for other dtypes. Downloads memory that the host cannot access.
std::optional<NonFinite> find_non_finite(const Tensor& tensor);

}  // namespace tenon::exec
