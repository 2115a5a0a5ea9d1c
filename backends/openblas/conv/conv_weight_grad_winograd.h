// SPDX-License-Identifier: Apache-2.0
// conv_weight_grad_winograd.h - dw of a 3x3 convolution of f32 or bf16 by Winograd in f32, with a quarter of the multiplications.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/host.h>

#include "conv/conv_geometry.h"

namespace tenon::openblas {

/// dw[o, c] = G' [ sum over tiles of (A dy[o] A') * (B' x[c] B) ] G, the transpose of Winograd's F(4x4, 3x3): a tile has 4x4 pixels of dy
/// and 6x6 of x; * is the elementwise product, and the sums over all tiles of each of the 36 elements are a matrix product. Results of bf16
/// are rounded once.
///
/// Threads  tasks, and hence the bits, depend only on the geometry.
/// Source   Lavin, Gray: Fast Algorithms for Convolutional Neural Networks (2016), section 4.3.
class WeightGradWinograd {
 public:
  /// Whether g has a 3x3 kernel of stride 1, enough channels and pixels, and this is faster than direct sums whose multiply-adds take
  /// `direct_cost` times as long as those of f32.
  static bool pays(const ConvGeometry& g, double direct_cost);

  explicit WeightGradWinograd(const ConvGeometry& g);
  /// Bytes of working memory, aligned to 64.
  std::size_t scratch(const sdk::Host& host) const;
  template <class T>
  void run(const sdk::Host& host, const T* dy, const T* x, char* memory, T* dw) const;

 private:
  struct Work;
  std::int64_t tasks() const { return channel_blocks_ * out_blocks_ * slots_; }
  std::int64_t part_size() const { return slots_ == 1 ? 0 : slots_ * g_.weights(); }
  std::int64_t work_size() const;
  template <class T, class Out>
  void run_task(std::int64_t task, const T* dy, const T* x, float* memory, Out* out) const;
  template <class T>
  void transform(const Work& work, const T* dy, const T* x, std::int64_t first, std::int64_t count) const;
  void multiply(const Work& work, std::int64_t count, bool adds) const;

  const ConvGeometry& g_;
  std::int64_t tile_rows_, tile_columns_;   ///< of an image
  std::int64_t tiles_;                      ///< of all images
  std::int64_t channel_block_, out_block_;  ///< channels of x and of dy of a task
  std::int64_t channel_blocks_ = 0, out_blocks_ = 0;
  std::int64_t slots_ = 1, slot_tiles_ = 0;                  ///< parts of the tiles, summed at the end
  std::int64_t x_plane_ = 0, dy_plane_ = 0, sum_plane_ = 0;  ///< distances of the 36 matrices of transformed x, of dy, and of the sums
};

}  // namespace tenon::openblas
