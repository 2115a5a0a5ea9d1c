// SPDX-License-Identifier: Apache-2.0
// quantize/ranges.h - ranges of activations from what was observed of them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/quantize.h>

namespace tenon::quantize {

/// "element 7 is nan", of the first element that is NaN or infinite; nothing if there is none.
std::optional<std::string> first_not_finite(std::span<const float> elements);

/// An interval of floats; empty until something is observed.
struct Range {
  float low = std::numeric_limits<float>::infinity(), high = -std::numeric_limits<float>::infinity();

  bool empty() const { return low > high; }
  void include(const Range& other) {
    if (other.low < low) low = other.low;
    if (other.high > high) high = other.high;
  }
  /// Includes all elements. Returns false, and includes nothing, if one is NaN or infinite.
  bool observe(std::span<const float> elements);
};

/// Counts of elements in bins of equal width over a range. Zeros are not counted: they are exact with every scale, and after a Relu so
/// many that they would hide the rest.
class Histogram {
 public:
  static constexpr std::size_t bins = 2048;
  /// `absolute`: of the absolute values of elements, from 0 to the larger bound.
  Histogram(const Range& range, bool absolute);
  /// Elements outside of the range belong to the first or last bin.
  void observe(std::span<const float> elements);

  const std::vector<std::uint64_t>& counts() const { return counts_; }
  /// The elements that were observed, zeros included.
  std::uint64_t total() const { return total_; }
  double bin_width() const { return width_; }
  double low() const { return low_; }

 private:
  double low_, width_;
  bool absolute_;
  std::uint64_t total_ = 0;
  std::vector<std::uint64_t> counts_;
};

/// The range without (100 - percentile) / 2 percent of all elements on each side, to the bounds of bins, within `observed`.
Range percentile_range(const Histogram& histogram, const Range& observed, double percentile);

/// How many bins of a histogram of absolute values remain below the best threshold, at least `levels`: the threshold at which the
/// distribution of the clipped floats has the least divergence from that of as many levels.
/// Source  S. Migacz: 8-bit inference with TensorRT (2017); the smoothing of empty bins is that of MXNet and ONNX Runtime.
std::size_t entropy_threshold(std::span<const std::uint64_t> counts, std::size_t levels);
/// [-t, t] within `observed`, t from entropy_threshold, with as many bins as enough elements were observed for; all of `observed` if those
/// are no more than the levels. `levels`: values of the quantised type, which a one-sided range has all of.
Range entropy_range(const Histogram& histogram, const Range& observed, std::size_t levels);

}  // namespace tenon::quantize
