// conv_weight_grad_winograd.h - dw of a 3x3 convolution with a quarter of the multiplications.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/host.h>

#include "conv_geometry.h"

namespace tenon::openblas {

/// dw[o, c] = G' [ sum over tiles of (A dy[o] A') * (B' x[c] B) ] G, the transpose of Winograd's F(4x4, 3x3): tiles of 4x4 pixels of dy,
/// which see 6x6 of x; * multiplies element by element, and the sums of each of the 36 elements over all tiles are a product of matrices.
///
/// Threads  the blocks and so the bits depend on the geometry alone.
/// Source   Lavin, Gray: Fast Algorithms for Convolutional Neural Networks (2016), section 4.3, and the matrices of F(4x4, 3x3) there.
class WeightGradWinograd {
 public:
  /// A 3x3 kernel of stride 1 with enough channels and pixels.
  static bool pays(const ConvGeometry& g);

  explicit WeightGradWinograd(const ConvGeometry& g);
  /// Bytes of working memory, aligned to 64; bounded whatever the number of images.
  std::size_t scratch() const;
  void run(const sdk::Host& host, const float* dy, const float* x, char* memory, float* dw) const;

 private:
  struct Memory;
  Memory parts(char* memory) const;
  void transform(const Memory& memory, const float* dy, const float* x, std::int64_t first, std::int64_t begin, std::int64_t end) const;

  const ConvGeometry& g_;
  std::int64_t tile_rows_, tile_columns_;  ///< of an image
  std::int64_t tiles_;                     ///< of all images
  std::int64_t block_;                     ///< tiles transformed at a time
  // Distances of the 36 matrices: of x (block, channels), of dy (block, out_channels), of the sums (out_channels, channels).
  std::int64_t x_plane_, dy_plane_, sum_plane_;
};

}  // namespace tenon::openblas
