// SPDX-License-Identifier: Apache-2.0
// bf16_attention.h - attention of bf16 by the tiles of gemm/panels.h. Scores, weights and sums are f32.
#pragma once

#include <cstddef>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

std::size_t bf16_attention_scratch(const sdk::Call& call);

/// The op Attention. A weight is multiplied as the sum of two bf16, which have 16 bits of it.
void bf16_attention(const sdk::Call& call);

}  // namespace tenon::openblas
