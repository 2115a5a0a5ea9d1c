// SPDX-License-Identifier: Apache-2.0
// winograd_operands.h - what a convolution by Winograd's algorithms reads and writes, with its epilogue, and whether it can have a MaxPool.
#pragma once

#include <tenon/sdk/kernel.h>

#include "conv/winograd_geometry.h"

namespace tenon::openblas {

template <class T>
struct WinogradOperands {
  const T* x = nullptr;
  const float* weights = nullptr;  ///< from winograd_weights
  T* y = nullptr;
  const T* bias = nullptr;      ///< (out_channels), or NULL
  const T* residual = nullptr;  ///< of y's shape, or NULL
  sdk::Activation activation = {};
  bool max_pool = false;  ///< y is (images, out_height / 2, out_width / 2, out_channels): the largest of 2x2 results each. winograd_pools()
};

/// Whether a max_pool can be computed from the results of each tile: windows lie within tiles, and there is no residual and no activation
/// but relu.
inline bool winograd_pools(const WinogradConv& conv, const sdk::Epilogue& epilogue) {
  return conv.results % 2 == 0 && epilogue.residual == nullptr &&
         (epilogue.activation == sdk::Activation::none || epilogue.activation == sdk::Activation::relu);
}

}  // namespace tenon::openblas
