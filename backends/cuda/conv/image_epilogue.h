// SPDX-License-Identifier: Apache-2.0
// image_epilogue.h - the epilogue of a convolution as a separate pass over the image: channel biases, an addend, an activation.
#pragma once

#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "device/device.h"

namespace tenon::cuda {

/// y = activation(y + biases + residual), y dense of a floating dtype. f16 and bf16 are computed in f32 and rounded once.
struct ImageEpilogue {
  tenon_dtype dtype = TENON_DTYPE_NONE;
  std::int64_t count = 0;     ///< elements of y
  std::int64_t channels = 1;  ///< of y
  std::int64_t inner = 1;     ///< elements from one channel to the next: 1 with channels last
  void* y = nullptr;
  const void* biases[2] = {};      ///< (channels), dense; NULL: none
  const void* residual = nullptr;  ///< same layout as y; NULL: none
  sdk::Activation activation = {};

  bool is_nothing() const {
    return biases[0] == nullptr && biases[1] == nullptr && residual == nullptr && activation == sdk::Activation::none;
  }
};
void apply_epilogue(Stream& stream, const ImageEpilogue& work);

}  // namespace tenon::cuda
