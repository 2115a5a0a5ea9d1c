// SPDX-License-Identifier: Apache-2.0
// graph/patterns/rotary.cpp - rotary position embeddings.
#include <tenon/functions.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "graph/op.h"
#include "graph/patterns/records.h"

namespace tenon::graph::patterns {
namespace {

/// 0 for a Concat along the last axis.
std::optional<double> along_last_axis(const Net& net, const NodeInfo& node) {
  const auto rank = static_cast<std::int64_t>(net.shape(node.inputs[0]).rank());
  return node.attributes.as<tenon_attributes_axis>().axis + 1 == rank ? std::optional(0.0) : std::nullopt;
}

/// x cosines + (-second half of x, first half) sines
Pattern rotary() {
  const Pattern x = any(Role::x);
  const Pattern rotated = op(TENON_OP_Concat, {-1 * half(1, x), half(0, x)}, Role::axis, along_last_axis);
  return x * any(Role::cosines) + rotated * any(Role::sines);
}

/// True for a node whose result has the last dimension of its first operand, element by element.
bool keeps_last_dimension(const Net& net, const NodeInfo& node) {
  const Shape &from = net.shape(node.inputs[0]), &to = net.shape(node.outputs[0]);
  if (from.rank() == 0 || to.rank() == 0 || from[from.rank() - 1] != to[to.rank() - 1]) return false;
  const auto last = static_cast<std::int64_t>(from.rank()) - 1;
  switch (node.op) {
    case TENON_OP_Reshape:
    case TENON_OP_Expand:
      return true;
    case TENON_OP_Transpose:
      return axes_of(node).back() == last;
    case TENON_OP_Gather:
      return node.attributes.as<tenon_attributes_axis>().axis != last;
    case TENON_OP_Slice: {
      const auto& attributes = node.attributes.as<tenon_attributes_slice>();
      return attributes.starts[last] == 0 && attributes.steps[last] == 1;
    }
    default:
      return false;
  }
}

/// Values that are looked at to find out how angles are computed.
constexpr std::size_t max_visited = 256;

/// Finds out whether the two halves of the last dimension are equal, whatever the inputs of the graph are.
class EqualHalves {
 public:
  explicit EqualHalves(const Net& net) : net_(net) {}

  bool holds_for(ValueId v) {
    const Shape& shape = net_.shape(v);
    if (shape.rank() == 0 || shape.count() == 0) return false;
    const std::int64_t size = shape[shape.rank() - 1];
    if (size == 1) return true;  // it broadcasts
    if (size % 2 != 0) return false;
    // one answer of no is the answer for all
    if (!visited_.insert(v).second) return true;
    if (visited_.size() > max_visited) return false;
    if (net_.info(v).kind == ValueKind::constant) return is_repeated(net_.info(v).constant, size);
    return net_.maker(v) != no_id && is_made_of_such(v);
  }

 private:
  const Net& net_;
  std::set<ValueId> visited_ = {};

  static bool is_repeated(const Tensor& constant, std::int64_t size) {
    if (!constant.defined()) return false;
    const std::vector<double> elements = doubles_of(constant);
    for (auto row = elements.begin(); row != elements.end(); row += size) {
      if (!std::equal(row, row + size / 2, row + size / 2)) return false;
    }
    return true;
  }

  bool is_made_of_such(ValueId v) {
    const NodeInfo& node = net_.node_of(v);
    if (node.op == TENON_OP_Concat) {
      const auto rank = static_cast<std::int64_t>(net_.shape(v).rank());
      const bool along_last = node.attributes.as<tenon_attributes_axis>().axis + 1 == rank;
      return along_last && node.inputs.size() == 2 && node.inputs[0] == node.inputs[1];
    }
    if (node.op == TENON_OP_Dropout) return false;  // its bits belong to places
    if (indexing_of(node.op) == Indexing::pointwise) {
      return std::all_of(node.inputs.begin(), node.inputs.end(),
                         [&](ValueId input) { return input != no_id && (net_.shape(input).count() == 1 || holds_for(input)); });
    }
    return keeps_last_dimension(net_, node) && holds_for(node.inputs[0]);
  }
};

/// True for angles (1, ..., S, D) with equal halves.
bool is_table(const Match& match, Role role, std::int64_t length, std::int64_t size) {
  const Shape& table = match.shape(role);
  if (table.rank() < 2 || table[table.rank() - 2] != length || table[table.rank() - 1] != size) return false;
  return table.count() == length * size && EqualHalves(match.net).holds_for(match.id(role));
}

bool accepts(Match& match) {
  const Shape& x = match.shape(Role::x);
  if (x.rank() < 2 || x.count() == 0 || x != match.net.shape(match.result())) return false;
  const std::int64_t length = x[x.rank() - 2], size = x[x.rank() - 1];
  return is_table(match, Role::cosines, length, size) && is_table(match, Role::sines, length, size);
}

Value replacement(const Match& match) {
  const Value x = match.value(Role::x);
  const Shape shape = x.shape();
  const std::int64_t length = shape[shape.rank() - 2], size = shape[shape.rank() - 1];
  const auto first_half = [&](Role role) { return ops::reshape(ops::slice(match.value(role), -1, 0, size / 2), Shape{length, size / 2}); };
  const Value cosines = first_half(Role::cosines), sines = first_half(Role::sines);
  return ops::rotary_embedding(x, cosines, sines);
}

}  // namespace

const std::vector<Record>& rotary_records() {
  static const std::vector<Record> records = {
      {"RotaryEmbedding", "Llama and its relatives below opset 23, where cosines and sines are computed from concatenated angles", rotary(),
       accepts, replacement},
  };
  return records;
}

}  // namespace tenon::graph::patterns
