// exec/numerics.h - the watch for NaN and infinity.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/tensor.h>

namespace tenon::exec {

struct NonFinite {
  std::int64_t index;  ///< of the first one, in row-major order
  double value;
};

/// The first NaN or infinity of a dense f32 or f64 tensor; nothing for other dtypes. Downloads what is not in reach of the host.
std::optional<NonFinite> find_non_finite(const Tensor& tensor);

}  // namespace tenon::exec
