// SPDX-License-Identifier: Apache-2.0
// data/dataset.cpp - checks shared by all data sets, and names.
#include <algorithm>
#include <utility>

#include <tenon/data.h>

namespace tenon {
namespace {

void check_operand(const std::string& name, const Tensor& tensor, const SampleType& sample, std::size_t count) {
  const auto fits = [&] {
    if (!tensor.defined() || tensor.dtype() != sample.dtype || tensor.shape().rank() != sample.shape.rank() + 1) return false;
    if (tensor.shape()[0] != static_cast<std::int64_t>(count)) return false;
    for (std::size_t i = 0; i < sample.shape.rank(); ++i) {
      if (tensor.shape()[i + 1] != sample.shape[i]) return false;
    }
    return tensor.is_dense() && tensor.on_host();
  };
  if (fits()) return;
  const Shape expected = sample.shape.with_batch(static_cast<std::int64_t>(count));
  throw Error(name + ": gather: expected " + sample.name + " as dense " + name_of(sample.dtype) + expected.str() + " in host memory, got " +
              (!tensor.defined() ? std::string("an undefined tensor")
                                 : tensor.str() + (tensor.on_host() ? "" : " on a device") + (tensor.is_dense() ? "" : ", strided")));
}

void check_names(const char* what, const std::vector<SampleType>& types) {
  if (types.empty()) throw Error(std::string("data set: expected at least one ") + what + ", got none");
  for (auto type = types.begin(); type != types.end(); ++type) {
    if (type->name.empty()) throw Error(std::string("data set: expected a name for each ") + what + ", got an empty one");
    if (std::any_of(types.begin(), type, [&](const SampleType& earlier) { return earlier.name == type->name; }))
      throw Error(std::string("data set: the ") + what + " '" + type->name + "' is given twice");
  }
}

SampleType named(SampleType type, const char* name) {
  type.name = name;
  return type;
}

}  // namespace

Dataset::Dataset(SampleType x, SampleType y)
    : Dataset(std::vector<SampleType>{named(std::move(x), "x")}, std::vector<SampleType>{named(std::move(y), "y")}) {}

Dataset::Dataset(std::vector<SampleType> inputs, std::vector<SampleType> targets)
    : inputs_(std::move(inputs)), targets_(std::move(targets)) {
  check_names("input", inputs_);
  check_names("target", targets_);
}

void Dataset::check_batch(std::span<const std::int64_t> indices, std::span<const Tensor> inputs, std::span<const Tensor> targets) const {
  const auto check_all = [&](const char* what, std::span<const Tensor> tensors, const std::vector<SampleType>& types) {
    if (tensors.size() != types.size()) {
      throw Error(name() + ": gather: expected " + std::to_string(types.size()) + " " + what + ", got " + std::to_string(tensors.size()));
    }
    for (std::size_t i = 0; i < types.size(); ++i) check_operand(name(), tensors[i], types[i], indices.size());
  };
  check_all("inputs", inputs, inputs_);
  check_all("targets", targets, targets_);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= size()) {
      throw Error(name() + ": gather: indices[" + std::to_string(i) + "] is " + std::to_string(indices[i]) + ", expected 0 to " +
                  std::to_string(size() - 1));
    }
  }
}

Scaling Scaling::standard(double mean, double deviation) {
  if (!(deviation > 0)) throw Error("Scaling::standard: expected a deviation above 0, got " + std::to_string(deviation));
  return {1.0 / (255.0 * deviation), -mean / deviation};
}

const char* name_of(Targets targets) {
  switch (targets) {
    case Targets::as_given:
      return "as_given";
    case Targets::one_hot:
      return "one_hot";
    case Targets::soft_one_hot:
      return "soft_one_hot";
  }
  return "?";
}

const char* name_of(Split split) {
  return split == Split::train ? "train" : "test";
}

}  // namespace tenon
