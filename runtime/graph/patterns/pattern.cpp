// SPDX-License-Identifier: Apache-2.0
#include "graph/patterns/pattern.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tenon::graph::patterns {
namespace {

Pattern made(Term term) {
  return {std::make_shared<const Term>(std::move(term))};
}

Term empty(Term::Kind kind, double value) {
  Term term;
  term.kind = kind;
  term.value = value;
  return term;
}

/// The pattern as a product: itself, or one factor.
Term as_product(const Pattern& pattern) {
  if (pattern.term->kind == Term::Kind::product) return *pattern.term;
  Term term = empty(Term::Kind::product, 1);
  term.parts = {pattern};
  term.weights = {1};
  return term;
}

void multiply(Term& product, const Pattern& factor, double exponent) {
  for (std::size_t i = 0; i < product.parts.size(); ++i) {
    if (product.parts[i].term != factor.term || factor.term->kind == Term::Kind::maybe) continue;
    product.weights[i] += exponent;
    return;
  }
  product.parts.push_back(factor);
  product.weights.push_back(exponent);
}

/// a b^exponent, exponent 1 or -1.
Pattern product_of(const Pattern& a, const Pattern& b, double exponent) {
  Term product = as_product(a);
  const Term right = as_product(b);
  product.value *= std::pow(right.value, exponent);
  for (std::size_t i = 0; i < right.parts.size(); ++i) multiply(product, right.parts[i], exponent * right.weights[i]);
  return made(std::move(product));
}

/// The pattern as a sum: itself, or one term, whose coefficient is its weight.
Term as_sum(const Pattern& pattern) {
  if (pattern.term->kind == Term::Kind::sum) return *pattern.term;
  Term sum = empty(Term::Kind::sum, 0);
  if (pattern.term->kind == Term::Kind::number) {
    sum.role = pattern.term->role;
    return sum;
  }
  if (pattern.term->kind != Term::Kind::product) {
    sum.parts = {pattern};
    sum.weights = {1};
    return sum;
  }
  Term product = *pattern.term;
  sum.weights = {product.value};
  product.value = 1;
  const bool is_plain = product.parts.size() == 1 && product.weights[0] == 1 && product.parts[0].term->kind != Term::Kind::maybe;
  sum.parts = {is_plain ? product.parts[0] : made(std::move(product))};
  return sum;
}

/// a + weight b.
Pattern sum_of(const Pattern& a, const Pattern& b, double weight) {
  Term sum = as_sum(a);
  const Term right = as_sum(b);
  sum.value += weight * right.value;
  if (right.role != Role::count) sum.role = right.role;
  for (std::size_t i = 0; i < right.parts.size(); ++i) {
    sum.parts.push_back(right.parts[i]);
    sum.weights.push_back(weight * right.weights[i]);
  }
  return made(std::move(sum));
}

Pattern wrapped(Term::Kind kind, Role role, Pattern of) {
  Term term = empty(kind, 0);
  term.role = role;
  term.parts = {std::move(of)};
  return made(std::move(term));
}

bool is_optional(const Pattern& pattern) {
  return pattern.term->kind == Term::Kind::maybe;
}

void append(std::vector<tenon_op>& to, const std::vector<tenon_op>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

Pattern any(Role role) {
  Term term = empty(Term::Kind::any, 0);
  term.role = role;
  return made(std::move(term));
}
Pattern number(Role role) {
  Term term = empty(Term::Kind::number, 0);
  term.role = role;
  return made(std::move(term));
}
Pattern made_by(Role role, std::vector<tenon_op> ops) {
  Term term = empty(Term::Kind::made_by, 0);
  term.role = role;
  term.ops = std::move(ops);
  return made(std::move(term));
}
Pattern op(tenon_op name, std::vector<Pattern> operands) {
  Term term = empty(Term::Kind::op, 0);
  term.ops = {name};
  term.parts = std::move(operands);
  return made(std::move(term));
}
Pattern op(tenon_op name, std::vector<Pattern> operands, Role role, NodeNumber of_node) {
  Term term = empty(Term::Kind::op, 0);
  term.role = role;
  term.ops = {name};
  term.parts = std::move(operands);
  term.number = of_node;
  return made(std::move(term));
}
Pattern half(int which, Pattern of) {
  Term term = empty(Term::Kind::half, which);
  term.parts = {std::move(of)};
  return made(std::move(term));
}
Pattern pow(Pattern base, double exponent) {
  Term term = empty(Term::Kind::product, 1);
  term.parts = {std::move(base)};
  term.weights = {exponent};
  return made(std::move(term));
}
Pattern times(Role role, Pattern of) {
  return wrapped(Term::Kind::times, role, std::move(of));
}
Pattern scaled(Role role, Pattern of) {
  return wrapped(Term::Kind::scaled, role, std::move(of));
}
Pattern either(std::vector<Pattern> choices) {
  Term term = empty(Term::Kind::either, 0);
  term.parts = std::move(choices);
  return made(std::move(term));
}
Pattern maybe(Pattern of) {
  return wrapped(Term::Kind::maybe, Role::count, std::move(of));
}

Pattern operator*(const Pattern& a, const Pattern& b) {
  return product_of(a, b, 1);
}
Pattern operator*(double a, const Pattern& b) {
  Term term = b.term->kind == Term::Kind::sum ? *b.term : as_product(b);
  term.value *= a;
  if (term.kind == Term::Kind::sum) {
    for (double& weight : term.weights) weight *= a;
  }
  return made(std::move(term));
}
Pattern operator/(const Pattern& a, const Pattern& b) {
  return product_of(a, b, -1);
}
Pattern operator+(const Pattern& a, const Pattern& b) {
  return sum_of(a, b, 1);
}
Pattern operator+(double a, const Pattern& b) {
  Term sum = as_sum(b);
  sum.value += a;
  return made(std::move(sum));
}
Pattern operator-(const Pattern& a, const Pattern& b) {
  return sum_of(a, b, -1);
}

std::vector<tenon_op> roots_of(const Pattern& pattern) {
  const Term& term = *pattern.term;
  std::vector<tenon_op> roots;
  switch (term.kind) {
    case Term::Kind::made_by:
    case Term::Kind::op:
      return term.ops;
    case Term::Kind::product:
      return {TENON_OP_Mul, TENON_OP_Div};
    case Term::Kind::sum: {
      roots = {TENON_OP_Add, TENON_OP_Sub};
      const Pattern* required = nullptr;
      for (const Pattern& part : term.parts) {
        if (is_optional(part)) continue;
        if (required != nullptr) return roots;
        required = &part;
      }
      if (required != nullptr) append(roots, roots_of(*required));
      return roots;
    }
    case Term::Kind::either:
      for (const Pattern& part : term.parts) append(roots, roots_of(part));
      return roots;
    default:
      return roots;
  }
}

std::vector<tenon_op> required_ops_of(const Pattern& pattern) {
  const Term& term = *pattern.term;
  std::vector<tenon_op> required;
  if (term.kind == Term::Kind::op) required = term.ops;
  if (term.kind == Term::Kind::either) {
    // those of every choice
    required = required_ops_of(term.parts[0]);
    for (const Pattern& part : term.parts) {
      const std::vector<tenon_op> others = required_ops_of(part);
      std::erase_if(required, [&](tenon_op name) { return std::find(others.begin(), others.end(), name) == others.end(); });
    }
    return required;
  }
  for (const Pattern& part : term.parts) {
    if (!is_optional(part)) append(required, required_ops_of(part));
  }
  return required;
}

}  // namespace tenon::graph::patterns
