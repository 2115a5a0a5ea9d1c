// SPDX-License-Identifier: Apache-2.0
#include "onnx/weights.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>

#include <tenon/dtype.h>
#include <tenon/shape.h>

namespace tenon::onnx {
namespace {

/// The operands of an operator that are weights of a layer, as a set of bits.
unsigned weights_of(const NodeRecord& node) {
  static const std::map<std::string_view, unsigned> operands = {{"BatchNormalization", 0b11110},
                                                                {"Conv", 0b110},
                                                                {"ConvTranspose", 0b110},
                                                                {"Gemm", 0b110},
                                                                {"GroupNormalization", 0b110},
                                                                {"InstanceNormalization", 0b110},
                                                                {"LayerNormalization", 0b110},
                                                                {"MatMul", 0b11},
                                                                {"PRelu", 0b10},
                                                                {"RMSNormalization", 0b10}};
  const auto found = node.domain.empty() ? operands.find(node.op) : operands.end();
  return found == operands.end() ? 0 : found->second;
}

}  // namespace

const Tensor& Weights::tensor(const TensorRecord& record) {
  auto [found, is_new] = tensors_.try_emplace(&record);
  if (is_new) found->second = file_->tensor(record);
  return found->second;
}

const Tensor& Weights::tensor(const SparseTensorRecord& record) {
  auto [found, is_new] = tensors_.try_emplace(&record);
  if (is_new) found->second = file_->tensor(record);
  return found->second;
}

const Tensor& Weights::tensor(const AttributeRecord& record) {
  auto [found, is_new] = tensors_.try_emplace(&record);
  if (is_new) found->second = Tensor::of(record.numbers, {static_cast<std::int64_t>(record.numbers.size())});
  return found->second;
}

void Weights::declare(const Tensor& tensor, std::string_view name, std::int64_t min_count) {
  if (!is_floating(tensor.dtype()) || tensor.count() < min_count || names_.contains(tensor.address())) return;
  std::string unique(name);
  for (int suffix = 1; by_name_.contains(unique); ++suffix) unique = fmt::format("{}_{}", name, suffix);
  names_[tensor.address()] = unique;
  in_order_.push_back(unique);
  by_name_[unique] = tensor;
}

const std::string* Weights::name_of(const Tensor& tensor) const {
  const auto found = names_.find(tensor.address());
  if (found == names_.end()) return nullptr;
  const Tensor& weight = by_name_.at(found->second);
  return weight.dtype() == tensor.dtype() && weight.shape() == tensor.shape() ? &found->second : nullptr;
}

std::set<std::string_view> weight_operands(const GraphRecord& graph) {
  std::set<std::string_view> names, products;
  for (const NodeRecord& node : graph.nodes) {
    if (node.op == "MatMul") products.insert(node.outputs.begin(), node.outputs.end());
    const bool is_bias =
        node.op == "Add" && std::ranges::any_of(node.inputs, [&](std::string_view name) { return products.contains(name); });
    const unsigned weights = is_bias ? 0b11 : weights_of(node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if ((weights >> i & 1) != 0) names.insert(node.inputs[i]);
    }
  }
  return names;
}

}  // namespace tenon::onnx
