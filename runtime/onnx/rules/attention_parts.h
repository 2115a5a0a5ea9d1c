// SPDX-License-Identifier: Apache-2.0
// onnx/rules/attention_parts.h - what the attention ops of ai.onnx and com.microsoft have in common. B is the batch, H the heads of q, G
// those of k and v, S the queries, L the keys, D and E the sizes of a head.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include <tenon/graph.h>

#include "onnx/node.h"

namespace tenon::onnx {

/// (B, S, H D) -> (B, H, S, D). Errors: another rank; a last dimension that `heads` does not divide.
Value split_heads(Node& node, Value x, std::int64_t heads);
/// (B, H, S, D) -> (B, S, H D).
Value merge_heads(Value x);
/// (B, G, L, D) -> (B, heads, L, D): each head repeated for the neighbouring heads of q that share it.
Value repeat_heads(Node& node, Value x, std::int64_t heads);
/// The keys or values of earlier steps (B, G, P, D) before those of this one (B, G, L, D); `past` may be absent.
Value with_past(Node& node, Value past, Value x);

/// Which keys a query sees. Query s has position s + offset, where the offset is the number of keys before the first query.
struct Visibility {
  bool causal = false;      ///< keys l <= s + offset
  std::int64_t left = -1;   ///< >= 0: keys l >= s + offset - left
  std::int64_t right = -1;  ///< >= 0: keys l <= s + offset + right
  std::int64_t offset = 0;  ///< of all batches
  Value offsets = {};       ///< (B) i64: instead of `offset`, one for each batch
  Value lengths = {};       ///< (B) i64: keys l < lengths[b]; may be absent
};
/// Whether query s sees key l: bool, (S, L) or, with offsets or lengths, (B, 1, S, L) or (B, 1, 1, L). Absent if every query sees all keys.
Value visible_keys(Node& node, const Visibility& visibility, std::int64_t queries, std::int64_t keys);

/// A mask as a term of the scores: bool as 0 where the query sees the key, else `hidden`; numbers as they are, in `dtype`. Absent stays
/// absent.
Value additive_mask(Node& node, Value mask, DType dtype, double hidden = -std::numeric_limits<double>::infinity());
/// a + b, of which either may be absent.
Value add_masks(Value a, Value b);
/// A mask (..., L') with L' < keys continued by keys that no query sees. Of a bool or an additive mask.
Value extend_mask(Node& node, Value mask, std::int64_t keys);

/// Operands and options of attend.
struct AttentionCall {
  Value q, k, v;    ///< (B, H, S, D), (B, G, L, D), (B, G, L, E) with the past; G divides H
  Value mask = {};  ///< additive, broadcasts to (B, H, S, L); may be absent
  Visibility visibility = {};
  std::optional<double> scale = {};  ///< default: 1 / sqrt(D)
  double softcap = 0;                ///< > 0: scores are softcap tanh(scores / softcap)
  /// The softmax is computed in this dtype if it is wider than that of q; the kernel computes with f32 for 16 bits.
  DType softmax_dtype = DType::none;
  /// Composes scores and probabilities of other ops, so that they are results. Without it this is done only for what the kernel of
  /// attention lacks: softcap, and a softmax of f64 for narrower operands.
  bool keeps_scores = false;
};
/// Results of attend, all (B, H, S, ...).
struct AttentionResult {
  Value y;  ///< (B, H, S, E)
  // (B, H, S, L), with keeps_scores:
  Value products;       ///< scale q k'
  Value capped;         ///< after softcap
  Value masked;         ///< with the masks added
  Value probabilities;  ///< after the softmax
};
/// softmax(softcap(scale q k') + mask) v; a query that sees no key gets zeros. Uses the kernel of attention where it can.
AttentionResult attend(Node& node, const AttentionCall& call);

/// Rotates the first 2 R elements of the last dimension of x (..., D) by the angles whose cosines and sines (..., R) are given and
/// broadcast: element i with i + R, or 2 i with 2 i + 1 if interleaved. The other elements stay.
Value rotate(Node& node, Value x, Value cosines, Value sines, bool interleaved);
/// Rows of a cache of cosines or sines (P, R) for positions (B, S) or (1) of the first query, as (B, 1, S, R) or (1, 1, S, R); without
/// positions `cache` itself is (B, S, R) and becomes (B, 1, S, R).
Value angles_at(Node& node, Value cache, Value positions, std::int64_t length);

}  // namespace tenon::onnx
