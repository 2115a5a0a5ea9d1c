// SPDX-License-Identifier: Apache-2.0
// graph/patterns/pattern.h - patterns of values, written as expressions: 0.5 * x * (1 + op(TENON_OP_Erf, {std::sqrt(0.5) * x})).
//
// Products and sums match in every order and grouping. In them a division is a factor with exponent -1, a root one with 0.5, a
// difference a term with weight -1, and scalar constants join into one coefficient: x / 2, x * 0.5 and -(x * -0.5) are the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <tenon/graph.h>

namespace tenon::graph::patterns {

/// What a pattern binds a value, a number or both to.
enum class Role : std::uint8_t {
  x,
  scale,
  bias,
  mean,
  variance,
  divisor,
  subtrahend,
  layer,   ///< a product or convolution
  addend,  ///< what is added to it
  axis,
  epsilon,
  q,
  k,
  v,
  score_scale,
  mask,         ///< added to the scores; its number is a factor
  second_mask,  ///< added as well
  keep,         ///< a condition: where false, the score is `fill`
  drop,         ///< a condition: where true, the score is `fill`
  fill,
  zero,
  cosines,
  sines,
  count,
};

class Net;
/// A number that follows from a node, such as its axis; nothing if the node does not fit.
using NodeNumber = std::optional<double> (*)(const Net& net, const NodeInfo& node);

struct Term;
/// A shared, immutable term.
struct Pattern {
  std::shared_ptr<const Term> term;
};

struct Term {
  enum class Kind : std::uint8_t {
    any,      ///< a value; the same one wherever the role occurs
    number,   ///< a scalar constant
    made_by,  ///< the result of one of `ops`, whatever its operands are
    op,       ///< the result of ops[0] applied to `parts`
    half,     ///< half `value` of the last dimension of parts[0]
    product,  ///< `value` times the product of parts[i]^weights[i]
    sum,      ///< `value`, or a number of `role`, plus the sum of weights[i] parts[i]
    times,    ///< parts[0] times a number of `role`, as a term of a sum
    scaled,   ///< the same where products with scalar constants are taken apart first
    either,   ///< one of `parts`
    maybe,    ///< in a product or sum: parts[0], or nothing
  };
  Kind kind = Kind::any;
  Role role = Role::count;  ///< count: none
  double value = 0;
  std::vector<tenon_op> ops = {};
  std::vector<Pattern> parts = {};
  std::vector<double> weights = {};
  NodeNumber number = nullptr;  ///< op: it is bound to `role`
};

Pattern any(Role role);
Pattern number(Role role);
Pattern made_by(Role role, std::vector<tenon_op> ops);
Pattern op(tenon_op name, std::vector<Pattern> operands);
/// The same with a number of the node.
Pattern op(tenon_op name, std::vector<Pattern> operands, Role role, NodeNumber of_node);
Pattern half(int which, Pattern of);
Pattern pow(Pattern base, double exponent);
Pattern times(Role role, Pattern of);
Pattern scaled(Role role, Pattern of);
Pattern either(std::vector<Pattern> choices);
Pattern maybe(Pattern of);

Pattern operator*(const Pattern& a, const Pattern& b);
Pattern operator*(double a, const Pattern& b);
Pattern operator/(const Pattern& a, const Pattern& b);
Pattern operator+(const Pattern& a, const Pattern& b);
Pattern operator+(double a, const Pattern& b);
Pattern operator-(const Pattern& a, const Pattern& b);

/// The ops that the last node of a match can have.
std::vector<tenon_op> roots_of(const Pattern& pattern);
/// Ops that every match has.
std::vector<tenon_op> required_ops_of(const Pattern& pattern);

}  // namespace tenon::graph::patterns
