// conv_naive.h - convolutions in plain CUDA: a thread for each result, which walks over all that it is summed from.
//
// What `kernels: naive` runs, and what serves where no engine of cuDNN does.
#pragma once

#include "conv_shape.h"
#include "device.h"

namespace tenon::cuda {

/// The direction says which of x, w and y is made. Images lie (N, C, H, W), or (N, H, W, C) with `channels_last`; w (K, C / groups, R, S),
/// or (K, R, S, C / groups) if it `is_turned`, where it is read.
struct NaiveConv {
  ConvDirection direction = ConvDirection::forward;
  tenon_dtype dtype = TENON_DTYPE_NONE;
  ConvShape shape;
  bool channels_last = false;
  bool is_turned = false;
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
  // Of the image that is made: activation(sum + biases + residual).
  const void* biases[2] = {};      ///< one number for each channel of it; NULL: none
  const void* residual = nullptr;  ///< lies as it does; NULL: none
  sdk::Activation activation = sdk::Activation::none;
};

/// f16, bf16 and f32 sum in f32, f64 in f64. A result that nothing adds up to is 0.
void convolve_naively(Stream& stream, const NaiveConv& work);

}  // namespace tenon::cuda
