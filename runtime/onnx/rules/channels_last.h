// SPDX-License-Identifier: Apache-2.0
// onnx/rules/channels_last.h - images (N, d..., C) for ops that expect (N, C, d...).
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/functions.h>

namespace tenon::onnx {

/// (N, d..., C) -> (N, C, d...).
inline Value to_channels_first(Value x) {
  const auto rank = static_cast<std::int64_t>(x.shape().rank());
  if (rank < 3) return x;
  std::vector<std::int64_t> permutation{0, rank - 1};
  for (std::int64_t i = 1; i < rank - 1; ++i) permutation.push_back(i);
  return ops::transpose(x, permutation);
}

/// (N, C, d...) -> (N, d..., C).
inline Value to_channels_last(Value x) {
  const auto rank = static_cast<std::int64_t>(x.shape().rank());
  if (rank < 3) return x;
  std::vector<std::int64_t> permutation{0};
  for (std::int64_t i = 2; i < rank; ++i) permutation.push_back(i);
  permutation.push_back(1);
  return ops::transpose(x, permutation);
}

}  // namespace tenon::onnx
