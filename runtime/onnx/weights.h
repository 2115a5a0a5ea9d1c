// SPDX-License-Identifier: Apache-2.0
// onnx/weights.h - the tensors of an ONNX file, and which of them are parameters of graphs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/tensor.h>

#include "onnx/model_file.h"
#include "onnx/records.h"

namespace tenon::onnx {

/// The elements of the tensors of a file, and the names of those that are weights: floating tensors of more than one element, which become
/// parameters. Lives as long as the model, so that all programs use the same names.
class Weights {
 public:
  explicit Weights(std::shared_ptr<ModelFile> file) : file_(std::move(file)) {}
  /// The elements of a record, read once.
  const Tensor& tensor(const TensorRecord& record);
  const Tensor& tensor(const SparseTensorRecord& record);
  /// The numbers of an attribute, f32 (n).
  const Tensor& tensor(const AttributeRecord& record);
  /// Declares that a tensor of the file is a weight, if it is floating and has more elements than one, or `min_count`. `name` is that of
  /// the value in its ONNX graph; one that another weight has gets a suffix.
  void declare(const Tensor& tensor, std::string_view name, std::int64_t min_count = 2);
  /// The name of a weight; null for other tensors.
  const std::string* name_of(const Tensor& tensor) const;
  /// All weights by name.
  const std::map<std::string, Tensor>& all() const { return by_name_; }
  /// Their names in the order in which they were declared: that of the file.
  const std::vector<std::string>& names() const { return in_order_; }

 private:
  std::shared_ptr<ModelFile> file_;
  std::unordered_map<const void*, Tensor> tensors_;       ///< by record
  std::unordered_map<std::uint64_t, std::string> names_;  ///< by address
  std::map<std::string, Tensor> by_name_;
  std::vector<std::string> in_order_;
};

/// Names of operands that are weights even with one element: those of layers such as Conv, and the bias that is added to a product.
std::set<std::string_view> weight_operands(const GraphRecord& graph);

}  // namespace tenon::onnx
