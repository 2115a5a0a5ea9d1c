// SPDX-License-Identifier: Apache-2.0
// clblast_gemm.h - products by CLBlast.
#pragma once

#include <cstdint>

#include "device/device.h"
#include "libraries/clblast.h"

namespace tenon::opencl {

/// Whether a batch of products is large enough. Smaller ones are one launch of our own kernels: CLBlast makes several, and computes tiles.
/// The limits are a guess, not measured.
constexpr bool worth_clblast(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  return m * n * k >= 16 * 16 * 16 && m * n * k * batch >= 64 * 64 * 64;
}

/// C = alpha op(A) op(B) + beta C for each entry of a batch. Sizes are at least 1.
template <class T>
struct ClblastGemm {
  struct Operand {
    Place data;
    std::int64_t ld, stride = 0;  ///< in elements
    CLBlastTranspose trans = CLBlastTransposeNo;
  };
  CLBlastLayout layout;
  std::int64_t m, n, k, batch = 1;
  T alpha, beta;
  Operand a, b, c;
};

/// Submits the product to CLBlast. Returns false, and does nothing, for small products, for operands that CLBlast cannot address, and
/// without CLBlast.
///
/// Dtypes  f32, f64, and complex ones of both
/// Threads  any; takes Device::submission, so no Launch may be open
/// Errors  those of CLBlast, VENDOR_ERROR or OUT_OF_MEMORY
template <class T>
bool clblast_gemm(Stream& stream, const ClblastGemm<T>& product);

}  // namespace tenon::opencl
