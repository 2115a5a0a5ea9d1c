// SPDX-License-Identifier: Apache-2.0
// onnx/rules/microsoft_attention.cpp - operands of the attention ops of com.microsoft: packed projections, padding masks and caches.
#include "onnx/rules/microsoft_attention.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <tenon/functions.h>

#include "onnx/rules/attention_parts.h"
#include "onnx/rules/dtypes.h"
#include "onnx/rules/scatter.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

/// The attribute scale; 0 stands for the default.
std::optional<double> scale_of(const Node& node) {
  const double scale = node.number("scale", 0);
  return scale == 0 ? std::nullopt : std::optional(scale);
}

std::int64_t count_attribute(const Node& node, const char* name) {
  const std::int64_t count = node.integer(name);
  if (count < 1 || count > 0x7fffffff) node.fail(fmt::format("expected {} of 1 to 2147483647, got {}", name, count));
  return count;
}

/// mask_index or key_padding_mask as a term of the scores of `batch` sequences, whose first query comes after `past` keys: 0, or
/// mask_filter_value for keys that are padding. It lists lengths (B), ends and starts (2 B), or flags of the keys (B, L), (B, S, L) or
/// (B, 1, max, max).
Value padding_mask(Node& node, Value mask, std::int64_t batch, std::int64_t queries, std::int64_t past, std::int64_t keys, DType dtype) {
  if (!mask.present()) return mask;
  const Shape shape = mask.shape();
  const auto fail = [&] {
    node.fail(
        fmt::format("expected a mask of ({0}), ({1}), ({0},{3}) or ({0},{2},{3}), got {4}", batch, 2 * batch, queries, keys, shape.str()));
  };
  Value visible;
  if (shape.rank() == 1) {
    if (shape[0] == 3 * batch + 2 && batch > 0) {
      node.unsupported(
          "expected a mask of lengths or flags, got cumulated lengths (3 B + 2) for a kernel of ONNX Runtime: export the "
          "model without its CUDA optimisations");
    }
    if (shape[0] != batch && shape[0] != 2 * batch) fail();
    const Value key = node.constant(counting_tensor(node, 0, keys));
    const auto list = [&](std::int64_t first) {
      return ops::reshape(ops::slice(cast_to(mask, DType::i64), 0, first, first + batch), Shape{batch, 1, 1, 1});
    };
    visible = ops::less(key, list(0));
    if (shape[0] != batch) visible = ops::logical_and(visible, ops::greater_equal(key, list(batch)));
  } else {
    if (shape.rank() == 2 && shape[1] == 1 && keys != 1) return {};  // stands for no mask in exports of GPT-2
    if (shape.rank() == 4 && shape[2] >= past + queries && shape[3] >= keys) {
      mask = ops::slice(ops::slice(mask, 2, past, past + queries), 3, 0, keys);
    } else if (shape.rank() == 2 && shape[1] == keys) {
      mask = ops::reshape(mask, Shape{shape[0], 1, 1, keys});
    } else if (shape.rank() == 3 && shape[1] == queries && shape[2] == keys) {
      mask = ops::reshape(mask, Shape{shape[0], 1, queries, keys});
    } else {
      fail();
    }
    visible = ops::greater(mask, node.scalar(mask.dtype(), 0));
  }
  return additive_mask(node, visible, dtype, node.number("mask_filter_value", -10000));
}

/// attention_bias in the dtype of the scores.
Value scores_bias(Value bias, DType dtype) {
  return bias.present() ? cast_to(bias, dtype) : bias;
}

/// Part `i` of `past` (2, B, H, P, D), the keys or the values.
Value part_of_past(Value past, std::int64_t i) {
  const Shape shape = past.shape();
  return ops::reshape(ops::slice(past, 0, i, i + 1), Shape{shape[1], shape[2], shape[3], shape[4]});
}

/// The parts of x (B, S, heads, parts, size) as (B, S, heads size).
std::vector<Value> unpacked(Node& node, Value x, std::int64_t heads, std::int64_t parts) {
  const Shape shape = x.shape();
  if (shape[2] != heads || shape[3] != parts) {
    node.fail(fmt::format("expected (batch, length, {}, {}, size), got {}", heads, parts, shape.str()));
  }
  std::vector<Value> values;
  for (std::int64_t i = 0; i < parts; ++i) {
    values.push_back(ops::reshape(ops::slice(x, 3, i, i + 1), Shape{shape[0], shape[1], shape[2] * shape[4]}));
  }
  return values;
}

Shape expect_rank(const Node& node, Value x, std::size_t rank, const char* what) {
  const Shape shape = x.shape();
  if (shape.rank() != rank) node.fail(fmt::format("expected {}, got {}", what, shape.str()));
  return shape;
}

}  // namespace

void self_attention(Node& node, const SelfAttention& attention) {
  const Shape shape = expect_rank(node, attention.projected, 3, "projections (batch, length, size)");
  const std::int64_t heads = count_attribute(node, "num_heads");
  if (node.flag("past_present_share_buffer")) {
    node.unsupported("expected past and present of their own, got past_present_share_buffer: export the model without it");
  }
  if (node.flag("do_rotary")) {
    node.unsupported("expected do_rotary=0, since the angles are not operands: export the model without fused attention");
  }
  const std::vector<Value> parts = ops::split(attention.projected, attention.sizes, 2);
  AttentionCall call;
  call.q = split_heads(node, parts[0], heads);
  call.k = split_heads(node, parts[1], heads);
  call.v = split_heads(node, parts[2], heads);
  std::int64_t before = 0;
  if (node.has_input(attention.past)) {
    const Value past = node.input(attention.past);
    const Shape cache = expect_rank(node, past, 5, "a past (2, batch, heads, length, size)");
    if (cache[0] != 2) node.fail(fmt::format("expected a past of keys and values (2, ...), got {}", cache.str()));
    call.k = with_past(node, part_of_past(past, 0), call.k);
    call.v = with_past(node, part_of_past(past, 1), call.v);
    before = cache[3];
  }
  if (node.needs_output(1)) {
    if (call.k.shape() != call.v.shape()) {
      node.unsupported(fmt::format("expected keys and values of one size for the result present, got {} and {}", call.k.shape().str(),
                                   call.v.shape().str()));
    }
    node.output(1, ops::stack({call.k, call.v}, 0));
  }
  const DType dtype = call.q.dtype();
  const Value padding = padding_mask(node, node.optional_input(attention.mask), shape[0], shape[1], before, call.k.shape()[2], dtype);
  call.mask = add_masks(padding, scores_bias(attention.bias, dtype));
  call.visibility.causal = node.flag("unidirectional");
  call.visibility.offset = before;
  call.scale = scale_of(node);
  node.output(0, merge_heads(attend(node, call).y));
}

void microsoft_attention(Node& node) {
  const Value x = node.input(0), w = node.input(1);
  expect_rank(node, x, 3, "x (batch, length, size)");
  const std::int64_t size = expect_rank(node, w, 2, "weights (size, sizes of queries, keys and values)")[1];
  SelfAttention attention{ops::matmul(x, w), node.integers("qkv_hidden_sizes"), 3, 4, node.optional_input(5)};
  if (attention.sizes.empty()) attention.sizes = {size / 3, size / 3, size / 3};
  const std::vector<std::int64_t>& sizes = attention.sizes;
  const bool positive = std::all_of(sizes.begin(), sizes.end(), [&](std::int64_t part) { return part > 0 && part <= size; });
  if (sizes.size() != 3 || !positive || sizes[0] != sizes[1] || sizes[0] + sizes[1] + sizes[2] != size) {
    node.fail(fmt::format("expected sizes of queries, keys and values that add up to {}, those of queries and keys equal, got {} sizes",
                          size, sizes.size()));
  }
  if (node.has_input(2)) attention.projected = ops::add(attention.projected, node.input(2));
  self_attention(node, attention);
}

void multi_head_attention(Node& node) {
  const std::int64_t heads = count_attribute(node, "num_heads");
  if (node.has_input(8) || node.has_input(9)) {
    node.unsupported("expected past and present of their own, got a shared cache of a decoding loop: export the decoder without it");
  }
  Value q = node.input(0), k = node.optional_input(1), v = node.optional_input(2);
  if (q.shape().rank() == 5) {
    const std::vector<Value> parts = unpacked(node, q, heads, 3);
    q = parts[0], k = parts[1], v = parts[2];
  } else if (k.present() && k.shape().rank() == 5) {
    const std::vector<Value> parts = unpacked(node, k, heads, 2);
    k = parts[0], v = parts[1];
  }
  if (!k.present() || !v.present()) node.fail("expected keys and values, or packed queries of rank 5, got neither");
  const bool cached = k.shape().rank() == 4;  // keys and values of an encoder, already (B, H, L, D)
  expect_rank(node, q, 3, "queries (batch, length, size)");
  expect_rank(node, k, cached ? 4 : 3, "keys (batch, length, size)");
  expect_rank(node, v, cached ? 4 : 3, "values of as many dimensions as the keys");
  if (node.has_input(3)) {
    const Value bias = node.input(3);
    const auto add_bias = [&](Value x, std::int64_t first) {
      const std::int64_t size = x.shape()[2];
      if (bias.shape().rank() != 1 || bias.shape()[0] < first + size) {
        node.fail(fmt::format("expected a bias of the sizes of queries, keys and values, got {}", bias.shape().str()));
      }
      return ops::add(x, ops::slice(bias, 0, first, first + size));
    };
    const std::int64_t size = q.shape()[2];
    q = add_bias(q, 0);
    if (!cached) k = add_bias(k, size), v = add_bias(v, 2 * size);
  }
  AttentionCall call;
  call.q = split_heads(node, q, heads);
  call.k = with_past(node, node.optional_input(6), cached ? k : split_heads(node, k, heads));
  call.v = with_past(node, node.optional_input(7), cached ? v : split_heads(node, v, heads));
  const Shape queries = call.q.shape();
  const std::int64_t keys = call.k.shape()[2], before = node.has_input(6) ? node.input(6).shape()[2] : 0;
  const DType dtype = call.q.dtype();
  const Value padding = padding_mask(node, node.optional_input(4), queries[0], queries[2], before, keys, dtype);
  call.mask = add_masks(padding, scores_bias(node.optional_input(5), dtype));
  call.visibility.causal = node.flag("unidirectional");
  call.visibility.offset = before;
  call.scale = scale_of(node);
  call.keeps_scores = node.needs_output(3);
  const AttentionResult result = attend(node, call);
  node.output(0, merge_heads(result.y));
  node.output(1, call.k);
  node.output(2, call.v);
  if (call.keeps_scores) node.output(3, result.masked);
}

namespace {

/// Keys or values after those of the cache.
struct Cached {
  Value all;      ///< (B, G, total, D): of earlier and of these queries
  Value present;  ///< the same in a buffer as long as the past, if that is longer
};

/// A call of GroupQueryAttention: of `total` keys the last S belong to its queries.
class Cache {
 public:
  Cache(Node& node, std::int64_t batch, std::int64_t queries) : node_(node), batch_(batch), queries_(queries) {
    total_ = node.known_integer(6);
    past_length_ = node.has_input(3) ? expect_rank(node, node.input(3), 4, "a past (batch, heads, length, size)")[2] : 0;
    if (total_ < queries_ || total_ - queries_ > past_length_) {
      node.fail(fmt::format("expected a total_sequence_length of {} to {}: {} queries after at most {} keys of the past, got {}", queries_,
                            queries_ + past_length_, queries_, past_length_, total_));
    }
    const Value lengths = node.input(5);
    if (lengths.shape().count() != batch) {
      node.fail(fmt::format("expected seqlens_k ({}), got {}", batch, lengths.shape().str()));
    }
    last_ = ops::reshape(cast_to(lengths, DType::i64), Shape{batch});
  }

  std::int64_t total() const { return total_; }
  /// Whether the sequences of the batch have pasts of lengths that are known only when the program runs.
  bool ragged() const { return batch_ > 1 && total_ > queries_; }
  /// Position of the first query of each sequence: i64 (B).
  Value offsets() const { return ops::add(last_, static_cast<double>(1 - queries_)); }
  /// Length of each sequence: i64 (B).
  Value lengths() const { return ops::add(last_, 1); }

  /// x (B, G, S, D) with operand `past`.
  Cached extend(std::size_t past, Value x) const {
    const Value before = node_.optional_input(past);
    if (!before.present()) return {x, x};
    const Shape cache = expect_rank(node_, before, 4, "a past (batch, heads, length, size)"), now = x.shape();
    if (cache[0] != now[0] || cache[1] != now[1] || cache[2] != past_length_ || cache[3] != now[3]) {
      node_.fail(fmt::format("expected a past ({},{},{},{}), got {}", now[0], now[1], past_length_, now[3], cache.str()));
    }
    if (!ragged()) {
      std::vector<Value> parts;
      if (total_ > queries_) parts.push_back(ops::slice(before, 2, 0, total_ - queries_));
      parts.push_back(x);
      const Value all = parts.size() == 1 ? x : ops::concat(parts, 2);
      return {all, total_ < past_length_ ? ops::concat({all, ops::slice(before, 2, total_, past_length_)}, 2) : all};
    }
    const Value buffer = past_length_ < total_ ? ops::pad(before, {{0, 0}, {0, 0}, {0, total_ - past_length_}, {0, 0}}) : before;
    const Value query = node_.constant(counting_tensor(node_, 0, queries_).reshape({1, queries_}));
    const Value present = updated_by_sample(node_, buffer, ops::add(ops::reshape(offsets(), Shape{batch_, 1}), query), x, 2);
    return {total_ < present.shape()[2] ? ops::slice(present, 2, 0, total_) : present, present};
  }

  /// The rows of a cache of cosines or sines for the queries, (B or 1, 1, S, R).
  Value angles(std::size_t i, DType dtype) const {
    const Value cache = cast_to(node_.input(i), dtype);
    const Shape rows = expect_rank(node_, cache, 2, "cosines and sines (positions, angles)");
    if (rows[0] < total_) {
      node_.fail(fmt::format("expected cosines and sines of at least {} positions, got {}", total_, rows.str()));
    }
    if (node_.has_input(9)) return angles_at(node_, cache, node_.input(9), queries_);
    if (!ragged()) return ops::reshape(ops::slice(cache, 0, total_ - queries_, total_), Shape{1, 1, queries_, rows[1]});
    const Value query = node_.constant(counting_tensor(node_, 0, queries_));
    return angles_at(node_, cache, ops::add(ops::reshape(offsets(), Shape{batch_, 1}), query), queries_);
  }

 private:
  Node& node_;
  std::int64_t batch_, queries_, total_ = 0;
  std::int64_t past_length_ = 0;  ///< of the buffers of the past
  Value last_;                    ///< position of the last key of each sequence: i64 (B)
};

/// Errors: an option of GroupQueryAttention that changes what is computed, or how caches are stored.
void refuse_options(Node& node) {
  const auto quantised = [&](const char* name) { return node.text(name, "NONE") != "NONE"; };
  if (quantised("k_quant_type") || quantised("v_quant_type") || node.has_input(12) || node.has_input(13)) {
    node.unsupported("expected caches of floats, got quantised ones: export the model without a quantised KV cache");
  }
  if (node.flag("sliding_window_cache")) {
    node.unsupported("expected caches of all keys, got sliding_window_cache=1: export the model without it");
  }
  if (node.flag("smooth_softmax") || node.has_input(11)) {
    node.unsupported("expected a plain softmax, got smooth_softmax or head_sink: export the model without fused attention");
  }
  if (node.needs_output(3)) node.unsupported("expected no result output_qk: export the model without qk_output");
}

}  // namespace

void group_query_attention(Node& node) {
  const std::int64_t heads = count_attribute(node, "num_heads"), groups = count_attribute(node, "kv_num_heads");
  refuse_options(node);
  const Value query = node.input(0);
  const Shape shape = expect_rank(node, query, 3, "queries (batch, length, size)");
  std::vector<Value> parts{query, node.optional_input(1), node.optional_input(2)};
  if (!node.has_input(1)) {
    const std::int64_t all = heads + 2 * groups;
    if (shape[2] % all != 0) {
      node.fail(fmt::format("expected packed queries, keys and values of {} heads, got {}", all, shape.str()));
    }
    const std::int64_t size = shape[2] / all;
    parts = ops::split(query, {heads * size, groups * size, groups * size}, 2);
  } else if (!node.has_input(2)) {
    node.fail("expected values with the keys, got none");
  }
  AttentionCall call;
  call.q = split_heads(node, parts[0], heads);
  Value k = split_heads(node, parts[1], groups);
  const Value v = split_heads(node, parts[2], groups);
  if (k.shape()[2] != shape[1] || v.shape()[2] != shape[1]) {
    node.fail(fmt::format("expected as many keys and values as queries, got {} for {}", k.shape().str(), call.q.shape().str()));
  }
  if (node.has_input(14) || node.has_input(15)) {
    const double epsilon = node.number("qk_norm_epsilon", 1e-6);
    call.q = ops::rms_norm(call.q, node.input(14), -1, epsilon);
    k = ops::rms_norm(k, node.input(15), -1, epsilon);
  }
  const Cache cache(node, shape[0], shape[1]);
  if (node.flag("do_rotary")) {
    const bool interleaved = node.flag("rotary_interleaved");
    const Value cosines = cache.angles(7, call.q.dtype()), sines = cache.angles(8, call.q.dtype());
    call.q = rotate(node, call.q, cosines, sines, interleaved);
    k = rotate(node, k, cosines, sines, interleaved);
  }
  const Cached keys = cache.extend(3, k), values = cache.extend(4, v);
  call.k = keys.all;
  call.v = values.all;
  call.visibility.causal = node.flag("causal", true);
  call.visibility.offset = cache.total() - shape[1];
  if (cache.ragged() && call.visibility.causal) call.visibility.offsets = cache.offsets();
  if (shape[0] > 1 && !call.visibility.causal) call.visibility.lengths = cache.lengths();
  const std::int64_t window = node.integer("local_window_size", -1);
  if (window == 0 || (window > 0 && !call.visibility.causal)) {
    node.fail(fmt::format("expected a local_window_size of -1, or of 1 or more keys with causal=1, got {}", window));
  }
  if (window > 0) call.visibility.left = window - 1;  // the key of the query itself is one of them
  call.mask = scores_bias(node.optional_input(10), call.q.dtype());
  call.scale = scale_of(node);
  call.softcap = node.number("softcap", 0);
  node.output(0, merge_heads(attend(node, call).y));
  node.output(1, keys.present);
  node.output(2, values.present);
}

void microsoft_rotary_embedding(Node& node) {
  const Value x = node.input(0);
  const Shape shape = x.shape();
  if (node.flag("is_packed_batching")) {
    node.unsupported("expected sequences of one length, got is_packed_batching=1: export the model without packed batches");
  }
  const Value cosines = cast_to(node.input(2), x.dtype()), sines = cast_to(node.input(3), x.dtype());
  const Shape cache = expect_rank(node, cosines, 2, "cosines and sines (positions, angles)");
  const bool split = shape.rank() == 4;
  if (!split) expect_rank(node, x, 3, "x (batch, length, size) or (batch, heads, length, size)");
  // Without a number of heads, the angles are those of a whole head.
  std::int64_t heads = node.integer("num_heads", 0);
  if (!split && heads < 1) heads = cache[1] == 0 ? 0 : shape[2] / cache[1] / 2;
  const Value apart = split ? x : split_heads(node, x, heads);
  const std::int64_t length = apart.shape()[2];
  const Value positions = node.input(1);
  const Value turned =
      rotate(node, apart, angles_at(node, cosines, positions, length), angles_at(node, sines, positions, length), node.flag("interleaved"));
  node.output(0, split ? turned : merge_heads(turned));
}

}  // namespace tenon::onnx
