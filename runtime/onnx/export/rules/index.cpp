// SPDX-License-Identifier: Apache-2.0
// onnx/export/rules/index.cpp - ops that read and write by index, and along an axis.
#include <array>
#include <numeric>

#include "onnx/export/rules.h"
#include "onnx/export/rules/scatter.h"

namespace tenon::onnx::exporting {
namespace {

void gather(Node& node) {
  const std::int64_t axis = node.attributes<tenon_attributes_axis>().axis;
  node.output(0, node.op(op_name(node.info().op), node.inputs(), {integer("axis", axis)}));
}

/// The attribute of ScatterElements and ScatterND.
AttributeRecord reduction_of(const Node& node) {
  static constexpr std::array<const char*, 5> reductions = {"none", "add", "mul", "max", "min"};
  const std::uint32_t reduction = node.attributes<tenon_attributes_scatter>().reduction;
  if (reduction > TENON_SCATTER_MUL && node.opset() < 18)
    node.fail("ONNX has the reductions max and min of scattered updates from opset 18 on");
  return text("reduction", reductions[reduction]);
}

void scatter_elements(Node& node) {
  const std::int64_t axis = node.attributes<tenon_attributes_scatter>().axis;
  node.output(0, node.op("ScatterElements", node.inputs(), {integer("axis", axis), reduction_of(node)}));
}

/// ScatterND writes slices of the first axis: another one is moved there.
void scatter_along_axis(Node& node, std::int64_t along, const AttributeRecord& reduction) {
  const auto axis = static_cast<std::size_t>(along);
  const std::size_t rank = node.rank(0), index_rank = node.rank(1);
  // The axes of x, then those of updates, which has the dimensions of the indices in place of the axis.
  const auto to_front = [](std::size_t total, std::size_t first, std::size_t count) {
    std::vector<std::int64_t> permutation(total);
    std::iota(permutation.begin(), permutation.end(), 0);
    std::rotate(permutation.begin(), permutation.begin() + static_cast<std::ptrdiff_t>(first),
                permutation.begin() + static_cast<std::ptrdiff_t>(first + count));
    return permutation;
  };
  Term x = node.input(0), updates = node.input(2);
  if (axis > 0) {
    x = node.transpose(x, to_front(rank, axis, 1));
    updates = node.transpose(updates, to_front(rank - 1 + index_rank, axis, index_rank));
  }
  Term y = scatter_slices(node, x, node.input(1), updates, reduction);
  if (axis > 0) {
    const std::vector<std::int64_t> moved = to_front(rank, axis, 1);
    std::vector<std::int64_t> back(rank);
    for (std::size_t i = 0; i < rank; ++i) back[static_cast<std::size_t>(moved[i])] = static_cast<std::int64_t>(i);
    y = node.transpose(y, back);
  }
  node.output(0, y);
}

void scatter_add(Node& node) {
  scatter_along_axis(node, node.attributes<tenon_attributes_axis>().axis, text("reduction", "add"));
}

void scatter_slices(Node& node) {
  scatter_along_axis(node, node.attributes<tenon_attributes_scatter>().axis, reduction_of(node));
}

void one_hot(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_one_hot>();
  const DType dtype = node.output_dtype();
  const Tensor values = Tensor::empty(dtype, {2});
  values.select(0, 0).fill(attributes.off);
  values.select(0, 1).fill(attributes.on);
  const std::int64_t depth = node.fixed(node.output_sizes()[static_cast<std::size_t>(attributes.axis)], "the number of classes");
  node.output(0,
              node.op("OneHot", {node.input(0), node.integers({depth}), node.constant(values)}, {integer("axis", attributes.axis)}, dtype));
}

void top_k(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_top_k>();
  const std::vector<Term> results =
      node.op_with_results({"TopK"}, {node.input(0), node.integers({attributes.k})},
                           {integer("axis", attributes.axis), integer("largest", attributes.largest), integer("sorted", attributes.sorted)},
                           {node.output_dtype(), DType::i64});
  node.output(0, results[0]);
  node.output(1, results[1]);
}

void cum_sum(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_cum_sum>();
  node.output(0, node.op("CumSum", {node.input(0), node.constant(Tensor::scalar(attributes.axis))},
                         {integer("exclusive", attributes.exclusive), integer("reverse", attributes.reverse)}));
}

}  // namespace

const std::vector<Rule>& index_rules() {
  static const std::vector<Rule> rules = {
      {TENON_OP_Gather, gather},
      {TENON_OP_GatherElements, gather},
      {TENON_OP_ScatterElements, scatter_elements},
      {TENON_OP_ScatterAdd, scatter_add},
      {TENON_OP_ScatterSlices, scatter_slices},
      {TENON_OP_OneHot, one_hot},
      {TENON_OP_TopK, top_k},
      {TENON_OP_CumSum, cum_sum},
  };
  return rules;
}

}  // namespace tenon::onnx::exporting
