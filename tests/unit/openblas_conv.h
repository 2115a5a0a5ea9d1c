// SPDX-License-Identifier: Apache-2.0
// openblas_conv.h - convolutions at sizes for which the oracle is too slow.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "testing.h"

namespace tenon::test {

struct Convolution {
  const char* label;
  std::int64_t images, channels, height, width, filters, kernel;
  std::int64_t stride = 1, pad = 0, dilation = 1, groups = 1;

  std::int64_t result(std::int64_t size) const { return (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1; }
  Shape x() const { return {images, channels, height, width}; }
  Shape y() const { return {images, filters, result(height), result(width)}; }
  Shape w() const { return {filters, channels / groups, kernel, kernel}; }

  tenon_attributes_conv attributes() const {
    tenon_attributes_conv a{.struct_size = sizeof a, .groups = static_cast<std::uint32_t>(groups)};
    for (std::size_t i = 0; i < TENON_MAX_SPATIAL; ++i) {
      a.strides[i] = i < 2 ? stride : 1;
      a.dilations[i] = i < 2 ? dilation : 1;
      a.pads_before[i] = a.pads_after[i] = i < 2 ? pad : 0;
    }
    return a;
  }
};

/// Pseudorandom values in [-1, 1).
inline std::vector<float> numbers(const Shape& shape, std::uint32_t seed) {
  return uniform(shape.count(), seed);
}

struct Sum {
  double value = 0, magnitude = 0;
  void add(float a, float b) {
    value += double{a} * double{b};
    magnitude += std::fabs(double{a} * double{b});
  }
};

}  // namespace tenon::test
