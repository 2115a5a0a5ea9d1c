// SPDX-License-Identifier: Apache-2.0
#include "quantize/blocks.h"

#include <algorithm>
#include <cmath>

namespace tenon::quantize {

BlockWeights quantize_blocks(const Tensor& weights, bool is_transposed, std::int64_t block_size) {
  const std::int64_t n = weights.shape()[is_transposed ? 0 : 1], k = weights.shape()[is_transposed ? 1 : 0];
  const std::int64_t blocks = (k + block_size - 1) / block_size;
  BlockWeights result{Tensor::empty(DType::u8, {n, blocks, block_size / 2}), Tensor::empty(DType::f32, {n, blocks})};
  const auto* w = weights.data<float>();
  const auto at = [&](std::int64_t row, std::int64_t i) { return i >= k ? 0.0F : w[is_transposed ? row * k + i : i * n + row]; };
  auto* q = result.q.data<std::uint8_t>();
  auto* scales = result.scales.data<float>();
  for (std::int64_t block = 0; block < n * blocks; ++block) {
    const std::int64_t row = block / blocks, begin = block % blocks * block_size;
    float largest = 0;
    for (std::int64_t i = begin; i < begin + block_size; ++i) {
      if (std::fabs(at(row, i)) > std::fabs(largest)) largest = at(row, i);
    }
    const float scale = largest / -8, per_scale = scale == 0 ? 0 : 1 / scale;
    scales[block] = scale;
    const auto integer = [&](std::int64_t i) {
      return static_cast<unsigned>(std::clamp(std::nearbyint(at(row, i) * per_scale) + 8, 0.0F, 15.0F));
    };
    for (std::int64_t i = 0; i < block_size; i += 2) *q++ = static_cast<std::uint8_t>(integer(begin + i) | integer(begin + i + 1) << 4);
  }
  return result;
}

}  // namespace tenon::quantize
