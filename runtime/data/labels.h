// data/labels.h - class labels, checked.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/tensor.h>

namespace tenon::data {

/// y as dense i64 in host memory, each label in [0, num_classes).
/// Errors  y of another rank than 1 or not of integers; a label out of range, whose index is named. The text starts with `what`.
Tensor as_labels(const std::string& what, const Tensor& y, std::int64_t num_classes);

}  // namespace tenon::data
