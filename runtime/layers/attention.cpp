// SPDX-License-Identifier: Apache-2.0
// Attention over the steps of a sequence.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <vector>

#include "layers/rule.h"
#include "layers/sequence.h"

namespace tenon::layers {
namespace {

/// Added to the score of a step that is hidden: its weight is 0 in every dtype. Finite, so that a query without any step to attend to gives
/// a mean and not NaN.
constexpr double hidden_score = -1e4;

void read_attention(LayerKeys& keys, Attention& out_layer) {
  out_layer.heads = keys.count("heads", 1);
  out_layer.causal = keys.get<bool>("causal", false);
  out_layer.kv_heads = keys.get_optional<std::int64_t>("kv_heads", {1, 1 << 30}).value_or(0);
  out_layer.window = keys.get_optional<std::int64_t>("window", {1, 1 << 30}).value_or(0);
  out_layer.rotary = keys.get<bool>("rotary", false);
  out_layer.rotary_base = keys.get<double>("rotary_base", out_layer.rotary_base, {.lowest = 0, .above_lowest = true});
  out_layer.dropout = keys.get<double>("dropout", 0, {.lowest = 0, .highest = 1, .below_highest = true});
  out_layer.memory = keys.get("memory", "");
  out_layer.weights = keys.weights();
}

/// The sizes of one attention.
struct Sizes {
  std::int64_t batch, time, keys, heads, groups, size;  ///< steps of queries and of keys; heads of queries and of keys; features of a head
};

/// x (batch, heads, time, size), each pair of features rotated by the position of its step.
Value rotated(LayerBuilder& builder, const Attention& layer, Value x) {
  const std::int64_t time = x.shape()[2], pairs = x.shape()[3] / 2;
  const auto table = [&](double (*function)(double)) {
    const Value rows = constant_matrix(builder, positions(builder, time), pairs, [&](std::int64_t step, std::int64_t pair) {
      return function(static_cast<double>(step) / std::pow(layer.rotary_base, static_cast<double>(pair) / static_cast<double>(pairs)));
    });
    return rows_of_steps(builder, rows, time);
  };
  return ops::rotary_embedding(x, table([](double angle) { return std::cos(angle); }), table([](double angle) { return std::sin(angle); }));
}

/// The scores to add so that steps are hidden, broadcast to (batch, heads, time, keys); absent: none is. `with_causal`: later steps too.
Value mask(LayerBuilder& builder, const Attention& layer, const Sizes& n, bool with_causal) {
  Value scores;
  const auto add = [&](Value more) { scores = scores.present() ? ops::add(scores, more) : more; };
  if (layer.window > 0 || with_causal) {
    add(constant_matrix(builder, n.time, n.keys, [&](std::int64_t query, std::int64_t key) {
      const bool far = layer.window > 0 && std::abs(query - key) >= layer.window;
      return far || (with_causal && key > query) ? hidden_score : 0;
    }));
  }
  if (const Value real = builder.real_steps(n.keys); real.present()) {
    add(ops::mul(ops::cast(ops::logical_not(ops::unsqueeze(real, {1, 2})), builder.dtype()), hidden_score));
  }
  return scores;
}

/// dropout(softmax(q k' / sqrt(size) + mask)) v, by single ops, as the op Attention has no dropout.
Value with_dropout(LayerBuilder& builder, const Attention& layer, const Sizes& n, Value q, Value k, Value v) {
  q = ops::reshape(q, {n.batch, n.groups, n.heads / n.groups, n.time, n.size});
  k = ops::reshape(k, {n.batch, n.groups, 1, n.keys, n.size});
  v = ops::reshape(v, {n.batch, n.groups, 1, n.keys, n.size});
  Value scores = ops::mul(ops::matmul(q, ops::transpose(k, {0, 1, 2, 4, 3})), 1 / std::sqrt(static_cast<double>(n.size)));
  if (Value hidden = mask(builder, layer, n, layer.causal); hidden.present()) {
    if (hidden.shape().rank() == 4) hidden = ops::unsqueeze(hidden, {2});
    scores = ops::add(scores, hidden);
  }
  return ops::reshape(ops::matmul(builder.dropout(ops::softmax(scores), layer.dropout), v), {n.batch, n.heads, n.time, n.size});
}

/// Attention of the next steps to all steps so far, whose keys and values are kept.
Value with_past(LayerBuilder& builder, const Attention& layer, const Sizes& n, Value q, Value k, Value v) {
  const std::int64_t capacity = builder.decoding()->capacity;
  const Value steps = builder.decoding()->steps;
  const auto kept = [&](const char* name, Value added) {
    const Value past = builder.decoding_state(name, {n.batch, n.groups, capacity, n.size});
    const Value all = ops::scatter_add(past, steps, added, 2);  // the rows of steps to come are zeros
    builder.graph().update(past, all);
    return all;
  };
  std::vector<std::int64_t> indices(static_cast<std::size_t>(capacity));
  std::iota(indices.begin(), indices.end(), 0);
  const Value queries = ops::unsqueeze(steps, {1}), keys = builder.graph().constant(Tensor::of(indices, {1, capacity}));
  Value hidden = ops::greater(keys, queries);
  if (layer.window > 0) hidden = ops::logical_or(hidden, ops::less_equal(keys, ops::sub(queries, static_cast<double>(layer.window))));
  ops::AttentionOptions options;
  options.mask = ops::mul(ops::cast(hidden, builder.dtype()), hidden_score);
  return ops::attention(q, kept("keys", k), kept("values", v), options);
}

Value build_attention(LayerBuilder& builder, const Attention& layer, Value x) {
  expect_sequence(builder, x.shape());
  builder.expect_positive("heads", layer.heads);
  const Value memory = layer.memory.empty() ? x : builder.result_of(layer.memory, "memory");
  if (!layer.memory.empty()) expect_sequence(builder, memory.shape());
  const std::int64_t width = x.shape()[2], from = memory.shape()[2];
  Sizes n{
      .batch = x.shape()[0], .time = x.shape()[1], .keys = memory.shape()[1], .heads = layer.heads, .groups = layer.kv_heads, .size = 0};
  if (n.groups == 0) n.groups = n.heads;
  if (width % n.heads != 0) builder.fail(fmt::format("has {} heads, expected a divisor of its {} features", n.heads, width));
  if (n.groups < 0 || n.heads % n.groups != 0) {
    builder.fail(fmt::format("has {} kv_heads, expected a divisor of its {} heads", n.groups, n.heads));
  }
  n.size = width / n.heads;
  if (layer.rotary && n.size % 2 != 0)
    builder.fail(fmt::format("rotates pairs of features, expected heads of an even size, got {}", n.size));
  if (layer.causal && n.keys != n.time) {
    builder.fail(fmt::format("is causal, expected {} steps of '{}', one for each of its own, got {}", n.time, layer.memory, n.keys));
  }
  const auto project = [&](Value rows, const char* kernel, const char* bias, std::int64_t columns) {
    const std::int64_t features = rows.shape()[1];
    Value y = ops::matmul(rows, builder.parameter(kernel, {features, columns}, *layer.weights.kernel_initializer, {.fan_in = features}));
    if (layer.weights.bias) y = ops::add(y, builder.parameter(bias, {columns}, *layer.weights.bias_initializer, {.fan_in = features}));
    return y;
  };
  const auto by_head = [&](Value y, std::int64_t time, std::int64_t heads) {
    return ops::transpose(ops::reshape(y, {n.batch, time, heads, n.size}), {0, 2, 1, 3});
  };
  const Value rows = ops::reshape(x, {n.batch * n.time, width});
  const Value memory_rows = layer.memory.empty() ? rows : ops::reshape(memory, {n.batch * n.keys, from});
  Value q = by_head(project(rows, "query_kernel", "query_bias", width), n.time, n.heads);
  Value k = by_head(project(memory_rows, "key_kernel", "key_bias", n.groups * n.size), n.keys, n.groups);
  const Value v = by_head(project(memory_rows, "value_kernel", "value_bias", n.groups * n.size), n.keys, n.groups);
  if (layer.rotary) {
    q = rotated(builder, layer, q);
    k = rotated(builder, layer, k);
  }
  Value seen;
  if (builder.decoding() != nullptr) {
    seen = with_past(builder, layer, n, q, k, v);
  } else if (builder.training() && layer.dropout > 0) {
    seen = with_dropout(builder, layer, n, q, k, v);
  } else {
    ops::AttentionOptions options;
    options.causal = layer.causal;
    options.mask = mask(builder, layer, n, false);
    seen = ops::attention(q, k, v, options);
  }
  builder.row().flops = 4 * n.time * width * width + 4 * n.keys * from * n.groups * n.size + 4 * n.time * n.keys * width;
  builder.features_last = true;
  const Value joined = ops::reshape(ops::transpose(seen, {0, 2, 1, 3}), {n.batch * n.time, width});
  return ops::reshape(project(joined, "output_kernel", "output_bias", width), {n.batch, n.time, width});
}

bool is_causal(const Attention& layer) {
  return layer.causal && layer.memory.empty();
}

}  // namespace

TENON_LAYER(Attention, "attention", read_attention, build_attention, nullptr, is_causal);

}  // namespace tenon::layers
