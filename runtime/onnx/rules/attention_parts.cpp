// SPDX-License-Identifier: Apache-2.0
// onnx/rules/attention_parts.cpp - heads, masks and the composition around the kernel of attention.
#include "onnx/rules/attention_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules/dtypes.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// One number for each batch as i64 (B, 1, 1, 1).
Value of_batches(Value numbers) {
  return ops::reshape(cast_to(numbers, DType::i64), Shape{numbers.shape().count(), 1, 1, 1});
}

Value both(Value a, Value b) {
  if (!a.present() || !b.present()) return a.present() ? a : b;
  return ops::logical_and(a, b);
}

/// Visibility with bounds that cannot overflow, where causal is a right window of 0 and a bound that excludes no key is absent.
Visibility simplified(Visibility v, std::int64_t queries, std::int64_t keys) {
  constexpr std::int64_t far = std::int64_t{1} << 40;
  v.offset = std::clamp(v.offset, -far, far);
  v.left = std::min(v.left, far);
  v.right = v.causal ? 0 : std::min(v.right, far);
  v.causal = false;
  if (v.offsets.present()) return v;
  if (v.offset + v.right >= keys - 1) v.right = -1;
  if (v.offset + queries - 1 - v.left <= 0) v.left = -1;
  return v;
}

/// a (B, H, S, X) times b (B, G, X, Y) as (B, H, S, Y): the heads of a that share one of b are rows of one product.
Value grouped_product(Value a, Value b) {
  const Shape rows = a.shape(), columns = b.shape();
  const Shape stacked{rows[0], columns[1], rows[1] / columns[1] * rows[2], rows[3]};
  const Value product = ops::matmul(stacked == rows ? a : ops::reshape(a, stacked), b);
  return stacked == rows ? product : ops::reshape(product, Shape{rows[0], rows[1], rows[2], columns[3]});
}

void check(Node& node, const AttentionCall& call) {
  const Shape q = call.q.shape(), k = call.k.shape(), v = call.v.shape();
  const bool fits = q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && k[0] == q[0] && v[0] == q[0] && v[1] == k[1] && v[2] == k[2] &&
                    k[3] == q[3] && q[3] > 0 && v[3] > 0 && k[1] > 0 && q[1] > 0 && q[1] % k[1] == 0;
  if (!fits) {
    node.fail(fmt::format("expected q (B, H, S, D), k (B, G, L, D) and v (B, G, L, E) where G divides H, got {}, {} and {}", q.str(),
                          k.str(), v.str()));
  }
  for (const std::int64_t size : {q[2], v[3]}) product_of(node, q[1], size);  // sizes of an empty batch may be anything
  if (call.scale && !std::isfinite(*call.scale)) node.fail(fmt::format("expected a finite scale, got {}", *call.scale));
  if (!std::isfinite(call.softcap)) node.fail(fmt::format("expected a finite softcap, got {}", call.softcap));
  for (const Value numbers : {call.visibility.offsets, call.visibility.lengths}) {
    if (numbers.present() && numbers.shape().count() != q[0]) {
      node.fail(fmt::format("expected {} numbers of keys, one for each batch, got {}", q[0], numbers.shape().str()));
    }
  }
  if (!call.mask.present()) return;
  const Shape mask = call.mask.shape(), scores{q[0], q[1], q[2], k[2]};
  bool broadcasts = mask.rank() >= 1 && mask.rank() <= 4;
  for (std::size_t i = 0; broadcasts && i < mask.rank(); ++i) broadcasts = mask[i] == 1 || mask[i] == scores[4 - mask.rank() + i];
  if (!broadcasts) {
    node.fail(fmt::format("expected a mask that broadcasts to (batch, heads, queries, keys) {}, got {}", scores.str(), mask.str()));
  }
}

/// softmax of the scores over the keys in `dtype`. Rows that `bias`, a term of the scores, excludes altogether become zeros; they are
/// replaced before the softmax too, whose gradient would be NaN.
Value probabilities_of(Node& node, Value scores, Value bias, DType dtype) {
  Value hidden;
  if (bias.present()) {
    const Value best = ops::reduce_max(bias, {-1}, true);
    hidden = ops::equal(best, node.scalar(bias.dtype(), minus_infinity));
    scores = ops::where(hidden, node.scalar(scores.dtype(), 0), scores);
  }
  const Value p = cast_to(ops::softmax(cast_to(scores, dtype), -1), scores.dtype());
  return hidden.present() ? ops::where(hidden, node.scalar(p.dtype(), 0), p) : p;
}

}  // namespace

Value split_heads(Node& node, Value x, std::int64_t heads) {
  const Shape shape = x.shape();
  if (shape.rank() != 3 || heads <= 0 || shape[2] % heads != 0) {
    node.fail(fmt::format("expected (batch, length, {} heads times their size), got {}", heads, shape.str()));
  }
  return ops::transpose(ops::reshape(x, Shape{shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

Value merge_heads(Value x) {
  const Shape shape = x.shape();
  return ops::reshape(ops::transpose(x, {0, 2, 1, 3}), Shape{shape[0], shape[2], shape[1] * shape[3]});
}

Value repeat_heads(Node& node, Value x, std::int64_t heads) {
  const Shape shape = x.shape();
  if (shape.rank() != 4 || shape[1] == 0 || heads % shape[1] != 0) {
    node.fail(fmt::format("expected (batch, heads, length, size) with a number of heads that divides {}, got {}", heads, shape.str()));
  }
  if (shape[1] == heads) return x;
  const Value apart = ops::reshape(x, Shape{shape[0], shape[1], 1, shape[2], shape[3]});
  return ops::reshape(ops::expand(apart, Shape{shape[0], shape[1], heads / shape[1], shape[2], shape[3]}),
                      Shape{shape[0], heads, shape[2], shape[3]});
}

Value with_past(Node& node, Value past, Value x) {
  if (!past.present()) return x;
  const Shape before = past.shape(), now = x.shape();
  if (before.rank() != 4 || now.rank() != 4 || before[0] != now[0] || before[1] != now[1] || before[3] != now[3]) {
    node.fail(fmt::format("expected a past of shape (batch, heads, length, size) for {}, got {}", now.str(), before.str()));
  }
  return before[2] == 0 ? x : ops::concat({past, x}, 2);
}

Value visible_keys(Node& node, const Visibility& visibility, std::int64_t queries, std::int64_t keys) {
  const Visibility v = simplified(visibility, queries, keys);
  const Value key = node.constant(counting_tensor(node, 0, keys));
  Value seen;
  if (v.left >= 0 || v.right >= 0) {
    Value query = node.constant(counting_tensor(node, v.offsets.present() ? 0 : v.offset, queries).reshape({queries, 1}));
    if (v.offsets.present()) query = ops::add(query, of_batches(v.offsets));
    if (v.right >= 0) seen = ops::less_equal(key, v.right == 0 ? query : ops::add(query, static_cast<double>(v.right)));
    if (v.left >= 0) seen = both(seen, ops::greater_equal(key, ops::sub(query, static_cast<double>(v.left))));
  }
  if (v.lengths.present()) seen = both(seen, ops::less(key, of_batches(v.lengths)));
  return seen;
}

Value additive_mask(Node& node, Value mask, DType dtype, double hidden) {
  if (!mask.present()) return mask;
  if (mask.dtype() != DType::boolean) return cast_to(mask, dtype);
  return ops::where(mask, node.scalar(dtype, 0), node.scalar(dtype, hidden));
}

Value add_masks(Value a, Value b) {
  if (!a.present() || !b.present()) return a.present() ? a : b;
  return ops::add(a, b);
}

Value extend_mask(Node& node, Value mask, std::int64_t keys) {
  const Shape shape = mask.shape();
  if (shape.rank() == 0) node.fail("expected a mask of rank 1 or more, got a scalar");
  const std::int64_t missing = keys - shape[shape.rank() - 1];
  if (missing <= 0) return mask;
  if (mask.dtype() != DType::boolean && !is_floating(mask.dtype())) {
    node.fail(fmt::format("expected a bool or floating mask where it is shorter than the {} keys, got {}", keys, name_of(mask.dtype())));
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> widths(shape.rank());
  widths.back().second = missing;
  return ops::pad(mask, widths, mask.dtype() == DType::boolean ? 0 : minus_infinity);
}

AttentionResult attend(Node& node, const AttentionCall& call) {
  check(node, call);
  const Shape q = call.q.shape();
  const std::int64_t queries = q[2], keys = call.k.shape()[2];
  const DType dtype = call.q.dtype();
  const Value k = cast_to(call.k, dtype), v = cast_to(call.v, dtype);
  const Visibility visibility = simplified(call.visibility, queries, keys);
  const double scale = call.scale ? *call.scale : 1 / std::sqrt(static_cast<double>(q[3]));
  const Value mask = call.mask.present() ? cast_to(call.mask, dtype) : Value();

  if (keys == 0) {  // no scores: the kernel gives zeros
    const Value none = node.constant(Tensor::zeros(dtype, {q[0], q[1], queries, 0}));
    return {ops::attention(call.q, k, v, {.mask = {}, .causal = false, .scale = scale}), none, none, none, none};
  }
  if (!call.keeps_scores && call.softcap == 0 && (call.softmax_dtype != DType::f64 || dtype == DType::f64)) {
    // the kernel's causal mask counts from the first key
    const bool causal = visibility.right == 0 && visibility.offset == 0 && !visibility.offsets.present();
    Visibility rest = visibility;
    if (causal) rest.right = -1;
    const Value hidden = additive_mask(node, visible_keys(node, rest, queries, keys), dtype);
    return {ops::attention(call.q, k, v, {.mask = add_masks(mask, hidden), .causal = causal, .scale = scale}), {}, {}, {}, {}};
  }

  const Value visible = additive_mask(node, visible_keys(node, visibility, queries, keys), dtype);
  AttentionResult result;
  result.products = grouped_product(ops::mul(call.q, scale), ops::transpose(k, {0, 1, 3, 2}));
  result.capped = call.softcap == 0 ? result.products : ops::mul(ops::tanh(ops::mul(result.products, 1 / call.softcap)), call.softcap);
  const Value bias = add_masks(mask, visible);
  result.masked = add_masks(result.capped, bias);
  // a known right bound alone leaves at least the first key to each query
  const bool sees_some = !mask.present() && visibility.left < 0 && !visibility.lengths.present() && !visibility.offsets.present() &&
                         visibility.offset + std::max<std::int64_t>(visibility.right, 0) >= 0;
  const DType softmax_dtype = call.softmax_dtype == DType::f64 ? DType::f64 : dtype;
  result.probabilities = probabilities_of(node, result.masked, sees_some ? Value() : bias, softmax_dtype);
  result.y = grouped_product(result.probabilities, v);
  return result;
}

Value rotate(Node& node, Value x, Value cosines, Value sines, bool interleaved) {
  const Shape shape = x.shape(), angles = cosines.shape();
  const auto last = static_cast<std::int64_t>(shape.rank()) - 1;
  const std::int64_t size = last < 0 ? 0 : shape[shape.rank() - 1], half = angles.rank() == 0 ? 0 : angles[angles.rank() - 1];
  if (sines.shape() != angles || half == 0 || half > size / 2) {
    node.fail(fmt::format("expected cosines and sines of one shape whose last dimension is at most half of that of {}, got {} and {}",
                          shape.str(), angles.str(), sines.shape().str()));
  }
  const std::int64_t turned = 2 * half;
  const Value a = interleaved ? ops::slice(x, last, 0, turned, 2) : ops::slice(x, last, 0, half);
  const Value b = interleaved ? ops::slice(x, last, 1, turned, 2) : ops::slice(x, last, half, turned);
  const Value first = ops::sub(ops::mul(a, cosines), ops::mul(b, sines)), second = ops::add(ops::mul(a, sines), ops::mul(b, cosines));
  if (first.shape() != a.shape()) {
    node.fail(fmt::format("expected cosines and sines that broadcast to {}, got {}", a.shape().str(), angles.str()));
  }
  std::vector<Value> parts{first, second};
  if (interleaved) {
    Shape pairs = shape;
    pairs.set(shape.rank() - 1, turned);
    parts = {ops::reshape(ops::stack({first, second}, last + 1), pairs)};
  }
  if (turned < size) parts.push_back(ops::slice(x, last, turned, size));
  return ops::concat(parts, last);
}

Value angles_at(Node& node, Value cache, Value position_ids, std::int64_t length) {
  const Shape rows = cache.shape();
  const auto fail = [&](const char* expected) {
    node.fail(fmt::format("expected {}, got {} and {}", expected, rows.str(),
                          position_ids.present() ? position_ids.shape().str() : std::string("no positions")));
  };
  if (!position_ids.present()) {
    if (rows.rank() != 3 || rows[1] != length) fail("caches of cosines and sines (batch, length, angles) or position_ids");
    return ops::reshape(cache, Shape{rows[0], 1, rows[1], rows[2]});
  }
  const Shape at = position_ids.shape();
  if (rows.rank() != 2) fail("caches of cosines and sines (positions, angles) with position_ids");
  if (at.rank() == 2 && at[1] == length) {
    return ops::reshape(ops::gather(cache, position_ids), Shape{at[0], 1, length, rows[1]});
  }
  if (at.rank() > 1 || at.count() != 1) fail("position_ids (batch, length) or one position of the first query");
  const Value first = ops::reshape(cast_to(position_ids, DType::i64), Shape{1});
  const Value all = ops::add(first, node.constant(counting_tensor(node, 0, length)));
  return ops::reshape(ops::gather(cache, all), Shape{1, 1, length, rows[1]});
}

}  // namespace tenon::onnx
