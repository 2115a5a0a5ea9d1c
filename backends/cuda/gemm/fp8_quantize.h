// SPDX-License-Identifier: Apache-2.0
// fp8_quantize.h - matrices of f16 and bf16 quantised to E4M3 with one scale for all of a tensor, which the device computes.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/matrix_view.h>

#include "device/device.h"
#include "gemm/fp8_state.h"

namespace tenon::cuda {

/// Matrices (rows, k) of a tensor, `step` elements from one to the next; k is a multiple of 16, one of the strides of the view is 1.
struct Fp8Tensor {
  const void* data = nullptr;
  sdk::MatrixView view = {};
  std::int64_t entries = 1;  ///< 0: there is none
  std::int64_t step = 0;
  Fp8State* state = nullptr;  ///< receives the scale
  void* codes = nullptr;      ///< receives (entries, rows, k) dense: what is summed is contiguous; aligned to 16
};

/// Bytes of the memory by which the blocks of fp8_quantize share what they have found, aligned to 16.
inline constexpr std::size_t fp8_partials_bytes = std::size_t{16} << 10;

/// Quantises both tensors, or the first alone, by two launches. The scale is the least power of two by which the largest finite absolute
/// value is at most 448, the largest number of E4M3, so that numbers of E4M3 stay as they are; it does not depend on the order in which
/// blocks run. Codes are rounded to nearest even.
void fp8_quantize(Stream& stream, tenon_dtype dtype, const Fp8Tensor& first, const Fp8Tensor& second, void* partials);

}  // namespace tenon::cuda
