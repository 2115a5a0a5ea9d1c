// SPDX-License-Identifier: Apache-2.0
// data/dataset.cpp - checks shared by all data sets, and names.
#include <tenon/data.h>

namespace tenon {
namespace {

void check_operand(const std::string& name, const char* which, const Tensor& tensor, const SampleType& sample, std::size_t count) {
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
  throw Error(name + ": gather: expected " + which + " as dense " + name_of(sample.dtype) + expected.str() + " in host memory, got " +
              (!tensor.defined() ? std::string("an undefined tensor")
                                 : tensor.str() + (tensor.on_host() ? "" : " on a device") + (tensor.is_dense() ? "" : ", strided")));
}

}  // namespace

void Dataset::check_batch(std::span<const std::int64_t> indices, const Tensor& x, const Tensor& y) const {
  check_operand(name(), "x", x, x_type(), indices.size());
  check_operand(name(), "y", y, y_type(), indices.size());
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
