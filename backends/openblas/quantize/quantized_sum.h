// SPDX-License-Identifier: Apache-2.0
// quantized_sum.h - the sum of two quantised images, quantised again, as one kernel: what joins the branches of a quantised residual net.
#pragma once

#include <tenon/sdk/elementwise.h>

namespace tenon::openblas {

/// y = saturate(round(relu((a - a_zero) a_scale + (b - b_zero) b_scale) / y_scale) + y_zero), each operation rounded to f32.
struct QuantizedSum {
  float a_scale, b_scale, y_scale;
  float a_zero, b_zero;
  std::int32_t y_zero;
  bool relu;
};

/// The kernel for a group DequantizeLinear, DequantizeLinear, Add, Relu (or none), QuantizeLinear over dense operands of i8 or u8 with one
/// scale and one zero point each; NULL for any other group. Results are those of the nodes one by one, bit for bit.
///
/// 3 bytes an element are moved, and about 45 vector instructions done for 64 elements (AVX-512): fixed point where that is exact.
sdk::KernelFunction quantized_sum_of(const sdk::ElementwiseProgram& program);

}  // namespace tenon::openblas
