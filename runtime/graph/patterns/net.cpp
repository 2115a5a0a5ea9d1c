// SPDX-License-Identifier: Apache-2.0
#include "graph/patterns/net.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/element.h"

namespace tenon::graph::patterns {
namespace {

/// Elements that are compared to find out whether a constant has only one value.
constexpr std::int64_t max_compared = 4096;

}  // namespace

Net::Net(GraphEditor& editor) : editor_(editor), fixed_(editor.values().size()) {
  for (ValueId v = 0; v < fixed_.size(); ++v) {
    const ValueKind kind = editor.info(v).kind;
    fixed_[v] = kind == ValueKind::parameter || kind == ValueKind::constant;
  }
  for (NodeId n = 0; n < editor.node_count(); ++n) {
    const NodeInfo& of = editor.node(n);
    const bool all = std::all_of(of.inputs.begin(), of.inputs.end(), [&](ValueId input) { return input == no_id || fixed_[input]; });
    for (const ValueId output : of.outputs) {
      if (output != no_id) fixed_[output] = all;
    }
  }
}

bool Net::is_made_by(ValueId v, tenon_op op) const {
  return maker(v) != no_id && info(v).output == 0 && node_of(v).op == op;
}

std::optional<double> Net::constant_scalar(const Tensor& constant) const {
  if (!constant.defined() || constant.count() == 0 || constant.count() > max_compared) return std::nullopt;
  if (constant.count() == 1) return constant.item();
  const std::vector<double> elements = doubles_of(constant);
  const bool equal = std::all_of(elements.begin(), elements.end(), [&](double x) { return x == elements.front(); });
  return equal ? std::optional(elements.front()) : std::nullopt;
}

std::optional<double> Net::scalar(ValueId v) const {
  // constants of 16 bits are casts of f32, and larger ones expansions
  while (maker(v) != no_id) {
    const NodeInfo& of = node_of(v);
    const bool keeps_value =
        of.op == TENON_OP_Expand || of.op == TENON_OP_Reshape || (of.op == TENON_OP_Cast && is_floating(info(v).dtype));
    if (!keeps_value) return std::nullopt;
    v = of.inputs[0];
  }
  if (info(v).kind != ValueKind::constant || !is_floating(info(v).dtype)) return std::nullopt;
  const auto found = scalars_.find(v);
  if (found != scalars_.end()) return found->second;
  return scalars_[v] = constant_scalar(info(v).constant);
}

std::optional<Net::Scaled> Net::scaled(ValueId v) const {
  if (maker(v) == no_id) return std::nullopt;
  const NodeInfo& of = node_of(v);
  const auto with = [&](std::size_t operand, double factor) -> std::optional<Scaled> {
    // a constant that is larger than the other operand repeats it
    if (shape(of.inputs[operand]) != shape(v)) return std::nullopt;
    return Scaled{of.inputs[operand], factor};
  };
  switch (of.op) {
    case TENON_OP_Neg:
      return with(0, -1);
    case TENON_OP_Mul:
      if (const auto right = scalar(of.inputs[1])) return with(0, *right);
      if (const auto left = scalar(of.inputs[0])) return with(1, *left);
      return std::nullopt;
    case TENON_OP_Div:
      if (const auto divisor = scalar(of.inputs[1])) return with(0, 1 / *divisor);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::vector<std::int64_t> axes_of(const NodeInfo& node) {
  const auto& attributes = node.attributes.as<tenon_attributes_axes>();
  return {attributes.axes, attributes.axes + attributes.count};
}

std::vector<double> doubles_of(const Tensor& tensor) {
  std::vector<double> elements(static_cast<std::size_t>(tensor.count()));
  const auto* at = static_cast<const unsigned char*>(tensor.raw());
  for (double& element : elements) {
    element = element_as_double(at, tensor.dtype(), "a constant");
    at += size_of(tensor.dtype());
  }
  return elements;
}

}  // namespace tenon::graph::patterns
