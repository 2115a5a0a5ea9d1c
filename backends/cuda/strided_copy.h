// strided_copy.h - elements moved from one layout to another, their bits as they are: what every op that rearranges comes down to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <tenon/sdk/strided.h>

#include "device.h"

namespace tenon::cuda {

/// to[i...] = from[i...] over a shape; strides in elements, any for `from`, none of 0 for `to`.
struct StridedCopy {
  const std::int64_t* shape = nullptr;
  std::uint32_t rank = 0;
  const void* from = nullptr;
  sdk::Strides from_strides{};
  void* to = nullptr;
  sdk::Strides to_strides{};
};

/// Bytes of an element: 1, 2, 4 or 8. The copies must not overlap; those of no element may lack addresses.
///
/// Several, 15 at most, go out in as few launches as they fit into. One without gaps on either side is a copy of CUDA's, one that swaps
/// dimensions goes by tiles through shared memory, the rest moves up to 16 bytes at a time.
void copy_strided(Stream& stream, std::size_t element_bytes, std::span<const StridedCopy> copies);
inline void copy_strided(Stream& stream, std::size_t element_bytes, const StridedCopy& copy) {
  copy_strided(stream, element_bytes, std::span(&copy, 1));
}

/// Any number of copies, sent when there are enough of them, and by `send` what is left.
class StridedCopies {
 public:
  static constexpr std::size_t most = 15;  ///< whose table stays below the 4 KB that every device takes as parameters

  StridedCopies(Stream& stream, std::size_t element_bytes) : stream_(stream), element_bytes_(element_bytes) {}
  void add(const StridedCopy& copy) {
    copies_[count_++] = copy;
    if (count_ == most) send();
  }
  void send() {
    copy_strided(stream_, element_bytes_, std::span(copies_.data(), count_));
    count_ = 0;
  }

 private:
  Stream& stream_;
  std::size_t element_bytes_;
  std::array<StridedCopy, most> copies_;
  std::size_t count_ = 0;
};

}  // namespace tenon::cuda
