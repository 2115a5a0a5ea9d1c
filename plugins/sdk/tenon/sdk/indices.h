// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/indices.h - operands of indices into an axis: checked once, before anything is written.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/sdk/error.h>
#include <tenon/sdk/kernel.h>

namespace tenon::sdk {

/// A dense operand of i32 or i64 indices, each in [-n, n); negative ones count from the end.
class Indices {
 public:
  /// Errors  the first index outside [-n, n), named with its position (row-major) and the op.
  Indices(const char* op, const Operand& operand, std::int64_t n)
      : data_(operand.data), wide_(operand.dtype == TENON_DTYPE_I64), n_(n), count_(operand.count) {
    if (wide_)
      check(op, operand.as<const std::int64_t>());
    else
      check(op, operand.as<const std::int32_t>());
  }

  std::int64_t count() const { return count_; }
  /// The index at position i, in [0, n).
  std::int64_t operator[](std::int64_t i) const {
    const std::int64_t index = wide_ ? static_cast<const std::int64_t*>(data_)[i] : static_cast<const std::int32_t*>(data_)[i];
    return index < 0 ? index + n_ : index;
  }

 private:
  template <class Index>
  void check(const char* op, const Index* index) const {
    bool wrong = false;  // no branch, so that the loop is vectorised
    for (std::int64_t i = 0; i < count_; ++i) wrong |= (index[i] < -n_) | (index[i] >= n_);
    for (std::int64_t i = 0; wrong && i < count_; ++i) {
      if (index[i] >= -n_ && index[i] < n_) continue;
      throw Error(TENON_INVALID_ARGUMENT, std::string(op) + ": index " + std::to_string(index[i]) + " at position " + std::to_string(i) +
                                              " is out of range [" + std::to_string(-n_) + ", " + std::to_string(n_) + ")");
    }
  }

  const void* data_;
  bool wide_;
  std::int64_t n_;
  std::int64_t count_;
};

}  // namespace tenon::sdk
