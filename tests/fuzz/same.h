// SPDX-License-Identifier: Apache-2.0
// same.h - bitwise comparison of tensors.
#pragma once

#include <cstring>

#include <tenon/tensor.h>

namespace tenon::fuzz {

inline bool same(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  if (x.dtype() != y.dtype() || !(x.shape() == y.shape())) return false;
  return x.size_bytes() == 0 || std::memcmp(x.raw(), y.raw(), static_cast<std::size_t>(x.size_bytes())) == 0;
}

}  // namespace tenon::fuzz
