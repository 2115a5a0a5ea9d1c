// SPDX-License-Identifier: Apache-2.0
#include "core/nonzero.h"

#include <algorithm>
#include <cstdint>

namespace tenon {

Tensor nonzero(const Tensor& tensor) {
  const Tensor flags = (tensor.on_host() ? tensor : tensor.to_host()).to(DType::boolean).contiguous();
  // The bytes of a bool tensor from a file may be other than 0 and 1.
  const auto* flag = static_cast<const std::uint8_t*>(flags.raw());
  const std::int64_t size = flags.count();
  const std::int64_t count = size - std::count(flag, flag + size, std::uint8_t{0});
  const Shape shape = flags.shape();
  Tensor places = Tensor::empty(DType::i64, {static_cast<std::int64_t>(shape.rank()), count});
  const auto strides = dense_strides(shape);
  std::int64_t* next = places.data<std::int64_t>();
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    for (std::int64_t i = 0; i < size; ++i) {
      if (flag[i] != 0) *next++ = i / strides[axis] % shape[axis];
    }
  }
  return places;
}

}  // namespace tenon
