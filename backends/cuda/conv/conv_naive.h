// SPDX-License-Identifier: Apache-2.0
// conv_naive.h - convolutions in plain CUDA: one thread per result, which loops over all terms of its sum.
//
// Used for `kernels: naive`, and as the fallback where no cuDNN engine supports a problem.
#pragma once

#include "conv/conv_shape.h"
#include "device/device.h"

namespace tenon::cuda {

/// The direction decides which of x, w and y is computed. Images are (N, C, H, W), or (N, H, W, C) with `channels_last`; w is (K, C /
/// groups, R, S), or, where it is read, (K, R, S, filter_channels) with `filter_channels_last`, of which the first C / groups are used.
struct NaiveConv {
  ConvDirection direction = ConvDirection::forward;
  tenon_dtype dtype = TENON_DTYPE_NONE;
  ConvShape shape;
  bool channels_last = false;
  bool filter_channels_last = false;
  std::int64_t filter_channels = 0;
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
  // Epilogue of the computed image: activation(sum + biases + residual).
  const void* biases[2] = {};      ///< one value per channel; NULL: none
  const void* residual = nullptr;  ///< same layout as the image; NULL: none
  sdk::Activation activation = {};
};

/// f16, bf16 and f32 accumulate in f32, f64 in f64. A result without terms is 0.
void convolve_naively(Stream& stream, const NaiveConv& work);

}  // namespace tenon::cuda
