// SPDX-License-Identifier: Apache-2.0
#include "onnx/export/writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "onnx/export/attributes.h"
#include "onnx/export/element_types.h"
#include "onnx/model_file.h"

namespace tenon::onnx::exporting {
namespace {

/// Tensors of at most this size are looked for among the initializers.
constexpr std::int64_t shared_size_bytes = 1024;

std::string_view bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw()), static_cast<std::size_t>(tensor.size_bytes())};
}

}  // namespace

std::string_view Writer::free_name(const std::string& wanted) {
  if (claim(wanted)) return keep(wanted);
  std::uint32_t& suffix = suffixes_[wanted];
  while (true) {
    std::string name = fmt::format("{}_{}", wanted, ++suffix);
    if (claim(name)) return keep(std::move(name));
  }
}

Term Writer::cast(const std::string& scope, const Term& term, DType dtype) {
  return add(scope, {"Cast"}, {term}, {integer("to", static_cast<std::int64_t>(element_type_of(dtype)))}, {dtype})[0];
}

std::vector<Term> Writer::add(const std::string& scope, Operator op, std::vector<Term> inputs, std::vector<AttributeRecord> attributes,
                              const std::vector<DType>& results) {
  const auto taken = [&](DType dtype) { return !op.domain.empty() || takes(op.name, dtype, opset_) ? dtype : DType::f32; };
  for (Term& input : inputs) {
    if (input.present() && taken(input.dtype) != input.dtype) input = cast(scope, input, taken(input.dtype));
  }
  while (!inputs.empty() && !inputs.back().present()) inputs.pop_back();
  if (!op.domain.empty()) domains_[op.domain] = op.version;
  const std::string base = fmt::format("{}/{}", scope, op.name);
  NodeRecord node;
  for (std::uint32_t i = 0; node.name.empty(); ++i) {
    std::string name = i == 0 ? base : fmt::format("{}_{}", base, i);
    if (node_names_.insert(name).second) node.name = keep(std::move(name));
  }
  node.op = op.name;
  node.domain = op.domain;
  node.attributes = std::move(attributes);
  for (const Term& input : inputs) node.inputs.push_back(input.name);
  std::vector<Term> terms;
  for (const DType dtype : results) {
    Term& term = terms.emplace_back();
    if (dtype != DType::none) term = {free_name(base), taken(dtype)};
    if (term.present()) producers_[term.name] = nodes_.size();
    node.outputs.push_back(term.name);
  }
  while (!node.outputs.empty() && node.outputs.back().empty()) node.outputs.pop_back();
  nodes_.push_back(std::move(node));
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].present() && terms[i].dtype != results[i]) terms[i] = cast(scope, terms[i], results[i]);
  }
  return terms;
}

Term Writer::initializer(std::string_view name, const Tensor& tensor) {
  const Tensor& kept = tensors_.emplace_back(tensor.to_host().contiguous());
  TensorRecord record;
  record.name = name;
  record.type = element_type_of(kept.dtype());
  for (std::size_t i = 0; i < kept.shape().rank(); ++i) record.dims.push_back(kept.shape()[i]);
  record.raw = bytes_of(kept);
  initializers_.push_back(std::move(record));
  return {name, kept.dtype()};
}

Term Writer::constant(const Tensor& tensor, const std::string& name) {
  if (tensor.size_bytes() > shared_size_bytes) return initializer(free_name(name), tensor);
  const Tensor host = tensor.to_host().contiguous();
  Term& term = constants_[{host.dtype(), host.shape().str(), std::string(bytes_of(host))}];
  if (!term.present()) term = initializer(free_name(name), host);
  return term;
}

Term Writer::integers(const std::vector<std::int64_t>& values) {
  return constant(Tensor::of(values, {static_cast<std::int64_t>(values.size())}));
}

bool Writer::can_rename(const Term& term, std::size_t first) const {
  const auto producer = producers_.find(term.name);
  return producer != producers_.end() && producer->second >= first && !final_names_.contains(term.name);
}

std::string_view Writer::name_of(const Term& term) const {
  const auto found = final_names_.find(term.name);
  return found == final_names_.end() ? term.name : found->second;
}

GraphRecord Writer::finish() {
  GraphRecord graph;
  for (NodeRecord& node : nodes_) {
    for (auto* names : {&node.inputs, &node.outputs}) {
      for (std::string_view& name : *names) name = name_of({name});
    }
  }
  graph.nodes = std::move(nodes_);
  graph.initializers = std::move(initializers_);
  return graph;
}

}  // namespace tenon::onnx::exporting
