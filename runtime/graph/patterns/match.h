// SPDX-License-Identifier: Apache-2.0
// graph/patterns/match.h - matches patterns against values of a graph, from a value back to its operands.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include <tenon/graph.h>

#include "graph/patterns/net.h"
#include "graph/patterns/pattern.h"

namespace tenon::graph::patterns {

/// What a pattern matched.
struct Match {
  Match(const Net& of, Graph& in, NodeId node) : net(of), graph(in), root(node) { values.fill(no_id); }

  const Net& net;
  Graph& graph;
  NodeId root;
  std::vector<NodeId> inner = {};  ///< nodes that the replacement makes unnecessary; may hold the root, and nodes twice
  std::array<ValueId, static_cast<std::size_t>(Role::count)> values = {};
  std::array<std::optional<double>, static_cast<std::size_t>(Role::count)> numbers = {};

  ValueId id(Role role) const { return values[static_cast<std::size_t>(role)]; }
  bool has(Role role) const { return id(role) != no_id; }
  /// The bound value; absent if there is none.
  Value value(Role role) const { return has(role) ? of(id(role)) : Value(); }
  Value of(ValueId v) const { return {&graph, v}; }
  /// The bound number, which exists.
  double number(Role role) const { return *numbers[static_cast<std::size_t>(role)]; }
  /// The shape of the bound value, which exists.
  const Shape& shape(Role role) const { return net.shape(id(role)); }
  /// The value to be replaced.
  ValueId result() const { return net.node(root).outputs[0]; }
};

/// A reference to a callable, for the length of a call.
class Next {
 public:
  template <class Body>
  Next(const Body& body) : body_(&body), call_([](const void* at) { return (*static_cast<const Body*>(at))(); }) {}
  bool operator()() const { return call_(body_); }

 private:
  const void* body_;
  bool (*call_)(const void*);
};

/// Matches with backtracking: tries every way to match until `next`, which is called with what has been bound, returns true. Only then are
/// bindings kept.
class Matcher {
 public:
  /// Numbers are equal within the relative `tolerance`.
  Matcher(Match& match, double tolerance) : match_(match), net_(match.net), tolerance_(tolerance) {}
  /// Whether `scale` times v matches.
  bool matches(const Pattern& pattern, ValueId v, double scale, Next next);

 private:
  /// A factor with its exponent, or a term with its weight, that no part of the pattern has matched yet.
  struct Item {
    ValueId value;
    double weight;
  };
  struct Items {
    std::vector<Item> list = {};
    double number = 0;  ///< the scalar constants so far: their product or sum
  };

  bool is_near(double a, double b) const;
  bool bind(Role role, ValueId v, Next next);
  bool bind(Role role, double number, Next next);
  /// `next` with node n as an inner one.
  bool within(NodeId n, Next next);
  bool matches_op(const Term& term, ValueId v, Next next);
  bool matches_operands(const Term& term, const std::vector<ValueId>& operands, std::size_t from, Next next);
  bool matches_half(const Term& term, ValueId v, Next next);
  bool matches_scaled(const Pattern& pattern, ValueId v, double scale, Next next);
  /// Whether the items are the factors that are left over; `left` has their exponents, 0 once matched.
  bool matches_factors(const Term& product, Items items, std::vector<double> left, Next next);
  bool takes_apart_factor(const Term& product, Item item, const Items& items, const std::vector<double>& left, Next next);
  bool matches_terms(const Term& sum, Items items, std::vector<bool> used, Next next);
  bool takes_apart_term(const Term& sum, Item item, const Items& items, const std::vector<bool>& used, Next next);

  Match& match_;
  const Net& net_;
  double tolerance_;
};

}  // namespace tenon::graph::patterns
