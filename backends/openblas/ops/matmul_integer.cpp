// SPDX-License-Identifier: Apache-2.0
// ops/matmul_integer.cpp - products of matrices of 8-bit integers.
#include "attention/integer_attention.h"
#include "quantize/integer_matmul.h"

namespace tenon::openblas {
namespace {

/// y = (a - a_zero_point) (b - b_zero_point), modulo 2^32, or an attention of such products
template <class T>
void matmul_integer(const sdk::Call& call) {
  if (is_integer_attention(call)) return integer_attention(call);
  if (call.outputs[0].count != 0) integer_matmul(call, sum_operands);
}

constexpr sdk::Traits traits() {
  sdk::Traits traits = integer_matmul_traits<sum_operands>;
  traits.scratch = [](const sdk::Call& call) {
    return is_integer_attention(call) ? integer_attention_scratch(call) : integer_matmul_scratch(call, sum_operands);
  };
  traits.takes_view = [](const sdk::Call& call, std::uint32_t input) {
    return is_integer_attention(call) && integer_attention_takes_view(call, input);
  };
  traits.merges_heads = is_integer_attention;
  traits.quantized_attention = fits_integer_attention;
  return traits;
}

}  // namespace

TENON_KERNEL_WITH(matmul_integer, traits(), std::int8_t, std::uint8_t)

}  // namespace tenon::openblas
