// SPDX-License-Identifier: Apache-2.0
// packed_attention.h - attention by the tiles of gemm/panels.h: keys and values are packed once for all queries of a head, or for
// each block of queries if there are few heads for the threads.
#pragma once

#include <cstddef>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// The op Attention; q, k and v may have any strides between rows and heads, and with Call::merged_heads so has y. Instantiated for bf16,
/// float and double. Scores, weights and sums of bf16 are f32, and a weight is multiplied as the sum of two bf16, which have 16 bits of it.
template <class T>
void packed_attention(const sdk::Call& call);

/// The bytes that it needs at call.scratch.
template <class T>
std::size_t packed_attention_scratch(const sdk::Call& call);

}  // namespace tenon::openblas
