// SPDX-License-Identifier: Apache-2.0
// onnx/rules/microsoft_attention.h - the attention ops of com.microsoft. B is the batch, H the heads, S the queries, L the keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "onnx/node.h"

namespace tenon::onnx {

/// What Attention and its quantised form have in common.
struct SelfAttention {
  Value projected;                  ///< (B, S, D + D + E): queries, keys and values of all heads
  std::vector<std::int64_t> sizes;  ///< D, D, E
  std::size_t mask = 0;             ///< operand mask_index, which may be absent
  std::size_t past = 0;             ///< operand (2, B, H, P, D / H), which may be absent
  Value bias = {};                  ///< term of the scores (B or 1, H or 1, S, L); may be absent
};
/// Sets the results output and present of a node with the attributes of Attention.
void self_attention(Node& node, const SelfAttention& attention);

// Rules.
void microsoft_attention(Node& node);
void multi_head_attention(Node& node);
void group_query_attention(Node& node);
void microsoft_rotary_embedding(Node& node);

}  // namespace tenon::onnx
