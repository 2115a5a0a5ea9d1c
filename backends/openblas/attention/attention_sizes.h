// SPDX-License-Identifier: Apache-2.0
// attention_sizes.h - the sizes of attention's operands, and its blocks.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/rounding.h>
#include <tenon/sdk/strided.h>

#include "attention/attention_rows.h"

namespace tenon::openblas {

// A block of scores stays in L2 with its keys and values.
inline constexpr std::int64_t query_block = 64;
inline constexpr std::int64_t key_block = 256;

/// q (B, H, S, D), k (B, G, L, D), v (B, G, L, E), and a mask that broadcasts to (B, H, S, L) or is absent.
struct AttentionSizes {
  std::int64_t batch, heads, groups, queries, keys, size, result;
  bool causal;
  double scale;

  AttentionSizes(const sdk::Call& call, std::uint32_t first)
      : batch(call.inputs[first].shape[0]),
        heads(call.inputs[first].shape[1]),
        groups(call.inputs[first + 1].shape[1]),
        queries(call.inputs[first].shape[2]),
        keys(call.inputs[first + 1].shape[2]),
        size(call.inputs[first].shape[3]),
        result(call.inputs[first + 2].shape[3]),
        causal(call.attr<tenon_attributes_attention>().causal != 0),
        scale(call.attr<tenon_attributes_attention>().scale) {}

  std::int64_t query_blocks() const { return sdk::ceil_div(queries, query_block); }

  /// The head of k and v (b G + g) for a head of q (b H + h).
  std::int64_t group_of(std::int64_t head) const { return head / heads * groups + head % heads / (heads / groups); }
  /// Its first row, where k and v are dense.
  std::int64_t first_key(std::int64_t head) const { return group_of(head) * keys; }

  /// The block of products q k' of queries [s, s + rows) of a head with keys [l, l + columns). `mask` is NULL, or has the strides of the
  /// call's.
  template <class T>
  ScoreBlock<T> score_block(std::int64_t head, std::int64_t s, std::int64_t rows, std::int64_t l, std::int64_t columns, T* scores,
                            const T* mask, const sdk::Strides& mask_strides) const {
    ScoreBlock<T> block;
    block.scores = scores;
    block.rows = rows;
    block.keys = columns;
    block.seen = causal ? s - l + 1 : columns;
    block.seen_step = causal ? 1 : 0;
    block.scale = static_cast<T>(scale);
    if (mask == nullptr) return block;
    const std::int64_t b = head / heads, h = head % heads;
    block.mask = mask + b * mask_strides[0] + h * mask_strides[1] + s * mask_strides[2] + l * mask_strides[3];
    block.mask_row = mask_strides[2];
    block.mask_key = mask_strides[3];
    return block;
  }

  /// One past the last key that any of the queries [s, s + rows) attends to.
  std::int64_t seen(std::int64_t s, std::int64_t rows) const { return causal ? std::min(keys, s + rows) : keys; }
};

}  // namespace tenon::openblas
