// SPDX-License-Identifier: Apache-2.0
#include "movement/radix_sort.h"

#include <bit>

#include <tenon/sdk/scratch_arena.h>

#include "kernel/launch.h"

namespace tenon::cuda {
namespace {

constexpr int digit_bits = 8, digits = 1 << digit_bits;
constexpr int threads = 256, warps = threads / 32;
static_assert(threads == digits, "one thread per digit");
constexpr int rounds = 16;                                     ///< pairs of a thread
constexpr std::int64_t tile = std::int64_t{threads} * rounds;  ///< pairs of a block
constexpr std::int64_t warp_tile = tile / warps;               ///< contiguous pairs of a warp
constexpr unsigned all_lanes = 0xffffffffu;

std::int64_t tiles_of(std::int64_t count) {
  return (count + tile - 1) / tile;
}

__device__ unsigned digit_of(std::uint64_t key, int shift) {
  return static_cast<unsigned>(key >> shift) % digits;
}

/// Inclusive prefix sum over the lanes of the warp.
__device__ std::uint32_t sum_until(std::uint32_t own) {
  const unsigned lane = threadIdx.x % 32;
  for (unsigned step = 1; step < 32; step *= 2) {
    const std::uint32_t left = __shfl_up_sync(all_lanes, own, step);
    if (lane >= step) own += left;
  }
  return own;
}

/// Exclusive prefix sum over the threads of the block. A kernel may call it only once.
__device__ std::uint32_t sum_before(std::uint32_t own) {
  __shared__ std::uint32_t of_warp[warps];
  const unsigned warp = threadIdx.x / 32;
  const std::uint32_t until = sum_until(own);
  if (threadIdx.x % 32 == 31) of_warp[warp] = until;
  __syncthreads();
  std::uint32_t before = until - own;
  for (unsigned w = 0; w < warp; ++w) before += of_warp[w];
  return before;
}

/// counts[digit][tile] = the number of keys of the tile with the digit.
__global__ void count_digits(const std::uint64_t* keys, std::int64_t count, int shift, std::uint32_t* counts) {
  __shared__ unsigned of_digit[digits];
  of_digit[threadIdx.x] = 0;
  __syncthreads();
  const std::int64_t first = blockIdx.x * tile;
  for (int r = 0; r < rounds; ++r) {
    const std::int64_t i = first + r * threads + threadIdx.x;
    if (i < count) atomicAdd(&of_digit[digit_of(keys[i], shift)], 1u);
  }
  __syncthreads();
  counts[static_cast<std::int64_t>(threadIdx.x) * gridDim.x + blockIdx.x] = of_digit[threadIdx.x];
}

/// One warp per digit: replaces its counts by their exclusive prefix sums over the tiles; totals[digit] is the sum.
__global__ void sum_counts(std::uint32_t* counts, std::int64_t tiles, std::uint32_t* totals) {
  const unsigned lane = threadIdx.x % 32, digit = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  std::uint32_t* const own = counts + digit * tiles;
  std::uint32_t sum = 0;
  for (std::int64_t begin = 0; begin < tiles; begin += 32) {
    const std::int64_t i = begin + lane;
    const std::uint32_t here = i < tiles ? own[i] : 0;
    const std::uint32_t until = sum_until(here);
    if (i < tiles) own[i] = sum + until - here;
    sum += __shfl_sync(all_lanes, until, 31);
  }
  if (lane == 0) totals[digit] = sum;
}

/// Moves every pair to its position: after all pairs of smaller digits, and those of its digit in earlier tiles and earlier in its tile.
/// `counts` and `totals` are NULL if there is only one tile.
__global__ void move_pairs(const std::uint64_t* keys, const std::uint32_t* values, std::int64_t count, int shift,
                           const std::uint32_t* counts, const std::uint32_t* totals, std::uint64_t* out_keys, std::uint32_t* out_values) {
  __shared__ std::uint32_t next[warps][digits];  ///< position of a warp's next pair with a digit
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, digit = threadIdx.x;
  for (unsigned w = 0; w < warps; ++w) next[w][digit] = 0;
  __syncthreads();
  const std::int64_t first = blockIdx.x * tile + warp * warp_tile;
  const std::int64_t end = first + warp_tile < count ? first + warp_tile : count;
  for (std::int64_t i = first + lane; i < end; i += 32) atomicAdd(&next[warp][digit_of(keys[i], shift)], 1u);
  __syncthreads();
  std::uint32_t here = 0;
  for (unsigned w = 0; w < warps; ++w) here += next[w][digit];
  std::uint32_t at = sum_before(totals != nullptr ? totals[digit] : here);
  if (counts != nullptr) at += counts[static_cast<std::int64_t>(digit) * gridDim.x + blockIdx.x];
  for (unsigned w = 0; w < warps; ++w) {
    const std::uint32_t own = next[w][digit];
    next[w][digit] = at;
    at += own;
  }
  __syncthreads();
  for (std::int64_t begin = first; begin < end; begin += 32) {
    const std::int64_t i = begin + lane;
    const bool is_pair = i < end;
    const std::uint64_t key = is_pair ? keys[i] : 0;
    const unsigned own = digit_of(key, shift);
    unsigned alike = __ballot_sync(all_lanes, is_pair);  // lanes whose pair has the same digit
    for (int bit = 0; bit < digit_bits; ++bit) {
      const bool is_set = (own >> bit & 1u) != 0;
      const unsigned set = __ballot_sync(all_lanes, is_set);
      alike &= is_set ? set : ~set;
    }
    const unsigned before = alike & ((1u << lane) - 1);
    if (is_pair) {
      const std::uint32_t to = next[warp][own] + static_cast<std::uint32_t>(__popc(before));
      out_keys[to] = key;
      out_values[to] = values[i];
    }
    __syncwarp();
    if (is_pair && before == 0) next[warp][own] += static_cast<std::uint32_t>(__popc(alike));
    __syncwarp();
  }
}

SortBuffers buffers_in(sdk::ScratchArena& arena, std::int64_t count) {
  SortBuffers buffers{};
  for (auto& keys : buffers.keys) keys = arena.allocate<std::uint64_t>(count);
  for (auto& values : buffers.values) values = arena.allocate<std::uint32_t>(count);
  buffers.counts = arena.allocate<std::uint32_t>((tiles_of(count) + 1) * digits);
  return buffers;
}

}  // namespace

std::size_t sort_bytes(std::int64_t count) {
  sdk::ScratchArena arena(nullptr);
  buffers_in(arena, count);
  return arena.required_bytes();
}

SortBuffers sort_buffers(void* scratch, std::int64_t count) {
  sdk::ScratchArena arena(scratch);
  return buffers_in(arena, count);
}

int sort_pairs(Stream& stream, const SortBuffers& buffers, std::int64_t count, int bits) {
  if (count == 0) return 0;
  const std::int64_t tiles = tiles_of(count);
  std::uint32_t* const totals = buffers.counts + tiles * digits;
  int from = 0;
  for (int shift = 0; shift < bits; shift += digit_bits, from = 1 - from) {
    if (tiles > 1) {
      launch(stream, {tiles, threads}, count_digits, buffers.keys[from], count, shift, buffers.counts);
      launch(stream, {digits / warps, threads}, sum_counts, buffers.counts, tiles, totals);
    }
    launch(stream, {tiles, threads}, move_pairs, buffers.keys[from], buffers.values[from], count, shift,
           tiles > 1 ? buffers.counts : nullptr, tiles > 1 ? totals : nullptr, buffers.keys[1 - from], buffers.values[1 - from]);
  }
  return from;
}

int bits_below(std::int64_t n) {
  return n <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
}

}  // namespace tenon::cuda
