// SPDX-License-Identifier: Apache-2.0
// onnx/rules/sequence.cpp - sequences and optionals. A sequence is a list of operands, of which each keeps what is known of it; positions
// have to be known. An optional is represented by its element, an empty one by an absent operand.
#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

using Operands = std::vector<Operand>;

/// SplitToSequence makes no more parts of one tensor.
constexpr std::int64_t max_parts = 1 << 16;

/// The elements of a sequence.
const Operands& list_of(const Node& node, std::size_t i) {
  if (node.operand(i).kind != Operand::Kind::list) node.fail(fmt::format("operand {}: expected a sequence, got a tensor", i));
  return node.operand(i).list;
}

/// Operand i as a position in [-size, end), where negative ones count from `size`.
std::ptrdiff_t position_of(Node& node, std::size_t i, std::size_t size, std::size_t end) {
  const auto n = static_cast<std::int64_t>(size), last = static_cast<std::int64_t>(end) - 1;
  const std::int64_t position = node.known_integer(i);
  if (position < -n || position > last)
    node.fail(fmt::format("expected a position between {} and {} in a sequence of {}, got {}", -n, last, n, position));
  return static_cast<std::ptrdiff_t>(position < 0 ? position + n : position);
}

/// Errors: the elements are not all tensors of one dtype.
void check_elements(const Node& node, const Operands& elements) {
  for (const Operand& element : elements) {
    if (element.kind != Operand::Kind::tensor) node.fail("expected a sequence of tensors, got another element");
    if (element.dtype() != elements[0].dtype()) {
      node.fail(fmt::format("expected a sequence of one dtype, got {} and {}", name_of(elements[0].dtype()), name_of(element.dtype())));
    }
  }
}

void output_list(Node& node, std::size_t i, Operands elements) {
  check_elements(node, elements);
  node.output(i, Operand::of(std::move(elements)));
}

void sequence_construct(Node& node) {
  Operands elements;
  for (std::size_t i = 0; i < node.input_count(); ++i) elements.push_back(node.operand(i));
  output_list(node, 0, std::move(elements));
}

void sequence_at(Node& node) {
  const Operands& list = list_of(node, 0);
  node.output(0, list[static_cast<std::size_t>(position_of(node, 1, list.size(), list.size()))]);
}

void sequence_erase(Node& node) {
  Operands list = list_of(node, 0);
  if (list.empty()) node.fail("expected a sequence with an element to erase, got an empty one");
  const std::size_t n = list.size();
  list.erase(list.begin() + (node.has_input(1) ? position_of(node, 1, n, n) : static_cast<std::ptrdiff_t>(n - 1)));
  node.output(0, Operand::of(std::move(list)));
}

void sequence_insert(Node& node) {
  Operands list = list_of(node, 0);
  const std::size_t n = list.size();
  list.insert(list.begin() + (node.has_input(2) ? position_of(node, 2, n, n + 1) : static_cast<std::ptrdiff_t>(n)), node.operand(1));
  output_list(node, 0, std::move(list));
}

void sequence_length(Node& node) {
  node.output(0, Tensor::scalar(static_cast<std::int64_t>(list_of(node, 0).size())));
}

void split_to_sequence(Node& node) {
  const Shape shape = tensor_shape(node, 0);
  const std::int64_t axis = node.resolve_axis(node.integer("axis", 0), node.rank(0)), size = shape[static_cast<std::size_t>(axis)];
  const bool listed = node.has_input(1) && tensor_shape(node, 1).rank() == 1;
  std::vector<std::int64_t> sizes;
  if (listed) {
    sizes = node.known_integers(1);
  } else {
    const std::int64_t part = node.has_input(1) ? node.known_integer(1) : 1;
    if (part < 1) node.fail(fmt::format("expected parts of 1 or more, got {}", part));
    const std::int64_t parts = size / part + (size % part == 0 ? 0 : 1);
    if (parts > max_parts) node.unsupported(fmt::format("expected at most {} parts, got {}", max_parts, parts));
    sizes.assign(static_cast<std::size_t>(parts), part);
    if (size % part != 0) sizes.back() = size % part;
  }
  if (sizes.empty() && size > 0) node.fail(fmt::format("expected sizes that add up to {}, got none", size));
  Operands elements;
  if (!sizes.empty()) {
    const bool keeps_axis = node.has_input(1) || node.flag("keepdims", true);
    for (const Value part : ops::split(node.input(0), sizes, axis)) elements.emplace_back(keeps_axis ? part : ops::squeeze(part, {axis}));
  }
  node.output(0, Operand::of(std::move(elements)));
}

void concat_from_sequence(Node& node) {
  const Operands& list = list_of(node, 0);
  if (list.empty()) node.fail("expected a sequence with elements, got an empty one");
  check_elements(node, list);
  const bool stacks = node.flag("new_axis");
  const auto rank = static_cast<std::int64_t>(list[0].shape().rank());
  const std::int64_t axis = node.resolve_axis(node.integer("axis"), stacks ? rank + 1 : rank);
  if (list.size() == 1 && !stacks) return node.output(0, list[0]);
  std::vector<Value> values;
  for (const Operand& element : list) values.push_back(node.value_of(element));
  node.output(0, stacks ? ops::stack(values, axis) : ops::concat(values, axis));
}

/// The body's results for each element; further sequences are read in step, tensors as they are.
void sequence_map(Node& node) {
  const GraphRecord& body = node.subgraph("body");
  const std::size_t length = list_of(node, 0).size();
  for (std::size_t i = 1; i < node.input_count(); ++i) {
    const Operand& operand = node.operand(i);
    if (operand.kind == Operand::Kind::list && operand.list.size() != length)
      node.fail(fmt::format("expected sequences of one length, got {} and {}", length, operand.list.size()));
  }
  if (body.outputs.size() < node.output_count())
    node.fail(fmt::format("expected a body with {} outputs, got {}", node.output_count(), body.outputs.size()));
  node.count_iterations(static_cast<std::int64_t>(length));
  std::vector<Operands> results(body.outputs.size());
  for (std::size_t k = 0; k < length; ++k) {
    Operands operands;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      const Operand& operand = node.operand(i);
      operands.push_back(operand.kind == Operand::Kind::list ? operand.list[k] : operand);
    }
    Operands outputs = node.run_subgraph(body, std::move(operands));
    for (std::size_t i = 0; i < results.size(); ++i) results[i].push_back(std::move(outputs[i]));
  }
  for (std::size_t i = 0; i < results.size(); ++i) output_list(node, i, std::move(results[i]));
}

void optional(Node& node) {
  if (node.has_input(0)) node.output(0, node.operand(0));
}

void optional_get_element(Node& node) {
  if (!node.has_input(0)) node.fail("expected an optional with an element, got an empty one");
  node.output(0, node.operand(0));
}

void optional_has_element(Node& node) {
  node.output(0, Tensor::full(DType::boolean, {}, node.has_input(0) ? 1 : 0));
}

}  // namespace

const std::vector<Rule>& sequence_rules() {
  static const std::vector<Rule> rules = {
      {"ConcatFromSequence", 11, concat_from_sequence},
      {"Optional", 15, optional},
      {"OptionalGetElement", 15, optional_get_element},
      {"OptionalHasElement", 15, optional_has_element},
      {"SequenceAt", 11, sequence_at},
      {"SequenceConstruct", 11, sequence_construct},
      {"SequenceEmpty", 11, [](Node& node) { node.output(0, Operand::of({})); }},
      {"SequenceErase", 11, sequence_erase},
      {"SequenceInsert", 11, sequence_insert},
      {"SequenceLength", 11, sequence_length},
      {"SequenceMap", 17, sequence_map},
      {"SplitToSequence", 11, split_to_sequence},
  };
  return rules;
}

}  // namespace tenon::onnx
