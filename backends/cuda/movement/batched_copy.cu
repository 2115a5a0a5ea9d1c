// SPDX-License-Identifier: Apache-2.0
// Several copies by few launches: those of the running statistics of a model at the end of a training step, or the operands of attention.
#include <tenon/sdk/kernel.h>

#include <bit>
#include <cstddef>
#include <span>

#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "movement/strided_copy.h"

namespace tenon::cuda {
namespace {

constexpr int threads = 256;
using Unit = Pack<std::uint32_t, 4>;
constexpr std::int64_t chunk = 4 * threads * static_cast<std::int64_t>(sizeof(Unit));  ///< bytes of one copy per block

struct DenseCopy {
  const std::byte* from;
  std::byte* to;
  std::int64_t size_bytes;
  std::int64_t first_chunk;
};

/// Passed by value, within the 4 KB of kernel parameters of every device.
struct DenseCopies {
  static constexpr int max_count = static_cast<int>(3840 / sizeof(DenseCopy));
  DenseCopy at[max_count];
  int count;
  std::int64_t chunks;
};

/// Copies the bytes [begin, end) of a copy by units U, whose size divides the difference of its addresses; those before and after the
/// aligned units one by one.
template <class U>
__device__ void copy_by(const DenseCopy& copy, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t width = sizeof(U);
  const auto misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(copy.to + begin) % width);
  const std::int64_t head = misaligned == 0 ? 0 : width - misaligned;
  const std::int64_t first = head < end - begin ? begin + head : end, last = first + (end - first) / width * width;
  for (std::int64_t i = first + threadIdx.x * width; i < last; i += threads * width) {
    *reinterpret_cast<U*>(copy.to + i) = *reinterpret_cast<const U*>(copy.from + i);
  }
  if (begin + threadIdx.x < first) copy.to[begin + threadIdx.x] = copy.from[begin + threadIdx.x];
  if (last + threadIdx.x < end) copy.to[last + threadIdx.x] = copy.from[last + threadIdx.x];
}

__global__ void copy_all(DenseCopies copies) {
  for (std::int64_t c = blockIdx.x; c < copies.chunks; c += gridDim.x) {
    int k = 0;
    for (int last = copies.count - 1; k < last;) {  // the last copy that begins at or before this chunk
      const int middle = (k + last + 1) / 2;
      if (copies.at[middle].first_chunk <= c) {
        k = middle;
      } else {
        last = middle - 1;
      }
    }
    const DenseCopy& copy = copies.at[k];
    const std::int64_t begin = (c - copy.first_chunk) * chunk;
    const std::int64_t end = begin + chunk < copy.size_bytes ? begin + chunk : copy.size_bytes;
    const std::uintptr_t difference = reinterpret_cast<std::uintptr_t>(copy.from) ^ reinterpret_cast<std::uintptr_t>(copy.to);
    if (difference % 16 == 0) {
      copy_by<Unit>(copy, begin, end);
    } else if (difference % 8 == 0) {
      copy_by<std::uint64_t>(copy, begin, end);
    } else if (difference % 4 == 0) {
      copy_by<std::uint32_t>(copy, begin, end);
    } else if (difference % 2 == 0) {
      copy_by<std::uint16_t>(copy, begin, end);
    } else {
      copy_by<std::uint8_t>(copy, begin, end);
    }
  }
}

/// Output 0 = input 0 of each call: one launch for as many as fit into a kernel's parameters.
void copy_together(const sdk::Call* calls, std::uint32_t count) {
  Stream& stream = stream_of(calls[0]);
  DenseCopies copies{};
  const auto send = [&] {
    launch(stream, grid_stride(stream.device(), copies.chunks * threads, threads), copy_all, copies);
    copies.count = 0;
    copies.chunks = 0;
  };
  StridedCopies strided[] = {{stream, 1}, {stream, 2}, {stream, 4}, {stream, 8}};
  for (const sdk::Call& call : std::span(calls, count)) {
    const sdk::Operand& x = call.inputs[0];
    const auto element_bytes = static_cast<unsigned>(sdk::size_of(x.dtype));
    const std::int64_t size_bytes = x.count * element_bytes;
    if (size_bytes == 0) continue;
    if (!x.dense) {
      // y has as many elements as x, in row-major order, perhaps in another shape
      strided[std::countr_zero(element_bytes)].add(sdk::reshape_copy(call));
      continue;
    }
    copies.at[copies.count++] = {call.input<std::byte>(0), call.output<std::byte>(0), size_bytes, copies.chunks};
    copies.chunks += (size_bytes + chunk - 1) / chunk;
    if (copies.count == DenseCopies::max_count) send();
  }
  send();
  for (StridedCopies& copies_of_width : strided) copies_of_width.send();
}

constexpr sdk::Kernel copy_kernel = [] {
  sdk::Kernel kernel;
  kernel.functions[TENON_DTYPE_NONE] = [](const sdk::Call& call) { copy_together(&call, 1); };
  kernel.traits.run_together = copy_together;
  return kernel;
}();

}  // namespace

const sdk::KernelRow* Device::batched_copy() const {
  static constexpr sdk::KernelRow row{TENON_OP_Reshape, 14, 0, &copy_kernel};
  return &row;
}

}  // namespace tenon::cuda
