// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/class_targets.h - the targets of a classification loss on the host: checked once,
// before anything is written.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/sdk/error.h>
#include <tenon/sdk/kernel.h>

namespace tenon::sdk {

/// A class label (i32 or i64) for each of the (N, d1, ...) positions, the class weights (C) of T or
/// none, and the ignored label, of a call with tenon_attributes_cross_entropy.
template <class T>
class ClassTargets {
 public:
  ClassTargets(const Call& call, std::uint32_t labels, std::uint32_t weights, std::int64_t classes)
      : attributes_(call.attr<tenon_attributes_cross_entropy>()),
        labels_(call.inputs[labels]),
        weights_(call.has_input(weights) ? call.input<T>(weights) : nullptr),
        classes_(classes) {}

  std::int64_t label(std::int64_t position) const {
    return labels_.dtype == TENON_DTYPE_I32 ? labels_.as<std::int32_t>()[position] : labels_.as<std::int64_t>()[position];
  }
  bool counts(std::int64_t position) const { return !attributes_.has_ignore_index || label(position) != attributes_.ignore_index; }
  double weight(std::int64_t position) const { return weights_ == nullptr ? 1.0 : static_cast<double>(weights_[label(position)]); }
  bool reduces() const { return attributes_.reduction != TENON_REDUCTION_NONE; }

  /// The divisor of the sum of losses: for the mean, the total weight of the labels that are not
  /// ignored.
  /// Errors  the first label out of range, named with its position and the op.
  double denominator(const char* op) const {
    double total = 0;
    for (std::int64_t position = 0; position < labels_.count; ++position) {
      if (!counts(position)) continue;
      if (label(position) < 0 || label(position) >= classes_) {
        throw Error(TENON_INVALID_ARGUMENT, std::string(op) + ": label " + std::to_string(label(position)) + " at index " +
                                                std::to_string(position) + " is out of range [0, " + std::to_string(classes_) + ")");
      }
      total += weight(position);
    }
    return attributes_.reduction == TENON_REDUCTION_MEAN ? total : 1.0;
  }

 private:
  const tenon_attributes_cross_entropy& attributes_;
  const Operand& labels_;
  const T* weights_;
  std::int64_t classes_;
};

}  // namespace tenon::sdk
