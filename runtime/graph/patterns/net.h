// SPDX-License-Identifier: Apache-2.0
// graph/patterns/net.h - a graph as patterns see it: producers of values, scalar constants, values that do not change between runs.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include <tenon/graph.h>

#include "graph/passes.h"

namespace tenon::graph::patterns {

/// Reads a graph through an editor, so that operands are those after earlier replacements.
class Net {
 public:
  explicit Net(GraphEditor& editor);

  const ValueInfo& info(ValueId v) const { return editor_.info(v); }
  const Shape& shape(ValueId v) const { return info(v).shape; }
  /// The node that computes the value; no_id for inputs, parameters, constants, and values of nodes that a replacement has just built.
  NodeId maker(ValueId v) const { return info(v).producer; }
  /// The same if it is the op's only or first result.
  bool is_made_by(ValueId v, tenon_op op) const;
  const NodeInfo& node(NodeId n) const { return editor_.node(n); }
  /// The node of a value that has one.
  const NodeInfo& node_of(ValueId v) const { return node(maker(v)); }

  /// The number that all elements of a floating constant have: one element, or a small tensor of equal ones.
  std::optional<double> scalar(ValueId v) const;
  /// A value as another one of its shape times a number.
  struct Scaled {
    ValueId value;
    double factor;
  };
  /// Takes one product with, or division by, a scalar constant apart, or a negation.
  std::optional<Scaled> scaled(ValueId v) const;
  /// True if the value depends only on parameters and constants.
  bool is_fixed(ValueId v) const { return v < fixed_.size() && fixed_[v]; }

 private:
  std::optional<double> constant_scalar(const Tensor& constant) const;

  GraphEditor& editor_;
  std::vector<bool> fixed_;
  mutable std::unordered_map<ValueId, std::optional<double>> scalars_;  ///< of constants
};

/// The axes of Transpose and of reductions.
std::vector<std::int64_t> axes_of(const NodeInfo& node);
/// The elements of a real tensor as doubles.
std::vector<double> doubles_of(const Tensor& tensor);

}  // namespace tenon::graph::patterns
