// SPDX-License-Identifier: Apache-2.0
// integer_products.h - launches of kernel/integer_products.cl: operands of 8-bit integers, by index in the call.
#pragma once

#include <algorithm>
#include <string>

#include <tenon/sdk/kernel.h>

#include "conv/conv.h"
#include "gemm/stacks.h"

namespace tenon::opencl {

/// The operands of a product by index: the zero point of a is a_zero_point. With `requantised` the scales are operands 1, 4 and 6, the zero
/// point of y is operand 7, and a bias may be operand 8.
struct IntegerOperands {
  std::uint32_t a, a_zero_point, b, b_zero_point;
  bool requantised;
};

inline std::string byte_type(const char* name, const sdk::Operand& x) {
  return std::string(" -D") + name + (x.dtype == TENON_DTYPE_I8 ? "=char" : "=uchar");
}

inline std::string integer_options(const sdk::Call& call, const IntegerOperands& at) {
  std::string options = byte_type("A", call.inputs[at.a]) + byte_type("B", call.inputs[at.b]);
  if (!at.requantised) return options;
  const bool is_signed = call.outputs[0].dtype == TENON_DTYPE_I8;
  return options + byte_type("Y", call.outputs[0]) + " -DREQUANTISED" +
         (is_signed ? " -DY_LOW=-128 -DY_HIGH=127" : " -DY_LOW=0 -DY_HIGH=255");
}

/// Sets OPERANDS and RESULT_PARAMETERS.
inline Launch& add_integer_operands(Launch& launch, const sdk::Call& call, const IntegerOperands& at) {
  const auto per_line = [&](std::uint32_t operand) {
    return static_cast<cl_int>(call.has_input(operand) && call.inputs[operand].rank > 0);
  };
  launch.in(call, at.a).in(call, at.b).in(call, at.a_zero_point).in(call, at.b_zero_point);
  launch.value(per_line(at.a_zero_point)).value(per_line(at.b_zero_point)).out(call, 0);
  if (at.requantised) launch.in(call, 8).in(call, 1).in(call, 4).in(call, 6).in(call, 7).value(per_line(4));
  return launch;
}

inline void multiply_integers(const sdk::Call& call, const IntegerOperands& at) {
  const sdk::Operand &a = call.inputs[at.a], &b = call.inputs[at.b];
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  const std::int64_t m = a.rank == 1 ? 1 : a.shape[a.rank - 2], n = b.rank == 1 ? 1 : b.shape[b.rank - 1], k = a.shape[a.rank - 1];
  Launch launch(call, sources::integer_products, "multiply", integer_options(call, at));
  launch.value(stack_of(a, b)).value(m).value(n).value(k);
  add_integer_operands(launch, call, at).over(count);
}

inline void convolve_integers(const sdk::Call& call, const IntegerOperands& at) {
  const ConvTerms terms(call, call.inputs[at.a], call.inputs[at.b], call.outputs[0]);
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  Launch launch(call, sources::integer_products, "convolve", integer_options(call, at));
  launch.value(terms.windows).value(terms.groups).value(count);
  add_integer_operands(launch, call, at).over(count);
}

}  // namespace tenon::opencl
