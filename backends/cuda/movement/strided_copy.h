// SPDX-License-Identifier: Apache-2.0
// strided_copy.h - copies elements bitwise from one layout to another, for all ops that rearrange elements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <tenon/sdk/strided_copy.h>

#include "device/device.h"

namespace tenon::cuda {

using sdk::StridedCopy;

/// `element_bytes` is 1, 2, 4 or 8. The copies must not overlap; copies without elements may have NULL addresses.
///
/// Up to 15 copies are batched into as few launches as possible. A dense copy is a cudaMemcpyAsync, a transposition goes through tiles in
/// shared memory, and the rest moves up to 16 bytes at a time.
void copy_strided(Stream& stream, std::size_t element_bytes, std::span<const StridedCopy> copies);
inline void copy_strided(Stream& stream, std::size_t element_bytes, const StridedCopy& copy) {
  copy_strided(stream, element_bytes, std::span(&copy, 1));
}

/// Collects any number of copies and launches them in batches; `send` launches the rest.
class StridedCopies {
 public:
  static constexpr std::size_t max_count = 15;  ///< keeps the table below 4 KB, the limit of kernel parameters on every device

  StridedCopies(Stream& stream, std::size_t element_bytes) : stream_(stream), element_bytes_(element_bytes) {}
  void add(const StridedCopy& copy) {
    copies_[count_++] = copy;
    if (count_ == max_count) send();
  }
  void send() {
    copy_strided(stream_, element_bytes_, std::span(copies_.data(), count_));
    count_ = 0;
  }

 private:
  Stream& stream_;
  std::size_t element_bytes_;
  std::array<StridedCopy, max_count> copies_;
  std::size_t count_ = 0;
};

}  // namespace tenon::cuda
