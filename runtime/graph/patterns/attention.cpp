// SPDX-License-Identifier: Apache-2.0
// graph/patterns/attention.cpp - attention as products and softmax.
#include <tenon/functions.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "graph/op.h"
#include "graph/patterns/records.h"

namespace tenon::graph::patterns {
namespace {

using Axes = std::vector<std::int64_t>;

/// 0 for a softmax along the last axis.
std::optional<double> along_last_axis(const Net& net, const NodeInfo& node) {
  const auto rank = static_cast<std::int64_t>(net.shape(node.inputs[0]).rank());
  return node.attributes.as<tenon_attributes_axis>().axis + 1 == rank ? std::optional(0.0) : std::nullopt;
}

/// The scores where a condition says so, else a number.
Pattern selected(const Pattern& scores) {
  return either({scores, op(TENON_OP_Where, {any(Role::keep), scores, number(Role::fill)}),
                 op(TENON_OP_Where, {any(Role::drop), number(Role::fill), scores})});
}

Pattern attention() {
  const Pattern scores = selected(scaled(Role::score_scale, op(TENON_OP_MatMul, {any(Role::q), any(Role::k)})));
  const Pattern masked = scores + maybe(times(Role::mask, any(Role::mask))) + maybe(times(Role::second_mask, any(Role::second_mask)));
  const Pattern weights = op(TENON_OP_Softmax, {selected(masked)}, Role::axis, along_last_axis);
  // PyTorch makes rows 0 that see no key, as the op does
  const Pattern guarded = op(TENON_OP_Where, {op(TENON_OP_IsNaN, {weights}), number(Role::zero), weights});
  return op(TENON_OP_MatMul, {either({weights, guarded}), any(Role::v)});
}

/// A value as `scale` times a transpose of `source`.
struct Source {
  ValueId source;
  Axes permutation;  ///< as of Transpose, applied to `source`
  double scale;
};

/// Looks through transposes and products with scalars. Inner values may have other readers, which they are computed for anyway.
Source source_of(const Net& net, ValueId v, Axes permutation) {
  Source from{v, std::move(permutation), 1};
  for (;;) {
    if (net.is_made_by(from.source, TENON_OP_Transpose)) {
      const NodeInfo& node = net.node_of(from.source);
      const Axes before = axes_of(node);
      for (std::int64_t& axis : from.permutation) axis = before[static_cast<std::size_t>(axis)];
      from.source = node.inputs[0];
    } else if (const std::optional<Net::Scaled> apart = net.scaled(from.source)) {
      from.source = apart->value;
      from.scale *= apart->factor;
    } else {
      return from;
    }
  }
}

Axes identity(std::size_t rank) {
  Axes permutation(rank);
  std::iota(permutation.begin(), permutation.end(), 0);
  return permutation;
}

Axes last_two_exchanged(std::size_t rank) {
  Axes permutation = identity(rank);
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  return permutation;
}

Value transposed(const Match& match, const Source& from) {
  const Value source = match.of(from.source);
  return from.permutation == identity(from.permutation.size()) ? source : ops::transpose(source, from.permutation);
}

/// The operand of which v (B, H, L, D) repeats each head: Reshape of Expand of (B, G, 1, L, D). no_id if it does not.
ValueId unrepeated(const Net& net, ValueId v) {
  if (!net.is_made_by(v, TENON_OP_Reshape) || net.shape(v).rank() != 4) return no_id;
  const ValueId wide = net.node_of(v).inputs[0];
  if (!net.is_made_by(wide, TENON_OP_Expand)) return no_id;
  const ValueId heads = net.node_of(wide).inputs[0];
  const Shape &result = net.shape(v), &repeated = net.shape(wide), &from = net.shape(heads);
  if (repeated.rank() != 5 || from.rank() != 5 || from[2] != 1) return no_id;
  Shape expected = from;
  expected.set(2, repeated[2]);
  const bool fits = repeated == expected && result == Shape{from[0], from[1] * repeated[2], from[3], from[4]};
  return fits ? heads : no_id;
}

/// (1, ..., shape) with four dimensions.
Shape with_four(const Shape& shape) {
  Shape wide;
  for (std::size_t i = shape.rank(); i < 4; ++i) wide.push_back(1);
  for (const std::int64_t size : shape) wide.push_back(size);
  return wide;
}

/// True if the mask, if there is one, broadcasts to the scores without enlarging them.
bool fits_scores(const Match& match, Role role, const Shape& scores) {
  if (!match.has(role)) return true;
  const Shape& mask = match.shape(role);
  bool fits = mask.rank() <= scores.rank();
  for (std::size_t i = 0; fits && i < mask.rank(); ++i) fits = mask[i] == 1 || mask[i] == scores[scores.rank() - mask.rank() + i];
  return fits;
}

bool has_condition(const Match& match) {
  return match.has(Role::keep) || match.has(Role::drop);
}

/// True for -infinity, and for numbers beside which no score counts: the sum of both is the number, as if it replaced the score.
bool swallows_scores(double number, DType dtype) {
  return number < 0 && (std::isinf(number) || -number * epsilon_of(dtype) >= 64);
}

/// The sizes of scores (..., S, L), as operands of `ops::attention` have them.
Shape scores_of(const Match& match) {
  const Shape q = with_four(match.shape(Role::q)), k = with_four(match.shape(Role::k));
  return {q[0], q[1], q[2], k[3]};
}

bool accepts(Match& match) {
  const std::size_t rank = match.net.shape(match.result()).rank();
  if (rank < 2 || rank > 4) return false;
  for (const Role role : {Role::q, Role::k, Role::v}) {
    if (match.shape(role).rank() != rank || match.shape(role).count() == 0) return false;
  }
  const Shape q = with_four(match.shape(Role::q)), k = with_four(match.shape(Role::k)), v = with_four(match.shape(Role::v));
  const Shape scores = scores_of(match), result = with_four(match.net.shape(match.result()));
  if (k[0] != q[0] || v[0] != q[0] || v[1] != k[1] || q[1] % k[1] != 0) return false;
  if (result != Shape{q[0], q[1], q[2], v[3]}) return false;
  for (const Role role : {Role::mask, Role::second_mask, Role::keep, Role::drop}) {
    if (!fits_scores(match, role, scores)) return false;
  }
  for (const Role role : {Role::mask, Role::second_mask}) {
    if (match.has(role) && !std::isfinite(match.number(role))) return false;
  }
  if (has_condition(match) && !swallows_scores(match.number(Role::fill), match.net.info(match.result()).dtype)) return false;
  if (match.numbers[static_cast<std::size_t>(Role::zero)].value_or(0) != 0) return false;
  const double of_operands =
      source_of(match.net, match.id(Role::q), identity(rank)).scale * source_of(match.net, match.id(Role::k), identity(rank)).scale;
  return std::isfinite(match.number(Role::score_scale) * of_operands);
}

/// True if a constant is that of a causal mask: element (s, l) of all (S, L) is `seen` where l <= s, else `hidden`.
template <class Seen, class Hidden>
bool is_causal(const Match& match, ValueId v, Seen seen, Hidden hidden) {
  const ValueInfo& info = match.net.info(v);
  const Shape scores = scores_of(match);
  const std::int64_t queries = scores[2], keys = scores[3];
  if (info.kind != ValueKind::constant || with_four(info.shape) != Shape{1, 1, queries, keys} || !info.constant.defined()) return false;
  const std::vector<double> elements = doubles_of(info.constant);
  for (std::int64_t i = 0; i < queries * keys; ++i) {
    const double element = elements[static_cast<std::size_t>(i)];
    if (!(i % keys <= i / keys ? seen(element) : hidden(element))) return false;
  }
  return true;
}

bool is_zero(double x) {
  return x == 0;
}
bool is_one(double x) {
  return x == 1;
}

/// Masks become one that is added, or the attribute `causal`.
struct Masks {
  Value added = {};
  bool causal = false;

  void add(Value mask) { added = added.present() ? ops::add(added, mask) : mask; }
};

Masks masks_of(const Match& match) {
  Masks masks;
  const DType dtype = match.net.info(match.id(Role::q)).dtype;
  for (const Role role : {Role::mask, Role::second_mask}) {
    if (!match.has(role)) continue;
    const double factor = match.number(role);
    const auto hides = [&](double x) { return swallows_scores(factor * x, dtype); };
    if (is_causal(match, match.id(role), is_zero, hides)) {
      masks.causal = true;
    } else {
      masks.add(factor == 1 ? match.value(role) : ops::mul(match.value(role), factor));
    }
  }
  if (!has_condition(match)) return masks;
  const bool keeps = match.has(Role::keep);
  const Role role = keeps ? Role::keep : Role::drop;
  if (is_causal(match, match.id(role), keeps ? is_one : is_zero, keeps ? is_zero : is_one)) {
    masks.causal = true;
    return masks;
  }
  const Value zero = scalar(match.graph, dtype, 0), fill = scalar(match.graph, dtype, match.number(Role::fill));
  masks.add(keeps ? ops::where(match.value(role), zero, fill) : ops::where(match.value(role), fill, zero));
  return masks;
}

Value reshaped(Value x, const Shape& shape) {
  return x.shape() == shape ? x : ops::reshape(x, shape);
}

Value replacement(const Match& match) {
  const Shape result = match.net.shape(match.result());
  const std::size_t rank = result.rank();
  const Source from_q = source_of(match.net, match.id(Role::q), identity(rank));
  const Source from_k = source_of(match.net, match.id(Role::k), last_two_exchanged(rank));
  ValueId few_k = no_id, few_v = no_id;
  if (from_k.permutation == identity(rank)) {
    few_k = unrepeated(match.net, from_k.source);
    few_v = unrepeated(match.net, match.id(Role::v));
  }
  const bool shares_heads = few_k != no_id && few_v != no_id && match.net.shape(few_k)[1] == match.net.shape(few_v)[1];
  const Masks masks = masks_of(match);

  // without a scale to be taken out, q is read as it is
  const Value q = from_q.scale == 1 ? match.value(Role::q) : transposed(match, from_q);
  Value k = shares_heads ? match.of(few_k) : transposed(match, from_k);
  Value v = shares_heads ? match.of(few_v) : match.value(Role::v);
  if (shares_heads) {
    const Shape wide_k = k.shape(), wide_v = v.shape();
    k = ops::reshape(k, Shape{wide_k[0], wide_k[1], wide_k[3], wide_k[4]});
    v = ops::reshape(v, Shape{wide_v[0], wide_v[1], wide_v[3], wide_v[4]});
  }
  ops::AttentionOptions options;
  options.mask = masks.added;
  options.causal = masks.causal;
  options.scale = match.number(Role::score_scale) * from_q.scale * from_k.scale;
  const auto wide = [](Value x) { return reshaped(x, with_four(x.shape())); };
  return reshaped(ops::attention(wide(q), wide(k), wide(v), options), result);
}

}  // namespace

const std::vector<Record>& attention_records() {
  static const std::vector<Record> records = {
      {"Attention",
       "all exporters below opset 23: MatMul, Mul or Div, Add or Where, Softmax, MatMul; PyTorch scales q and k by the root of the scale",
       attention(), accepts, replacement},
  };
  return records;
}

}  // namespace tenon::graph::patterns
