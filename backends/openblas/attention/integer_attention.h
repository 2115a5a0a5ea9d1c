// SPDX-License-Identifier: Apache-2.0
// integer_attention.h - attention of quantised operands, with quantised probabilities: sdk::Traits::quantized_attention.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// Whether a call of MatMulInteger is one.
inline bool is_integer_attention(const sdk::Call& call) {
  return call.input_count == sdk::attention_input::count;
}

// The functions of its traits.
bool fits_integer_attention(const sdk::Call& call);
bool integer_attention_takes_view(const sdk::Call& call, std::uint32_t input);
std::size_t integer_attention_scratch(const sdk::Call& call);

/// y = dequantize(p' v), p' = quantize(softmax(factor dequantize(q k) + mask)), or y quantised
///
/// Sums are exact; what is computed of them is rounded as the nodes would: results do not depend on the blocks that rows are computed in.
void integer_attention(const sdk::Call& call);

}  // namespace tenon::openblas
