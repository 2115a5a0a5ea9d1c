// SPDX-License-Identifier: Apache-2.0
// image.h - images (N, C, d...) and the windows that slide over them, one loop for any number of spatial dimensions.
#pragma once

#include <array>
#include <cstdint>

#include <tenon/sdk/kernel.h>

namespace tenon::reference {

using Spatial = std::array<std::int64_t, TENON_MAX_SPATIAL>;

/// The spatial sizes of an operand (a, b, d...), and 1 for absent dimensions.
inline Spatial spatial_sizes(const sdk::Operand& x) {
  Spatial sizes{1, 1, 1};
  for (std::uint32_t i = 2; i < x.rank; ++i) sizes[i - 2] = x.shape[i];
  return sizes;
}

inline std::int64_t count_of(const Spatial& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

/// body(i, index) for every multi-index within `sizes` in row-major order, with its linear index.
template <class Body>
void for_each_index(const Spatial& sizes, Body&& body) {
  std::int64_t index = 0;
  for (std::int64_t a = 0; a < sizes[0]; ++a) {
    for (std::int64_t b = 0; b < sizes[1]; ++b) {
      for (std::int64_t c = 0; c < sizes[2]; ++c) body(Spatial{a, b, c}, index++);
    }
  }
}

/// Windows of `kernel` elements over an image of `sizes`, with the strides, dilations and pads_before of attributes.
struct Windows {
  Spatial sizes, kernel, strides{1, 1, 1}, dilations{1, 1, 1}, before{};

  template <class Struct>
  Windows(const Struct& attributes, std::uint32_t dims, const Spatial& image, const Spatial& taps) : sizes(image), kernel(taps) {
    for (std::uint32_t i = 0; i < dims; ++i) {
      strides[i] = attributes.strides[i];
      dilations[i] = attributes.dilations[i];
      before[i] = attributes.pads_before[i];
    }
  }

  /// body(tap, place): for every tap of window i inside the image, in row-major order; both are linear indices. The arrays are read through
  /// pointers: builds with sanitizers call std::array's operators, and this is the oracle's innermost loop.
  template <class Body>
  void for_each_tap(const Spatial& i, Body&& body) const {
    for_each_index(kernel, [&](const Spatial& k, std::int64_t tap) {
      std::int64_t place = 0;
      for (std::size_t d = 0; d < TENON_MAX_SPATIAL; ++d) {
        const std::int64_t at = i.data()[d] * strides.data()[d] + k.data()[d] * dilations.data()[d] - before.data()[d];
        if (at < 0 || at >= sizes.data()[d]) return;
        place = place * sizes.data()[d] + at;
      }
      body(tap, place);
    });
  }
};

}  // namespace tenon::reference
