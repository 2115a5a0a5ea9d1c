// strided_copy.h - elements moved from one layout to another, their bits as they are: what every op that rearranges comes down to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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
/// Several go out in as few launches as they fit into. One without gaps on either side is a copy of CUDA's, one that swaps dimensions goes
/// by tiles through shared memory, the rest moves up to 16 bytes at a time.
void copy_strided(Stream& stream, std::size_t element_bytes, const std::vector<StridedCopy>& copies);

}  // namespace tenon::cuda
