// SPDX-License-Identifier: Apache-2.0
// graph/patterns/transposes.cpp - pairs of transposes, with elementwise ops between them or not.
#include <tenon/functions.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "graph/op.h"
#include "graph/patterns/records.h"

namespace tenon::graph::patterns {
namespace {

using Axes = std::vector<std::int64_t>;

/// Elementwise ops between two transposes that are looked through.
constexpr std::size_t max_ops = 64;

/// A value as the transpose of one that is computed by the same elementwise ops from the operands of transposes.
struct Region {
  const Net& net;
  Axes permutation = {};              ///< that of all transposes at its begin
  std::vector<NodeId> ops = {};       ///< elementwise
  std::vector<ValueId> sources = {};  ///< results of the transposes

  /// Adds v and what it is computed from. False: it is no such value.
  bool add(ValueId v) {
    if (net.maker(v) == no_id) return false;
    const NodeId n = net.maker(v);
    const NodeInfo& node = net.node(n);
    if (node.op == TENON_OP_Transpose) {
      const Axes axes = axes_of(node);
      if (!sources.empty() && axes != permutation) return false;
      permutation = axes;
      sources.push_back(v);
      return true;
    }
    if (std::find(ops.begin(), ops.end(), n) != ops.end()) return true;
    // the bits of Dropout belong to places
    if (indexing_of(node.op) != Indexing::pointwise || node.op == TENON_OP_Dropout || node.outputs.size() != 1) return false;
    if (ops.size() == max_ops) return false;
    ops.push_back(n);
    for (const ValueId input : node.inputs) {
      if (input == no_id) return false;
      if (is_scalar(input, v)) continue;
      if (net.shape(input) != net.shape(v) || !add(input)) return false;
    }
    return true;
  }

  /// One element, which no arrangement changes.
  bool is_scalar(ValueId input, ValueId result) const {
    return net.shape(input).count() == 1 && net.shape(input).rank() <= net.shape(result).rank() && net.shape(result).count() != 1;
  }
};

/// The permutation of a transpose after another one.
Axes composed(const Axes& first, const Axes& second) {
  Axes both;
  for (const std::int64_t axis : second) both.push_back(first[static_cast<std::size_t>(axis)]);
  return both;
}

bool is_identity(const Axes& permutation) {
  return std::is_sorted(permutation.begin(), permutation.end());
}

bool accepts(Match& match) {
  Region region{match.net};
  if (!region.add(match.id(Role::x)) || region.sources.empty()) return false;
  match.inner.insert(match.inner.end(), region.ops.begin(), region.ops.end());
  // If the pair does not cancel, the first transpose must go with it, or there would be as many as before.
  if (!region.ops.empty() && !is_identity(composed(region.permutation, axes_of(match.net.node(match.root))))) {
    for (const ValueId source : region.sources) match.inner.push_back(match.net.maker(source));
  }
  return true;
}

/// Computes the region's values without the transposes at its begin.
class Untransposed {
 public:
  explicit Untransposed(const Match& match) : match_(match) {}

  Value of(ValueId v) {
    const auto found = made_.find(v);
    if (found != made_.end()) return found->second;
    const NodeInfo node = match_.net.node_of(v);  // a copy: nodes are added
    if (node.op == TENON_OP_Transpose) return match_.of(node.inputs[0]);
    const std::size_t count = static_cast<std::size_t>(match_.net.shape(v).count());
    std::vector<Value> operands;
    for (const ValueId input : node.inputs) {
      const bool is_scalar = match_.net.shape(input).count() == 1 && count != 1;
      operands.push_back(is_scalar ? match_.of(input) : of(input));
    }
    return made_[v] = match_.graph.apply(node.op, operands, node.attributes)[0];
  }

 private:
  const Match& match_;
  std::unordered_map<ValueId, Value> made_;
};

Value replacement(const Match& match) {
  Region region{match.net};
  region.add(match.id(Role::x));
  const Axes permutation = composed(region.permutation, axes_of(match.net.node(match.root)));
  const Value source = Untransposed(match).of(match.id(Role::x));
  return is_identity(permutation) ? source : ops::transpose(source, permutation);
}

}  // namespace

const std::vector<Record>& transpose_records() {
  static const std::vector<Record> records = {
      {"Transpose", "tf2onnx and Paddle, around what they compute with channels last or first", op(TENON_OP_Transpose, {any(Role::x)}),
       accepts, replacement},
  };
  return records;
}

}  // namespace tenon::graph::patterns
