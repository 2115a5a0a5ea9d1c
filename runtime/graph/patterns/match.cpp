// SPDX-License-Identifier: Apache-2.0
#include "graph/patterns/match.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tenon::graph::patterns {
namespace {

bool is_whole(double x) {
  return std::trunc(x) == x;
}

/// The operand of which v is the first (0) or second (1) half along the last dimension: by Slice or by Split. no_id: of none.
ValueId whole_of(const Net& net, ValueId v, int which) {
  if (net.maker(v) == no_id) return no_id;
  const NodeInfo& node = net.node_of(v);
  if (node.op != TENON_OP_Slice && node.op != TENON_OP_Split) return no_id;
  const ValueId whole = node.inputs[0];
  const Shape &part = net.shape(v), &all = net.shape(whole);
  if (part.rank() == 0 || part.rank() != all.rank()) return no_id;
  const std::size_t last = part.rank() - 1;
  const std::int64_t size = part[last];
  for (std::size_t i = 0; i <= last; ++i) {
    if (all[i] != (i == last ? 2 * size : part[i])) return no_id;
  }
  if (node.op == TENON_OP_Split) {
    const bool along_last = node.attributes.as<tenon_attributes_axis>().axis == static_cast<std::int64_t>(last);
    return along_last && node.outputs.size() == 2 && net.info(v).output == static_cast<std::uint32_t>(which) ? whole : no_id;
  }
  const auto& attributes = node.attributes.as<tenon_attributes_slice>();
  for (std::size_t i = 0; i <= last; ++i) {
    if (attributes.steps[i] != 1 || attributes.starts[i] != (i == last ? which * size : 0)) return no_id;
  }
  return whole;
}

}  // namespace

bool Matcher::is_near(double a, double b) const {
  return a == b || std::abs(a - b) <= tolerance_ * std::abs(b);
}

bool Matcher::bind(Role role, ValueId v, Next next) {
  ValueId& bound = match_.values[static_cast<std::size_t>(role)];
  if (bound != no_id) return bound == v && next();
  bound = v;
  if (next()) return true;
  bound = no_id;
  return false;
}

bool Matcher::bind(Role role, double number, Next next) {
  std::optional<double>& bound = match_.numbers[static_cast<std::size_t>(role)];
  if (bound) return is_near(number, *bound) && next();
  bound = number;
  if (next()) return true;
  bound.reset();
  return false;
}

bool Matcher::within(NodeId n, Next next) {
  const std::size_t before = match_.inner.size();
  match_.inner.push_back(n);
  if (next()) return true;
  match_.inner.resize(before);
  return false;
}

bool Matcher::matches(const Pattern& pattern, ValueId v, double scale, Next next) {
  const Term& term = *pattern.term;
  switch (term.kind) {
    case Term::Kind::any:
      return is_near(scale, 1) && bind(term.role, v, next);
    case Term::Kind::number: {
      const std::optional<double> number = net_.scalar(v);
      return number && bind(term.role, scale * *number, next);
    }
    case Term::Kind::made_by: {
      if (!is_near(scale, 1) || net_.maker(v) == no_id) return false;
      if (std::find(term.ops.begin(), term.ops.end(), net_.node_of(v).op) == term.ops.end()) return false;
      return within(net_.maker(v), [&] { return bind(term.role, v, next); });
    }
    case Term::Kind::op:
      return is_near(scale, 1) && matches_op(term, v, next);
    case Term::Kind::half:
      return is_near(scale, 1) && matches_half(term, v, next);
    case Term::Kind::product:
      return matches_factors(term, {.list = {Item{v, 1}}, .number = scale}, term.weights, next);
    case Term::Kind::sum:
      return matches_terms(term, {.list = {Item{v, scale}}, .number = 0}, std::vector<bool>(term.parts.size()), next);
    case Term::Kind::times:
      return bind(term.role, scale, [&] { return matches(term.parts[0], v, 1, next); });
    case Term::Kind::scaled:
      return matches_scaled(pattern, v, scale, next);
    case Term::Kind::either:
      return std::any_of(term.parts.begin(), term.parts.end(), [&](const Pattern& part) { return matches(part, v, scale, next); });
    case Term::Kind::maybe:
      return matches(term.parts[0], v, scale, next);
  }
  return false;
}

bool Matcher::matches_scaled(const Pattern& pattern, ValueId v, double scale, Next next) {
  const Term& term = *pattern.term;
  if (const std::optional<Net::Scaled> apart = net_.scaled(v)) {
    if (within(net_.maker(v), [&] { return matches(pattern, apart->value, scale * apart->factor, next); })) return true;
  }
  return bind(term.role, scale, [&] { return matches(term.parts[0], v, 1, next); });
}

bool Matcher::matches_op(const Term& term, ValueId v, Next next) {
  if (!net_.is_made_by(v, term.ops[0])) return false;
  const NodeInfo& node = net_.node_of(v);
  if (node.inputs.size() != term.parts.size()) return false;
  if (std::find(node.inputs.begin(), node.inputs.end(), no_id) != node.inputs.end()) return false;
  const bool commutes = node.op == TENON_OP_Add || node.op == TENON_OP_Mul;
  const std::vector<ValueId> operands = node.inputs, swapped(node.inputs.rbegin(), node.inputs.rend());
  const auto match_operands = [&] {
    return matches_operands(term, operands, 0, next) || (commutes && matches_operands(term, swapped, 0, next));
  };
  const std::optional<double> number = term.number == nullptr ? std::optional<double>(0) : term.number(net_, node);
  if (!number) return false;
  return within(net_.maker(v), [&] { return term.number == nullptr ? match_operands() : bind(term.role, *number, match_operands); });
}

bool Matcher::matches_operands(const Term& term, const std::vector<ValueId>& operands, std::size_t from, Next next) {
  if (from == operands.size()) return next();
  return matches(term.parts[from], operands[from], 1, [&] { return matches_operands(term, operands, from + 1, next); });
}

bool Matcher::matches_half(const Term& term, ValueId v, Next next) {
  const ValueId whole = whole_of(net_, v, static_cast<int>(term.value));
  return whole != no_id && within(net_.maker(v), [&] { return matches(term.parts[0], whole, 1, next); });
}

bool Matcher::matches_factors(const Term& product, Items items, std::vector<double> left, Next next) {
  if (items.list.empty()) {
    for (std::size_t i = 0; i < left.size(); ++i) {
      const bool is_absent = product.parts[i].term->kind == Term::Kind::maybe && left[i] == product.weights[i];
      if (left[i] != 0 && !is_absent) return false;
    }
    return is_near(items.number, product.value) && next();
  }
  double capacity = 0;  // each item needs a factor of its own
  for (const double exponent : left) capacity += is_whole(exponent) ? std::abs(exponent) : 1;
  if (static_cast<double>(items.list.size()) > capacity) return false;

  const Item item = items.list.back();
  items.list.pop_back();
  for (std::size_t i = 0; i < left.size(); ++i) {
    const double before = left[i], rest = before - item.weight;
    // x^3 also takes x, and then x^2
    const bool is_part = is_whole(before) && is_whole(item.weight) && before * item.weight > 0 && std::abs(item.weight) < std::abs(before);
    if (before != item.weight && !is_part) continue;
    left[i] = rest;
    if (matches(product.parts[i], item.value, 1, [&] { return matches_factors(product, items, left, next); })) return true;
    left[i] = before;
  }
  return takes_apart_factor(product, item, items, left, next);
}

bool Matcher::takes_apart_factor(const Term& product, Item item, const Items& items, const std::vector<double>& left, Next next) {
  if (net_.maker(item.value) == no_id) return false;
  const NodeInfo& node = net_.node_of(item.value);
  const double exponent = item.weight;
  // (a b)^p and (a^q)^p are a^p b^p and a^(q p) for negative numbers, too, if the exponents are whole
  const bool whole = is_whole(exponent), unit = std::abs(exponent) == 1;
  Items parts = items;
  const auto multiply = [&](std::size_t operand, double power) {
    const ValueId v = node.inputs[operand];
    if (const std::optional<double> number = net_.scalar(v)) {
      parts.number *= std::pow(*number, power);
      return net_.shape(node.inputs[1 - operand]) == net_.shape(item.value);
    }
    parts.list.push_back({v, power});
    return true;
  };
  bool fits = false;
  switch (node.op) {
    case TENON_OP_Mul:
      fits = whole && multiply(0, exponent) && multiply(1, exponent);
      break;
    case TENON_OP_Div:
      fits = whole && multiply(0, exponent) && multiply(1, -exponent);
      break;
    case TENON_OP_Neg:
      parts.number *= std::pow(-1, exponent);
      parts.list.push_back({node.inputs[0], exponent});
      fits = whole;
      break;
    case TENON_OP_Reciprocal:
      parts.list.push_back({node.inputs[0], -exponent});
      fits = true;
      break;
    case TENON_OP_Sqrt:
    case TENON_OP_Rsqrt:
      parts.list.push_back({node.inputs[0], (node.op == TENON_OP_Sqrt ? 0.5 : -0.5) * exponent});
      fits = unit;
      break;
    case TENON_OP_Pow: {
      const std::optional<double> power = net_.scalar(node.inputs[1]);
      fits = power && *power != 0 && (unit || (whole && is_whole(*power))) && net_.shape(node.inputs[0]) == net_.shape(item.value);
      if (fits) parts.list.push_back({node.inputs[0], *power * exponent});
      break;
    }
    default:
      break;
  }
  return fits && within(net_.maker(item.value), [&] { return matches_factors(product, parts, left, next); });
}

bool Matcher::matches_terms(const Term& sum, Items items, std::vector<bool> used, Next next) {
  if (items.list.empty()) {
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i] && sum.parts[i].term->kind != Term::Kind::maybe) return false;
    }
    if (sum.role != Role::count) return bind(sum.role, items.number, next);
    return is_near(items.number, sum.value) && next();
  }
  // each item needs a term of its own
  if (static_cast<std::ptrdiff_t>(items.list.size()) > std::count(used.begin(), used.end(), false)) return false;

  const Item item = items.list.back();
  items.list.pop_back();
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    used[i] = true;
    const double scale = item.weight / sum.weights[i];
    if (matches(sum.parts[i], item.value, scale, [&] { return matches_terms(sum, items, used, next); })) return true;
    used[i] = false;
  }
  return takes_apart_term(sum, item, items, used, next);
}

bool Matcher::takes_apart_term(const Term& sum, Item item, const Items& items, const std::vector<bool>& used, Next next) {
  if (net_.maker(item.value) == no_id) return false;
  const NodeInfo& node = net_.node_of(item.value);
  Items parts = items;
  const auto add = [&](std::size_t operand, double weight) {
    const ValueId v = node.inputs[operand];
    if (const std::optional<double> number = net_.scalar(v)) {
      parts.number += weight * *number;
      return net_.shape(node.inputs[1 - operand]) == net_.shape(item.value);
    }
    parts.list.push_back({v, weight});
    return true;
  };
  bool fits = false;
  if (node.op == TENON_OP_Add || node.op == TENON_OP_Sub) {
    fits = add(0, item.weight) && add(1, node.op == TENON_OP_Add ? item.weight : -item.weight);
  } else if (const std::optional<Net::Scaled> apart = net_.scaled(item.value)) {
    parts.list.push_back({apart->value, item.weight * apart->factor});
    fits = true;
  }
  return fits && within(net_.maker(item.value), [&] { return matches_terms(sum, parts, used, next); });
}

}  // namespace tenon::graph::patterns
