// SPDX-License-Identifier: Apache-2.0
#include "exec/numerics.h"

#include <cmath>

namespace tenon::exec {
namespace {

template <class T>
std::optional<NonFinite> scan(const T* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) return NonFinite{i, static_cast<double>(values[i])};
  }
  return std::nullopt;
}

}  // namespace

std::optional<NonFinite> find_non_finite(const Tensor& tensor) {
  if (tensor.dtype() != DType::f32 && tensor.dtype() != DType::f64) return std::nullopt;
  const Tensor host = tensor.on_host() ? tensor : tensor.to_host();
  return tensor.dtype() == DType::f32 ? scan(host.data<float>(), host.count()) : scan(host.data<double>(), host.count());
}

}  // namespace tenon::exec
