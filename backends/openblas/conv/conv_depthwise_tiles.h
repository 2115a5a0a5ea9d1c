// SPDX-License-Identifier: Apache-2.0
// conv_depthwise_tiles.h - forward depthwise convolutions of the usual kernels in register tiles of neighbouring pixels.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "conv/conv_geometry.h"

namespace tenon::openblas {

/// Whether these tiles serve the convolution: kernels of 3x3 and 5x5 with strides of 1 or 2, without dilation.
bool depthwise_tiles_fit(const ConvGeometry& g);

/// The bytes of partial sums that a call with two outputs needs.
std::size_t depthwise_means_scratch(const ConvGeometry& g);

/// depthwise_forward() of conv_depthwise.h, with the same sums in the same order. Instantiated for bf16, float and double.
template <class T>
void depthwise_tiles(const ConvGeometry& g, const sdk::Call& call, const T* x, const T* w, const T* bias, T* y, void* scratch);

/// Rows [first_row, end_row) and channels [first_channel, end_channel) of the results of one image.
template <class T>
struct DepthwiseBand {
  const ConvGeometry* g = nullptr;
  const T* x = nullptr;         ///< of the image
  std::int64_t ring_lines = 0;  ///< line i of x is at i % ring_lines; 0: at i
  const T* w = nullptr;
  const T* bias = nullptr;
  const T* residual = nullptr;  ///< of the image
  sdk::Activation activation = {};
  T* y = nullptr;          ///< row y_row of the image
  std::int64_t y_row = 0;  ///< 0 with a residual
  std::int64_t first_row = 0, end_row = 0;
  std::int64_t first_channel = 0, end_channel = 0;
  /// Sums of the stored results of segment_rows rows each, from row 0 of the image on, sums_step elements apart; they begin at 0 with the
  /// first row of a segment. NULL: none.
  double* sums = nullptr;
  std::int64_t sums_step = 0, segment_rows = 1;
};

/// Computes a part of the results on the calling thread. Instantiated for bf16, float and double.
template <class T>
void depthwise_band(const DepthwiseBand<T>& band);

/// The means of a call with two outputs, from sums of segments of rows, which do not depend on the number of threads.
class PixelMeans {
 public:
  /// `scratch`: depthwise_means_scratch() bytes, if the call has a second output.
  PixelMeans(const ConvGeometry& g, const sdk::Call& call, void* scratch);

  /// `row`, or the first row of a segment after it: bands of rows are divided there.
  std::int64_t first_row(std::int64_t row) const;
  /// Where the band, of this image, adds its results.
  template <class T>
  void describe(DepthwiseBand<T>& band, std::int64_t image) const {
    if (sums_ != nullptr) band.sums = sums_ + image * segments_ * step_;
    band.sums_step = step_;
    band.segment_rows = segment_rows_;
  }
  /// Writes the means, when all bands are computed.
  void finish() const;

 private:
  const ConvGeometry& g_;
  const sdk::Operand* means_ = nullptr;
  double* sums_ = nullptr;
  std::int64_t segment_rows_ = 1, segments_ = 1, step_ = 0;
};

}  // namespace tenon::openblas
