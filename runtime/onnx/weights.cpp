// SPDX-License-Identifier: Apache-2.0
#include "onnx/weights.h"

#include <fmt/core.h>

#include <tenon/dtype.h>
#include <tenon/shape.h>

namespace tenon::onnx {

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

}  // namespace tenon::onnx
