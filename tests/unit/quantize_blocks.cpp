// SPDX-License-Identifier: Apache-2.0
// Weights of 4 bits in blocks.
#include <cmath>
#include <vector>

#include "quantize/blocks.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::quantize;

TEST_CASE("quantize blocks: the largest element of a block is exact, and a byte has two elements, the first in its lower half") {
  std::vector<float> row(20, 0.0F);
  row[0] = 8;
  row[1] = -7;
  row[2] = 0.5F;  // a tie between 0 and -1, to even
  row[16] = -4;
  row[17] = 3.5F;
  const BlockWeights result = quantize_blocks(Tensor::of(row, {1, 20}), true, 16);
  CHECK(result.scales.shape() == Shape{1, 2});
  CHECK(result.scales.to_vector<float>() == std::vector<float>{-1, 0.5F});
  CHECK(result.q.shape() == Shape{1, 2, 8});
  const std::vector<std::uint8_t> q = result.q.to_vector<std::uint8_t>();
  CHECK(q[0] == (0 | 15 << 4));  // 8 = (0 - 8) -1, -7 = (15 - 8) -1
  CHECK(q[1] == (8 | 8 << 4));
  CHECK(q[8] == (0 | 15 << 4));  // -4 = (0 - 8) 0.5, 3.5 = (15 - 8) 0.5
  CHECK(q[15] == 0x88);          // beyond the row
}

TEST_CASE("quantize blocks: a matrix and its transpose have the same blocks, each element within a scale of its integer") {
  const std::int64_t k = 50, n = 6;
  Tensor w = Tensor::empty(DType::f32, {k, n});
  for (std::int64_t i = 0; i < k * n; ++i) w.data<float>()[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i)));
  const BlockWeights result = quantize_blocks(w, false, 16), same = quantize_blocks(w.transpose(0, 1).contiguous(), true, 16);
  CHECK(equal(result.q, same.q));
  CHECK(equal(result.scales, same.scales));
  const std::vector<std::uint8_t> q = result.q.to_vector<std::uint8_t>();
  const std::vector<float> scales = result.scales.to_vector<float>();
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t i = 0; i < k; ++i) {
      const std::uint8_t byte = q[static_cast<std::size_t>((row * 4 + i / 16) * 8 + i % 16 / 2)];
      const float scale = scales[static_cast<std::size_t>(row * 4 + i / 16)];
      const int integer = (i % 2 == 0 ? byte & 15 : byte >> 4) - 8;
      // Half a scale, or a whole one where an element of the other sign is larger than 7 scales.
      CHECK(std::fabs(static_cast<float>(integer) * scale - w.data<float>()[i * n + row]) <= std::fabs(scale) * 1.0001F);
    }
  }
}

TEST_CASE("quantize blocks: a block of zeros is zeros") {
  const BlockWeights result = quantize_blocks(Tensor::zeros(DType::f32, {1, 16}), true, 16);
  CHECK(result.scales.to_vector<float>() == std::vector<float>{0});
  CHECK(result.q.to_vector<std::uint8_t>() == std::vector<std::uint8_t>(8, 0x88));
}
