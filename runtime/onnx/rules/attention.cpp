// SPDX-License-Identifier: Apache-2.0
// onnx/rules/attention.cpp - Attention, RotaryEmbedding and LinearAttention.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules.h"
#include "onnx/rules/attention_parts.h"
#include "onnx/rules/dtypes.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

/// Q, K or V as (batch, heads, length, size).
Value heads_of(Node& node, std::size_t i, const char* attribute) {
  const Value x = node.input(i);
  if (x.shape().rank() == 4) return x;
  if (x.shape().rank() != 3) node.fail(fmt::format("expected operand {} of rank 3 or 4, got {}", i, x.shape().str()));
  return split_heads(node, x, node.integer(attribute));
}

/// Which keys a query sees: the offset is the length of the past, or what lies before the queries in a cache of nonpad_kv_seqlen keys.
Visibility visibility_of(Node& node, std::int64_t queries) {
  Visibility visibility;
  visibility.causal = node.flag("is_causal");
  visibility.left = node.integer("left_window_size", -1);
  visibility.right = node.integer("right_window_size", -1);
  if (visibility.left < -1 || visibility.right < -1) {
    node.fail(fmt::format("expected window sizes of -1 or more, got {} and {}", visibility.left, visibility.right));
  }
  if (node.has_input(4)) visibility.offset = node.rank(4) == 4 ? node.shape(4)[2] : 0;
  if (!node.has_input(6)) return visibility;
  if (node.has_input(4)) node.fail("expected either nonpad_kv_seqlen or past_key and past_value, got both");
  visibility.lengths = cast_to(node.input(6), DType::i64);
  visibility.offsets = ops::sub(visibility.lengths, static_cast<double>(queries));
  return visibility;
}

/// Since opset 24 a mask may be shorter than the keys, which hides the rest.
template <bool short_masks>
void attention(Node& node) {
  AttentionCall call;
  const bool flat = node.rank(0) == 3;
  if (node.rank(1) != node.rank(0) || node.rank(2) != node.rank(0)) {
    node.fail(
        fmt::format("expected Q, K and V of one rank, got {}, {} and {}", node.shape(0).str(), node.shape(1).str(), node.shape(2).str()));
  }
  if (node.has_input(4) != node.has_input(5)) node.fail("expected past_key and past_value together, got one of them");
  call.q = heads_of(node, 0, "q_num_heads");
  call.k = with_past(node, node.optional_input(4), heads_of(node, 1, "kv_num_heads"));
  call.v = with_past(node, node.optional_input(5), heads_of(node, 2, "kv_num_heads"));
  call.visibility = visibility_of(node, call.q.shape()[2]);
  const DType dtype = call.q.dtype();
  if (node.has_input(3)) {
    Value mask = node.input(3);
    if (mask.dtype() != DType::boolean) mask = cast_to(mask, dtype);
    if (short_masks) mask = extend_mask(node, mask, call.k.shape()[2]);
    call.mask = additive_mask(node, mask, dtype);
  }
  if (node.has("scale")) call.scale = node.number("scale");
  call.softcap = std::max(node.number("softcap", 0), 0.0);
  call.softmax_dtype = node.element_type("softmax_precision", dtype);
  if (!is_floating(call.softmax_dtype)) {
    node.fail(fmt::format("expected a floating softmax_precision, got {}", name_of(call.softmax_dtype)));
  }
  call.keeps_scores = node.needs_output(3);

  const AttentionResult result = attend(node, call);
  node.output(0, flat ? merge_heads(result.y) : result.y);
  if (node.needs_output(1)) node.output(1, call.k);
  if (node.needs_output(2)) node.output(2, call.v);
  if (!node.needs_output(3)) return;
  switch (const std::int64_t mode = node.integer("qk_matmul_output_mode", 0)) {
    case 0:
      return node.output(3, result.products);
    case 1:
      return node.output(3, result.capped);
    case 2:
      return node.output(3, result.masked);
    case 3:
      return node.output(3, result.probabilities);
    default:
      node.fail(fmt::format("expected qk_matmul_output_mode 0, 1, 2 or 3, got {}", mode));
  }
}

void rotary_embedding(Node& node) {
  const Value x = node.input(0);
  const Shape shape = x.shape();
  if (shape.rank() != 3 && shape.rank() != 4) {
    node.fail(fmt::format("expected X (batch, length, hidden) or (batch, heads, length, size), got {}", shape.str()));
  }
  const bool flat = shape.rank() == 3;
  const std::int64_t heads = flat ? node.integer("num_heads") : shape[1];
  if (flat && (heads <= 0 || shape[2] % heads != 0)) {
    node.fail(fmt::format("expected num_heads that divides the last dimension of X {}, got {}", shape.str(), heads));
  }
  const std::int64_t size = flat ? shape[2] / heads : shape[3], length = flat ? shape[1] : shape[2];
  const std::int64_t partial = node.integer("rotary_embedding_dim", 0), rotated = partial == 0 ? size : partial;
  if (rotated <= 0 || rotated > size || rotated % 2 != 0) {
    node.fail(fmt::format("expected an even number of elements to rotate, at most {}, got {}", size, rotated));
  }
  const Value position_ids = node.optional_input(3);
  Value cosines = angles_at(node, node.input(1), position_ids, length), sines = angles_at(node, node.input(2), position_ids, length);
  for (const Value* angles : {&cosines, &sines}) {
    if (angles->shape()[3] == rotated / 2) continue;
    node.fail(fmt::format("expected caches with {} angles for a position, got {}", rotated / 2, angles->shape()[3]));
  }
  const bool interleaved = node.flag("interleaved");
  if (!flat) return node.output(0, rotate(node, x, cosines, sines, interleaved));
  // heads stay behind the positions: this moves no elements
  const auto by_position = [](Value angles) {
    const Shape s = angles.shape();
    return ops::reshape(angles, Shape{s[0], s[2], 1, s[3]});
  };
  const Value apart = ops::reshape(x, Shape{shape[0], length, heads, size});
  node.output(0, ops::reshape(rotate(node, apart, by_position(cosines), by_position(sines), interleaved), shape));
}

/// The steps of x (batch, heads, steps, size) along axis 2, each (batch, heads, 1, size).
std::vector<Value> steps_of(Value x) {
  const std::int64_t steps = x.shape()[2];
  return steps == 1 ? std::vector<Value>{x} : ops::split(x, std::vector<std::int64_t>(static_cast<std::size_t>(steps), 1), 2);
}

/// state = exp(decay_t) state; state += k_t (beta_t (v_t - state' k_t))'; y_t = scale state' q_t, for each step, in f32 or wider. `gated`
/// rules decay, `delta` rules subtract what the state holds for the key.
void linear_attention(Node& node) {
  constexpr std::int64_t max_steps = 2048;
  const std::string_view rule = node.text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") {
    node.fail(fmt::format("expected update_rule linear, gated, delta or gated_delta, got '{}'", rule));
  }
  if (gated != node.has_input(4) || delta != node.has_input(5)) {
    node.fail(fmt::format("expected decay for gated rules and beta for delta rules only; the rule is '{}'", rule));
  }
  const std::int64_t heads = node.integer("q_num_heads"), groups = node.integer("kv_num_heads");
  if (groups <= 0 || heads <= 0 || heads % groups != 0) {
    node.fail(fmt::format("expected q_num_heads that is a multiple of kv_num_heads, got {} and {}", heads, groups));
  }
  const DType dtype = node.dtype(0), wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const auto heads_in = [&](std::size_t i, std::int64_t count) { return cast_to(split_heads(node, node.input(i), count), wide); };
  const Value q = heads_in(0, heads), k = heads_in(1, groups), v = heads_in(2, groups);
  const std::int64_t batch = q.shape()[0], steps = q.shape()[2], keys = q.shape()[3], values = v.shape()[3];
  const std::int64_t hidden = product_of(node, heads, values);
  if (k.shape() != Shape{batch, groups, steps, keys} || v.shape() != Shape{batch, groups, steps, values}) {
    node.fail(fmt::format("expected query, key and value (batch, steps, heads times size), got {}, {} and {}", node.shape(0).str(),
                          node.shape(1).str(), node.shape(2).str()));
  }
  if (steps > max_steps) node.unsupported(fmt::format("expected at most {} steps, which are unrolled, got {}", max_steps, steps));
  Value decay, beta;
  if (gated) {
    const bool per_head = node.rank(4) == 3 && node.shape(4)[2] == groups;
    decay = ops::exp(heads_in(4, groups));
    if (decay.shape() != Shape{batch, groups, steps, per_head ? 1 : keys}) {
      node.fail(fmt::format("expected decay (batch, steps, {} or {}), got {}", groups, groups * keys, node.shape(4).str()));
    }
  }
  if (delta) {
    const std::int64_t rates = node.rank(5) == 3 && node.shape(5)[2] == 1 ? 1 : groups;
    beta = heads_in(5, rates);
    if (beta.shape() != Shape{batch, rates, steps, 1}) {
      node.fail(fmt::format("expected beta (batch, steps, {} or 1), got {}", groups, node.shape(5).str()));
    }
  }
  const Shape state_shape{batch, groups, keys, values};
  if (node.has_input(3) && node.shape(3) != state_shape) {
    node.fail(fmt::format("expected past_state {}, got {}", state_shape.str(), node.shape(3).str()));
  }
  const DType state_dtype = node.has_input(3) ? node.dtype(3) : dtype;
  Value state = node.has_input(3) ? cast_to(node.input(3), wide) : ops::expand(node.scalar(wide, 0), state_shape);
  if (steps == 0) {
    node.output(0, Tensor::zeros(dtype, {batch, 0, hidden}));
    return node.output(1, cast_to(state, state_dtype));
  }

  const auto parts = [](Value x) { return x.present() ? steps_of(x) : std::vector<Value>(); };
  const std::vector<Value> qs = steps_of(q), ks = steps_of(k), vs = steps_of(v), decays = parts(decay), betas = parts(beta);
  const auto as_column = [](Value row) {
    const Shape s = row.shape();
    return ops::reshape(row, Shape{s[0], s[1], s[3], 1});
  };
  std::vector<Value> results;
  for (std::size_t t = 0; t < qs.size(); ++t) {
    if (gated) state = ops::mul(state, as_column(decays[t]));
    const Value written = delta ? ops::mul(betas[t], ops::sub(vs[t], ops::matmul(ks[t], state))) : vs[t];
    state = ops::add(state, ops::mul(as_column(ks[t]), written));
    const Value rows = heads == groups ? qs[t] : ops::reshape(qs[t], Shape{batch, groups, heads / groups, keys});
    results.push_back(ops::reshape(ops::matmul(rows, state), Shape{batch, heads, 1, values}));
  }
  const double given = node.number("scale", 0),
               scale = given == 0 ? 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(keys, 1))) : given;
  node.output(0, cast_to(merge_heads(ops::mul(ops::concat(results, 2), scale)), dtype));
  node.output(1, cast_to(state, state_dtype));
}

}  // namespace

const std::vector<Rule>& attention_rules() {
  static const std::vector<Rule> rules = {
      {"Attention", 23, attention<false>},
      {"Attention", 24, attention<true>},
      {"RotaryEmbedding", 23, rotary_embedding},
      {"LinearAttention", 27, linear_attention},
  };
  return rules;
}

}  // namespace tenon::onnx
