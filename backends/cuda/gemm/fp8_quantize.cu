// SPDX-License-Identifier: Apache-2.0
#include "gemm/fp8_quantize.h"

#include <cuda_fp8.h>

#include <algorithm>

#include "kernel/last_block.cuh"
#include "kernel/launch.h"
#include "kernel/thread_index.cuh"
#include "kernel/wide.cuh"

namespace tenon::cuda {
namespace {

// A block of threads takes tiles of 64 lines and 64 elements of each: a thread has 16 consecutive elements of one line. Lines are what is
// contiguous in memory: along k, or, of tensors whose codes are their transpose, across.
constexpr int threads = 256;
constexpr int side = 64;
constexpr int span = 16;
static_assert(threads * span == side * side);
constexpr int max_blocks = 512;  ///< of a tensor, that compute its scale: 2 for each thread of the last one

/// What a block has found.
struct Partial {
  float amax;
  std::uint32_t nonfinite;
};
static_assert(sizeof(Partial) * max_blocks * 2 <= fp8_partials_bytes);

template <class T>
struct Source {
  const T* data = nullptr;
  Fp8State* state = nullptr;
  Partial* partials = nullptr;
  unsigned char* codes = nullptr;
  std::int64_t lines = 0, length = 0;  ///< of an entry
  std::int64_t line_step = 0, entry_step = 0;
  std::int64_t tiles_down = 0, tiles_across = 0;  ///< of an entry
  std::int64_t tiles = 0;
  int blocks = 0;           ///< that find the scale
  bool transposes = false;  ///< lines are across k
  bool in_packs = false;    ///< lines begin at multiples of 16 bytes
};
template <class T>
struct Sources {
  Source<T> first, second;
};

/// The place of a thread in a tile.
struct Place {
  std::int64_t entry, line, at;
};
template <class T>
__device__ Place place_in(const Source<T>& source, std::int64_t tile) {
  const std::int64_t row = quotient(tile, source.tiles_across), entry = quotient(row, source.tiles_down);
  const int line = static_cast<int>(threadIdx.x) * span / side, at = static_cast<int>(threadIdx.x) * span % side;
  return {entry, (row - entry * source.tiles_down) * side + line, (tile - row * source.tiles_across) * side + at};
}

/// The elements of a thread, 0 beyond the tensor.
template <class T>
__device__ void read(const Source<T>& source, const Place& place, float (&x)[span]) {
  constexpr int width = pack_width<T>;
  const T* const from = source.data + place.entry * source.entry_step + place.line * source.line_step + place.at;
  if (place.line < source.lines && source.in_packs && place.at + span <= source.length) {
#pragma unroll
    for (int part = 0; part < span / width; ++part) {
      const Pack<T, width> pack = pack_at<width>(from + part * width);
#pragma unroll
      for (int v = 0; v < width; ++v) x[part * width + v] = widen(pack.at[v]);
    }
    return;
  }
#pragma unroll
  for (int v = 0; v < span; ++v) x[v] = place.line < source.lines && place.at + v < source.length ? widen(from[v]) : 0.0f;
}

__device__ Partial combined(Partial a, Partial b) {
  return {a.amax > b.amax ? a.amax : b.amax, a.nonfinite | b.nonfinite};
}

/// Combines what all threads of the block have; in thread 0.
__device__ Partial combined_by_block(Partial mine) {
  __shared__ Partial of_warps[threads / 32];
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    mine = combined(mine, {__shfl_xor_sync(0xffffffffu, mine.amax, step), __shfl_xor_sync(0xffffffffu, mine.nonfinite, step)});
  }
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
#pragma unroll
    for (int w = 1; w < threads / 32; ++w) mine = combined(mine, of_warps[w]);
  }
  return mine;
}

/// The least power of two, of those within 2^-109 and 2^93, by which amax is at most 448 = 1.75 * 2^8.
__device__ float scale_of(float amax) {
  const std::uint32_t bits = __float_as_uint(amax), fraction = bits & 0x7fffffu;
  const int exponent = static_cast<int>(bits >> 23) - 127 - 8 + (fraction > 0x600000u ? 1 : 0);
  return __uint_as_float(static_cast<std::uint32_t>(std::clamp(exponent, -109, 93) + 127) << 23);
}

template <class T>
__device__ void find_scale(const Source<T>& source, int block, unsigned* counter) {
  Partial mine{0, 0};
  for (std::int64_t tile = block; tile < source.tiles; tile += source.blocks) {
    float x[span];
    read(source, place_in(source, tile), x);
#pragma unroll
    for (int v = 0; v < span; ++v) {
      const std::uint32_t size = __float_as_uint(x[v]) & 0x7fffffffu;
      mine = combined(mine, size < 0x7f800000u ? Partial{__uint_as_float(size), 0} : Partial{0, 1});
    }
  }
  mine = combined_by_block(mine);
  if (threadIdx.x == 0) source.partials[block] = mine;
  if (!is_last_block(counter, source.blocks)) return;
  mine = {0, 0};
  for (int b = static_cast<int>(threadIdx.x); b < source.blocks; b += threads) mine = combined(mine, source.partials[b]);
  mine = combined_by_block(mine);
  if (threadIdx.x != 0) return;
  if (mine.amax == 0) mine.amax = 1;
  *source.state = {scale_of(mine.amax), mine.amax, mine.nonfinite};
}

template <class T>
__global__ void __launch_bounds__(threads) scale_kernel(Sources<T> p, unsigned* counters) {
  const int block = static_cast<int>(blockIdx.x);
  if (block < p.first.blocks) {
    find_scale(p.first, block, counters);
  } else {
    find_scale(p.second, block - p.first.blocks, counters + 1);
  }
}

/// The codes of 16 numbers.
__device__ Pack<unsigned char, span> codes_of(const float (&x)[span], float factor) {
  Pack<unsigned char, span> codes;
#pragma unroll
  for (int v = 0; v < span; v += 2) {
    // The scale leaves no finite number beyond 448, so only infinities are saturated: they become NaN instead.
    const __nv_fp8x2_storage_t pair = __nv_cvt_float2_to_fp8x2({x[v] * factor, x[v + 1] * factor}, __NV_SATFINITE, __NV_E4M3);
    codes.at[v] = static_cast<unsigned char>(pair);
    codes.at[v + 1] = static_cast<unsigned char>(pair >> 8);
#pragma unroll
    for (int i = v; i < v + 2; ++i) {
      if ((__float_as_uint(x[i]) & 0x7fffffffu) >= 0x7f800000u) codes.at[i] = 0x7f;
    }
  }
  return codes;
}

template <class T>
__device__ void write_codes(const Source<T>& source, std::int64_t tile) {
  // A line of codes in shared memory is 17 words: threads that write along a column of it meet in a bank by twos.
  constexpr int words = side / 4 + 1;
  __shared__ std::uint32_t turned[side][words];
  const Place place = place_in(source, tile);
  float x[span];
  read(source, place, x);
  const Pack<unsigned char, span> codes = codes_of(x, 1 / source.state->scale);
  if (!source.transposes) {
    if (place.line >= source.lines || place.at >= source.length) return;
    unsigned char* const to = source.codes + (place.entry * source.lines + place.line) * source.length + place.at;
    store_pack<span>(to, codes);
    return;
  }
  const int line = static_cast<int>(threadIdx.x) * span / side, at = static_cast<int>(threadIdx.x) * span % side;
  __syncthreads();  // the tile before has been read
#pragma unroll
  for (int v = 0; v < span; ++v) reinterpret_cast<unsigned char*>(turned[at + v])[line] = codes.at[v];
  __syncthreads();
  // Now a thread has 16 codes along k of one row.
  const std::int64_t row = place.at - at + line, k = place.line - line + at;
  if (row >= source.length || k >= source.lines) return;
  Pack<std::uint32_t, span / 4> out;
#pragma unroll
  for (int w = 0; w < span / 4; ++w) out.at[w] = turned[line][at / 4 + w];
  store_pack<span / 4>(reinterpret_cast<std::uint32_t*>(source.codes + (place.entry * source.length + row) * source.lines + k), out);
}

template <class T>
__global__ void __launch_bounds__(threads) codes_kernel(Sources<T> p) {
  const std::int64_t tiles = p.first.tiles + p.second.tiles;
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    if (tile < p.first.tiles) {
      write_codes(p.first, tile);
    } else {
      write_codes(p.second, tile - p.first.tiles);
    }
  }
}

template <class T>
Source<T> source_of(const Fp8Tensor& tensor, Partial* partials) {
  if (tensor.entries == 0) return {};
  // A view of one row or one column may have any stride there.
  const bool transposes = tensor.view.columns > 1 && tensor.view.column_stride != 1;
  const sdk::MatrixView lines = transposes ? tensor.view.transposed() : tensor.view;
  Source<T> source{.data = static_cast<const T*>(tensor.data),
                   .state = tensor.state,
                   .partials = partials,
                   .codes = static_cast<unsigned char*>(tensor.codes),
                   .lines = lines.rows,
                   .length = lines.columns,
                   .line_step = lines.rows > 1 ? lines.row_stride : 0,
                   .entry_step = tensor.step,
                   .tiles_down = (lines.rows + side - 1) / side,
                   .tiles_across = (lines.columns + side - 1) / side,
                   .transposes = transposes};
  source.tiles = tensor.entries * source.tiles_down * source.tiles_across;
  source.blocks = static_cast<int>(std::min<std::int64_t>(source.tiles, max_blocks));
  source.in_packs = is_aligned(16, tensor.data) && source.line_step % pack_width<T> == 0 && source.entry_step % pack_width<T> == 0;
  return source;
}

template <class T>
void quantize_as(Stream& stream, const Fp8Tensor& first, const Fp8Tensor& second, void* memory) {
  auto* const partials = static_cast<Partial*>(memory);
  const Sources<T> sources{source_of<T>(first, partials), source_of<T>(second, partials + max_blocks)};
  launch(stream, {sources.first.blocks + sources.second.blocks, threads}, scale_kernel<T>, sources, block_counters(stream));
  launch(stream, one_thread_each((sources.first.tiles + sources.second.tiles) * threads, threads), codes_kernel<T>, sources);
}

}  // namespace

void fp8_quantize(Stream& stream, tenon_dtype dtype, const Fp8Tensor& first, const Fp8Tensor& second, void* partials) {
  if (dtype == TENON_DTYPE_F16) {
    quantize_as<sdk::Half>(stream, first, second, partials);
  } else {
    quantize_as<sdk::BFloat16>(stream, first, second, partials);
  }
}

}  // namespace tenon::cuda
