// SPDX-License-Identifier: Apache-2.0
// onnx/export/rules/shape.cpp - ops that arrange, repeat, cut and join elements.
#include <fmt/core.h>

#include <array>
#include <limits>

#include "onnx/export/rules.h"

namespace tenon::onnx::exporting {
namespace {

void reshape(Node& node) {
  node.output(0, node.reshape(node.input(0), node.output_sizes()));
}

void flatten(Node& node) {
  node.output(0, node.op("Flatten", {node.input(0)}, {integer("axis", node.attributes<tenon_attributes_axis>().axis)}));
}

void transpose(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_axes>();
  node.output(0, node.transpose(node.input(0), {attributes.axes, attributes.axes + attributes.count}));
}

void expand(Node& node) {
  node.output(0, node.expand(node.input(0), node.input_sizes(0), node.output_sizes()));
}

/// Axes that are kept whole are left out.
void slice(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_slice>();
  const Sizes from = node.input_sizes(0), to = node.output_sizes();
  std::vector<std::int64_t> starts, ends, axes, steps;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::int64_t start = attributes.starts[i], step = attributes.steps[i];
    if (start == 0 && step == 1 && from[i] == to[i]) continue;
    const std::int64_t count = node.fixed(to[i], fmt::format("the size of the slice of axis {}", i));
    const std::int64_t last = start + (count - 1) * step;
    axes.push_back(static_cast<std::int64_t>(i));
    starts.push_back(count == 0 ? 0 : start);
    steps.push_back(count == 0 ? 1 : step);
    // An end below 0 would count from the end.
    ends.push_back(count == 0 ? 0 : step > 0 ? last + 1 : last > 0 ? last - 1 : std::numeric_limits<std::int64_t>::min());
  }
  Term y = node.input(0);
  if (!axes.empty()) y = node.op("Slice", {y, node.integers(starts), node.integers(ends), node.integers(axes), node.integers(steps)});
  node.output(0, y);
}

void pad(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_pad>();
  const Sizes from = node.input_sizes(0), to = node.output_sizes();
  std::vector<std::pair<std::int64_t, std::int64_t>> widths;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::int64_t before = attributes.before[i];
    if (from[i] == to[i]) {
      widths.emplace_back(before, -before);
    } else {
      const std::vector<std::int64_t> counts = node.fixed({from[i], to[i]}, fmt::format("the padding of axis {}", i));
      widths.emplace_back(before, counts[1] - counts[0] - before);
    }
  }
  static constexpr std::array<const char*, 3> modes = {"constant", "reflect", "edge"};
  node.output(0, node.pad(node.input(0), widths, attributes.value, modes[attributes.mode]));
}

void concat(Node& node) {
  node.output(0, node.op("Concat", node.inputs(), {integer("axis", node.attributes<tenon_attributes_axis>().axis)}));
}

void split(Node& node) {
  const std::int64_t axis = node.attributes<tenon_attributes_axis>().axis;
  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i < node.output_count(); ++i) {
    counts.push_back(node.fixed(node.output_sizes(i)[static_cast<std::size_t>(axis)], fmt::format("the size of part {}", i)));
  }
  const std::vector<Term> parts = node.op_with_results({"Split"}, {node.input(0), node.integers(counts)}, {integer("axis", axis)},
                                                       std::vector<DType>(counts.size(), node.output_dtype()));
  for (std::size_t i = 0; i < parts.size(); ++i) node.output(i, parts[i]);
}

}  // namespace

const std::vector<Rule>& shape_rules() {
  static const std::vector<Rule> rules = {
      {TENON_OP_Reshape, reshape}, {TENON_OP_Flatten, flatten}, {TENON_OP_Transpose, transpose}, {TENON_OP_Expand, expand},
      {TENON_OP_Slice, slice},     {TENON_OP_Pad, pad},         {TENON_OP_Concat, concat},       {TENON_OP_Split, split},
  };
  return rules;
}

}  // namespace tenon::onnx::exporting
