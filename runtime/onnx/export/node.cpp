// SPDX-License-Identifier: Apache-2.0
#include "onnx/export/node.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include <tenon/error.h>

#include "onnx/export/exporter.h"
#include "onnx/model_file.h"

namespace tenon::onnx::exporting {

Node::Node(Exporter& exporter, const NodeInfo& info) : exporter_(exporter), info_(info) {}

std::int64_t Node::opset() const {
  return exporter_.writer().opset();
}

Term Node::input(std::size_t i) const {
  return has_input(i) ? exporter_.term(info_.inputs[i]) : Term();
}

std::vector<Term> Node::inputs() const {
  std::vector<Term> terms;
  for (std::size_t i = 0; i < input_count(); ++i) terms.push_back(input(i));
  return terms;
}

Term Node::wide_input(std::size_t i) {
  const Term term = input(i);
  return term.dtype == DType::f16 || term.dtype == DType::bf16 ? cast(term, DType::f32) : term;
}

Term Node::reshaped_input(std::size_t i, const Sizes& sizes) {
  if (input_sizes(i) == sizes) return input(i);
  const ValueInfo& info = exporter_.graph().info(info_.inputs[i]);
  if (info.kind != ValueKind::constant || std::ranges::any_of(sizes, &Size::times_batch)) return reshape(input(i), sizes);
  const std::vector<std::int64_t> dims = fixed(sizes, "the shape");
  return exporter_.writer().constant(info.constant.reshape(Shape(std::span(dims))), info.name.empty() ? "constant" : info.name);
}

Sizes Node::input_sizes(std::size_t i) const {
  return exporter_.sizes(info_.inputs[i]);
}

bool Node::needs_output(std::size_t i) const {
  return i < info_.outputs.size() && info_.outputs[i] != no_id && exporter_.is_read(info_.outputs[i]);
}

DType Node::output_dtype(std::size_t i) const {
  return exporter_.graph().info(info_.outputs[i]).dtype;
}

Sizes Node::output_sizes(std::size_t i) const {
  return exporter_.sizes(info_.outputs[i]);
}

void Node::output(std::size_t i, Term term) {
  exporter_.set(info_.outputs[i], cast(term, output_dtype(i)));
}

Term Node::op(std::string_view name, std::vector<Term> inputs, std::vector<AttributeRecord> attributes, DType result) {
  const DType dtype = result == DType::none ? inputs[0].dtype : result;
  return op_with_results({name}, std::move(inputs), std::move(attributes), {dtype})[0];
}

std::vector<Term> Node::op_with_results(Operator op, std::vector<Term> inputs, std::vector<AttributeRecord> attributes,
                                        const std::vector<DType>& results) {
  return exporter_.writer().add(info_.name, op, std::move(inputs), std::move(attributes), results);
}

Term Node::cast(Term term, DType dtype) {
  if (term.dtype == dtype) return term;
  return op("Cast", {term}, {integer("to", static_cast<std::int64_t>(element_type_of(dtype)))}, dtype);
}

Term Node::constant(const Tensor& tensor) {
  return exporter_.writer().constant(tensor);
}

Term Node::integers(const std::vector<std::int64_t>& values) {
  return exporter_.writer().integers(values);
}

Term Node::shape(const Sizes& sizes) {
  std::vector<Term> parts;
  std::vector<std::int64_t> constants;
  const auto end_constants = [&] {
    if (!constants.empty()) parts.push_back(integers(constants));
    constants.clear();
  };
  for (const Size& size : sizes) {
    if (!size.times_batch) {
      constants.push_back(size.count);
      continue;
    }
    end_constants();
    const Term batch = exporter_.batch();
    parts.push_back(size.count == 1 ? batch : op("Mul", {batch, integers({size.count})}));
  }
  if (parts.empty()) return integers(constants);
  end_constants();
  return parts.size() == 1 ? parts[0] : op("Concat", parts, {exporting::integer("axis", 0)});
}

Term Node::reshape(Term term, const Sizes& sizes) {
  const auto batches = std::ranges::count_if(sizes, &Size::times_batch);
  const bool empty = std::ranges::any_of(sizes, [](const Size& size) { return size.count == 0; });
  std::vector<AttributeRecord> attributes;
  if (empty) attributes.push_back(integer("allowzero", 1));
  if (batches != 1 || empty) return op("Reshape", {term, shape(sizes)}, attributes);
  std::vector<std::int64_t> target;
  for (const Size& size : sizes) target.push_back(size.times_batch ? -1 : size.count);
  return op("Reshape", {term, integers(target)});
}

Term Node::transpose(Term term, const std::vector<std::int64_t>& permutation) {
  return op("Transpose", {term}, {exporting::integers("perm", permutation)});
}

Term Node::expand(Term term, const Sizes& from, const Sizes& to) {
  if (from == to) return term;
  // Dimensions that are as they should be are 1 in ONNX's target shape, so that most targets are constants.
  Sizes target = to;
  for (std::size_t i = 0; i < from.size(); ++i) {
    Size& size = target[to.size() - from.size() + i];
    if (from[i] == size) size = {1};
  }
  return op("Expand", {term, shape(target)});
}

Term Node::pad(Term term, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths, double value, std::string_view mode) {
  std::vector<std::int64_t> pads;
  for (const auto& width : widths) pads.push_back(width.first);
  for (const auto& width : widths) pads.push_back(width.second);
  if (std::ranges::all_of(pads, [](std::int64_t width) { return width == 0; })) return term;
  std::vector<Term> operands = {term, integers(pads)};
  if (mode == "constant") operands.push_back(scalar(term.dtype, value));
  return op("Pad", operands, {text("mode", mode)});
}

std::vector<std::int64_t> Node::fixed(const Sizes& sizes, const std::string& what) const {
  std::vector<std::int64_t> counts;
  for (const Size& size : sizes) {
    if (size.times_batch) fail(fmt::format("{} depends on the batch size, which ONNX cannot express here; {}", what, fixed_batch_remedy));
    counts.push_back(size.count);
  }
  return counts;
}

void Node::fail(const std::string& text) const {
  throw Error(Status::unsupported, text);
}

}  // namespace tenon::onnx::exporting
