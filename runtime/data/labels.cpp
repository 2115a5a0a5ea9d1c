// SPDX-License-Identifier: Apache-2.0
// data/labels.cpp - validates class labels.
#include "data/labels.h"

#include <algorithm>

#include "core/element.h"

namespace tenon::data {
namespace {

Tensor to_i64(const std::string& what, const Tensor& y) {
  const Tensor host = y.on_host() && y.is_dense() ? y : y.to_host();
  if (host.dtype() == DType::i64) return host;
  Tensor labels = Tensor::empty(DType::i64, host.shape());
  const auto widen = [&](auto zero) { std::copy_n(host.data<decltype(zero)>(), host.count(), labels.data<std::int64_t>()); };
  if (host.dtype() == DType::u64 || !visit_integer(host.dtype(), widen))
    throw Error(what + ": expected integers as labels, got " + y.str());
  return labels;
}

}  // namespace

Tensor as_labels(const std::string& what, const Tensor& y, std::int64_t num_classes) {
  if (num_classes < 1) throw Error(what + ": expected num_classes of at least 1, got " + std::to_string(num_classes));
  if (y.shape().rank() != 1) throw Error(what + ": expected one label per sample, got " + y.str());
  Tensor labels = to_i64(what, y);
  const auto* values = labels.data<std::int64_t>();
  for (std::int64_t i = 0; i < labels.count(); ++i) {
    if (values[i] < 0 || values[i] >= num_classes) {
      throw Error(what + ": label " + std::to_string(values[i]) + " of sample " + std::to_string(i) + " is out of range, expected 0 to " +
                  std::to_string(num_classes - 1) + "; num_classes sets the range");
    }
  }
  return labels;
}

}  // namespace tenon::data
