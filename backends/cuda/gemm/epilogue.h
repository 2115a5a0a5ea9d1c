// SPDX-License-Identifier: Apache-2.0
// epilogue.h - the epilogue of a product: an addend, a bias, an activation.
#pragma once

#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "device/device.h"

namespace tenon::cuda {

/// y = relu_grad(activation(y + beta c + bias)), y (rows, n) dense, of a floating dtype; without `reads_y`, y is taken as 0. f16 and bf16
/// are computed in f32 and rounded once.
struct Epilogue {
  tenon_dtype dtype = TENON_DTYPE_NONE;
  std::int64_t rows = 0;
  std::int64_t n = 0;
  void* y = nullptr;
  bool reads_y = true;
  const void* c = nullptr;  ///< element (i, j) at c[i * c_row + j * c_column]; NULL: none
  std::int64_t c_row = 0;
  std::int64_t c_column = 0;
  double beta = 0;
  const void* bias = nullptr;  ///< (n), dense; NULL: none
  sdk::Activation activation = {};
  const void* relu_result = nullptr;  ///< of the layout of y, as of sdk::Epilogue; NULL: none
};
void apply_epilogue(Stream& stream, const Epilogue& work);

}  // namespace tenon::cuda
