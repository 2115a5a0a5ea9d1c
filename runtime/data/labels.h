// SPDX-License-Identifier: Apache-2.0
// data/labels.h - validates class labels.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/tensor.h>

namespace tenon::data {

/// Returns y as dense i64 in host memory, each label in [0, num_classes).
/// Errors  y is not of rank 1 or not of integers; a label is out of range (with its index). The text starts with `what`.
Tensor as_labels(const std::string& what, const Tensor& y, std::int64_t num_classes);

}  // namespace tenon::data
