// SPDX-License-Identifier: Apache-2.0
// core/strided.h - copies of strided views in host memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/shape.h>

namespace tenon {

/// Copies element by element in row-major order; strides in elements, `size` bytes each (1, 2, 4, 8 or 16). The ranges do not overlap.
void copy_elements(std::byte* to, const std::int64_t* to_strides, const std::byte* from, const std::int64_t* from_strides,
                   const Shape& shape, std::int64_t size);

/// Offsets, in elements from element (0, ..., 0), of the lowest and the highest address that a view without empty axes touches.
struct Reach {
  std::int64_t lowest = 0;
  std::int64_t highest = 0;

  std::int64_t count() const { return highest - lowest + 1; }
};
Reach reach_of(const Shape& shape, const std::int64_t* strides);

}  // namespace tenon
