// SPDX-License-Identifier: Apache-2.0
// Max and average pooling for images of either layout. Each element is written by one thread: gradients are gathered from the windows that
// contain an element, in order.
#include <limits>

#include "kernel/fault.cuh"
#include "kernel/image.cuh"
#include "kernel/operands.h"
#include "kernel/pack.cuh"

namespace tenon::cuda {
namespace {

struct Pool {
  ImageShape x, y;
  WindowAxis rows, columns;

  Pool(const sdk::Call& call, const sdk::Operand& image, const sdk::Operand& windows)
      : x(image, call.channels_last), y(windows, call.channels_last) {
    const auto& attributes = call.attr<tenon_attributes_window>();
    if (image.rank == 4) rows = WindowAxis(x.rows, y.rows, attributes, 0);
    columns = WindowAxis(x.columns, y.columns, attributes, image.rank - 3);
  }
};

// ---------------------------------------------------------------- maximum

/// An element as it is compared: integers as they are.
template <class T>
__device__ auto ordered(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    return widen(x);
  }
}

/// y = largest x of each window, the first of equals or the first NaN; indices = its index in (N, C, d...). Either may be NULL.
template <class T, class Index, int V>
__global__ void max_windows(Pool pool, Packs windows, const T* x, T* y, std::int64_t* indices) {
  constexpr int at_once = 3;  // packs that are loaded at once: a row of the most frequent window
  const std::int64_t plane = pool.x.rows * pool.x.columns;
  const auto inner = static_cast<Index>(pool.x.inner);
  const auto count = static_cast<Index>(windows.count), step = static_cast<Index>(thread_count());
  for (auto p = static_cast<Index>(thread_index()); p < count; p += step) {
    const auto at = windows[p];
    const T* const from = x + at.outer * plane * inner + at.inner;
    PlaneLoopOf<Index> loop(pool.rows.taps(at.row), pool.columns.taps(at.column), pool.rows.dilation, pool.columns.dilation,
                            pool.x.columns);
    Pack<T, V> maximum = pack_at<V>(from + std::int64_t{loop.place} * inner);
    Index place[V];
#pragma unroll
    for (int v = 0; v < V; ++v) place[v] = loop.place;
    for (Index t = 0; t < loop.count; t += at_once) {
      Pack<T, V> packs[at_once];
      Index here[at_once];
#pragma unroll
      for (int u = 0; u < at_once; ++u) {  // past the end, the last one is loaded again
        here[u] = loop.place;
        packs[u] = pack_at<V>(from + std::int64_t{here[u]} * inner);
        loop.advance();
      }
#pragma unroll
      for (int u = 0; u < at_once; ++u) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
          const auto value = ordered(packs[u].at[v]), best = ordered(maximum.at[v]);
          if (!(value <= best) && best == best) {  // true for the first NaN
            maximum.at[v] = packs[u].at[v];
            place[v] = here[u];
          }
        }
      }
    }
    if (y != nullptr) store_pack<V>(y + std::int64_t{p} * V, maximum);
    if (indices == nullptr) continue;
    const std::int64_t first = (std::int64_t{at.outer} * inner + at.inner) * plane;
    Pack<std::int64_t, V> packed;
#pragma unroll
    for (int v = 0; v < V; ++v) packed.at[v] = first + v * plane + place[v];
    store_pack<V>(indices + std::int64_t{p} * V, packed);
  }
}

template <class T, class Index>
void find_maxima(const sdk::Call& call, const Pool& pool, const Packs& windows, const T* x, T* y, std::int64_t* indices) {
  const bool packs = windows.width > 1;
  launch_over(call, windows.count, packs ? max_windows<T, Index, pack_width<T>> : max_windows<T, Index, 1>, pool, windows, x, y, indices);
}

/// y = largest x of each window; indices = its index in (N, C, d...).
///
/// Shapes  x (N, C, d...), y and indices (N, C, windows...), or their channels last; either may be absent. Every window contains
///         an element.
/// Dtypes  the first of equal elements; the first NaN if there is one.
template <class T>
void max_pool(const sdk::Call& call) {
  const Pool pool(call, call.inputs[0], call.has_output(0) ? call.outputs[0] : call.outputs[1]);
  const T* x = call.input<T>(0);
  T* y = output_or_null<T>(call, 0);
  std::int64_t* indices = output_or_null<std::int64_t>(call, 1);
  const bool packs = fits_packs<T>(pool.x.inner, x, y) && is_aligned(8 * pack_width<T>, indices);
  const Packs windows(pool.y, packs ? pack_width<T> : 1);
  const bool small = std::max({windows.count, pool.x.plane(), pool.x.inner}) <= max_small;
  if (small && pool.rows.is_small() && pool.columns.is_small()) {
    return find_maxima<T, std::int32_t>(call, pool, windows, x, y, indices);
  }
  find_maxima<T, std::int64_t>(call, pool, windows, x, y, indices);
}

/// Minimum and maximum distance of chosen elements from window * step, per dimension. Both are kept as maxima, whose order does not matter;
/// the minimum is negated.
struct Reach {
  long long rows[2], columns[2];
};

/// The operands of MaxPoolGrad do not include the window geometry: `step` is an estimate of the strides, which keeps Reach small.
struct Chosen {
  ImageShape dx, dy;
  Divisor by_columns;  ///< columns of dx
  Divisor row_step, column_step;

  explicit Chosen(const sdk::Call& call)
      : dx(call.outputs[0], call.channels_last),
        dy(call.inputs[0], call.channels_last),
        by_columns(dx.columns),
        row_step(step(dx.rows, dy.rows)),
        column_step(step(dx.columns, dy.columns)) {}
  static std::int64_t step(std::int64_t size, std::int64_t windows) {
    return std::max<std::int64_t>(1, size / std::max<std::int64_t>(1, windows));
  }

  /// The windows that can have chosen an element of a dimension from `first` to `last`.
  template <class Index>
  __device__ static RangeOf<Index> windows_of(Index first, Index last, const long long (&reach)[2], const Divisor& by_step,
                                              std::int64_t windows) {
    constexpr long long beyond = std::numeric_limits<Index>::max() / 2;  // every size; where nothing is chosen, reach is that far
    if (-reach[0] >= beyond) return {0, 0};
    const auto min_reach = static_cast<Index>(-reach[0]), max_reach = static_cast<Index>(reach[1]);
    const Index above = first - max_reach, below = last - min_reach;  // first step >= above, last step <= below
    if (below < 0) return {0, 0};
    const Index begin = above <= 0 ? 0 : by_step.quotient(above - 1) + 1;
    Index end = by_step.quotient(below) + 1;
    if (end > windows) end = static_cast<Index>(windows);
    return {begin, end > begin ? end - begin : 0};
  }
};

constexpr int reach_threads = 256;

template <class Integer>
__device__ Integer largest_of_warp(Integer own) {
  for (int mask = 16; mask > 0; mask /= 2) {
    const Integer other = __shfl_xor_sync(0xffffffffu, own, mask);
    if (other > own) own = other;
  }
  return own;
}

/// places = the indices within their planes, in the smallest type that holds them: each is read by several threads of gather_chosen.
///
/// Errors  an index outside the plane of its window; its position is the index in (N, C, windows...).
template <class Place, class Index, int V>
__global__ void __launch_bounds__(reach_threads)
    find_reach(Chosen chosen, Packs windows, const std::int64_t* indices, Fault fault, Reach* reach, Place* places) {
  constexpr Index lowest = std::numeric_limits<Index>::min();
  const std::int64_t plane = chosen.dx.rows * chosen.dx.columns;
  const auto columns = static_cast<Index>(chosen.dx.columns);
  const auto row_step = static_cast<Index>(chosen.row_step.d), column_step = static_cast<Index>(chosen.column_step.d);
  const auto count = static_cast<Index>(windows.count), step = static_cast<Index>(thread_count());
  Index own[4] = {lowest, lowest, lowest, lowest};
  for (auto p = static_cast<Index>(thread_index()); p < count; p += step) {
    const auto at = windows[p];
    const Pack<std::int64_t, V> packed = pack_at<V>(indices + std::int64_t{p} * V);
    const std::int64_t first = at.outer * chosen.dx.inner + at.inner, begin = first * plane;
    const Index home_row = at.row * row_step, home_column = at.column * column_step;
    Pack<Place, V> kept;
    bool valid = true;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const std::uint64_t offset = static_cast<std::uint64_t>(packed.at[v]) - static_cast<std::uint64_t>(begin + v * plane);
      const bool is_inside = offset < static_cast<std::uint64_t>(plane);
      valid = valid && is_inside;
      const Index place = is_inside ? static_cast<Index>(offset) : home_row * columns + home_column;
      kept.at[v] = static_cast<Place>(place);
      const Index row = chosen.by_columns.quotient(place);
      const Index down = row - home_row, across = place - row * columns - home_column;
      const Index now[4] = {-down, down, -across, across};
#pragma unroll
      for (int k = 0; k < 4; ++k) own[k] = now[k] > own[k] ? now[k] : own[k];
    }
    if (!valid) {
      for (int v = 0; v < V; ++v) {
        const std::int64_t index = indices[std::int64_t{p} * V + v], low = begin + v * plane;
        const std::int64_t position = ((first + v) * chosen.dy.rows + at.row) * chosen.dy.columns + at.column;
        if (index < low || index >= low + plane) fault.raise(FaultKind::index, position, index, low, low + plane);
      }
    }
    store_pack<V>(places + std::int64_t{p} * V, kept);
  }
  __shared__ Index of_warps[4][reach_threads / 32];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const Index largest = largest_of_warp(own[k]);
    if (threadIdx.x % 32 == 0) of_warps[k][threadIdx.x / 32] = largest;
  }
  __syncthreads();
  if (threadIdx.x >= 4) return;
  Index largest = of_warps[threadIdx.x][0];
  for (int w = 1; w < reach_threads / 32; ++w) {
    if (of_warps[threadIdx.x][w] > largest) largest = of_warps[threadIdx.x][w];
  }
  if (largest == lowest) return;
  atomicMax((threadIdx.x < 2 ? reach->rows : reach->columns) + threadIdx.x % 2, static_cast<long long>(largest));
}

constexpr int tile = 2;  ///< rows and columns of the elements that a thread of gather_chosen makes

/// dx = sum of dy over the windows that chose this element. A thread makes the packs of four neighbouring elements, which have many windows
/// in common. `tiles` indexes an image of half as many rows and columns.
template <class T, class Place, class Index, int V>
__global__ void gather_chosen(Chosen chosen, Packs tiles, const Reach* reach, const T* dy, const Place* places, T* dx) {
  constexpr int at_once = 2;  // windows that are loaded at once: those of two columns where the stride is 2
  const Reach far = *reach;
  const auto rows = static_cast<Index>(chosen.dx.rows), columns = static_cast<Index>(chosen.dx.columns);
  const auto count = static_cast<Index>(tiles.count), step = static_cast<Index>(thread_count());
  const auto inner = static_cast<Index>(chosen.dx.inner);
  for (auto p = static_cast<Index>(thread_index()); p < count; p += step) {
    const auto at = tiles[p];
    const Index row = tile * at.row, column = tile * at.column, place = row * columns + column;
    const RangeOf<Index> down = Chosen::windows_of(row, row + tile - 1, far.rows, chosen.row_step, chosen.dy.rows);
    const RangeOf<Index> across = Chosen::windows_of(column, column + tile - 1, far.columns, chosen.column_step, chosen.dy.columns);
    Wide<T> sums[tile][tile][V] = {};
    for (Index r = 0; r < down.count; ++r) {
      const Index line = (at.outer * static_cast<Index>(chosen.dy.rows) + down.first + r) * static_cast<Index>(chosen.dy.columns);
      const std::int64_t from = std::int64_t{line + across.first} * inner + at.inner;
      for (Index c = 0; c < across.count; c += at_once) {
        Pack<T, V> terms[at_once];
        Pack<Place, V> takers[at_once];
#pragma unroll
        for (int u = 0; u < at_once; ++u) {  // past the end, the last one is loaded again
          const std::int64_t window = from + std::int64_t{c + u < across.count ? c + u : across.count - 1} * inner;
          terms[u] = pack_at<V>(dy + window);
          takers[u] = pack_at<V>(places + window);
        }
#pragma unroll
        for (int u = 0; u < at_once; ++u) {
          if (c + u >= across.count) break;
#pragma unroll
          for (int v = 0; v < V; ++v) {
            const Wide<T> term = widen(terms[u].at[v]);
            const Index taker = static_cast<Index>(takers[u].at[v]) - place;
#pragma unroll
            for (int i = 0; i < tile; ++i) {
#pragma unroll
              for (int k = 0; k < tile; ++k) {
                if (taker == i * columns + k) sums[i][k][v] += term;  // beyond the last row or column, this is not stored
              }
            }
          }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < tile; ++i) {
#pragma unroll
      for (int k = 0; k < tile; ++k) {
        if (row + i >= rows || column + k >= columns) continue;
        store_pack<V>(dx + std::int64_t{(at.outer * rows + row + i) * columns + column + k} * inner + at.inner, narrow<T>(sums[i][k]));
      }
    }
  }
}

/// The tiles of an image as its elements.
ImageShape tiles_of(ImageShape image) {
  image.rows = (image.rows + tile - 1) / tile;
  image.columns = (image.columns + tile - 1) / tile;
  return image;
}

/// With more than four channels, the indices of neighbouring threads would be too far apart.
constexpr int windows_width = 4;

/// The scratch memory of max_pool_grad: Reach, then a place for each window.
constexpr std::size_t places_offset = 64;
static_assert(sizeof(Reach) <= places_offset);
/// Bytes of an index within a plane.
std::size_t place_bytes(const ImageShape& dx) {
  if (dx.plane() <= std::numeric_limits<std::uint16_t>::max() + 1) return 2;
  return dx.plane() <= max_small ? 4 : 8;
}

/// A first pass over the indices finds their distance from their windows, which leaves few candidate windows per element. For arbitrary
/// indices, not from a pool, every element checks every window of its plane.
///
/// For dx (256, 64, 112, 112) in bf16 and windows of stride 2, the first pass reads 411 MB and writes 103 MB, the second one reads 206 MB
/// and writes 411 MB: 0.28 ms at 4.1 TB/s.
template <class T, class Place, class Index>
void add_chosen(const sdk::Call& call, const Chosen& chosen, const Packs& windows, const Packs& tiles) {
  Stream& stream = stream_of(call);
  const T* dy = call.input<T>(0);
  const auto* indices = call.input<std::int64_t>(1);
  auto* const reach = static_cast<Reach*>(call.scratch);
  auto* const places = reinterpret_cast<Place*>(static_cast<char*>(call.scratch) + places_offset);
  launch(stream, grid_stride(stream.device(), windows.count, reach_threads),
         windows.width > 1 ? find_reach<Place, Index, windows_width> : find_reach<Place, Index, 1>, chosen, windows, indices,
         fault_of(call, TENON_OP_MaxPoolGrad), reach, places);
  launch_over(stream, tiles.count, tiles.width > 1 ? gather_chosen<T, Place, Index, pack_width<T>> : gather_chosen<T, Place, Index, 1>,
              chosen, tiles, reach, dy, places, call.output<T>(0));
}

/// dx[i] = sum of dy where indices are i, in the order of dy.
///
/// Shapes  dy and indices (N, C, windows...), dx (N, C, d...), or their channels last; indices count (N, C, d...).
/// Errors  an index outside the image and channel of its dy, when the work is waited for.
template <class T>
void max_pool_grad(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  const Chosen chosen(call);
  Stream& stream = stream_of(call);
  stream.device().enter();
  // bytes of 0x80 give a value below all others
  stream.device().check(cudaMemsetAsync(call.scratch, 0x80, sizeof(Reach), stream.handle()), "cudaMemsetAsync");
  const std::int64_t inner = chosen.dx.inner;
  const bool fours = inner % windows_width == 0 && is_aligned(8 * windows_width, call.input<std::int64_t>(1));
  const bool packs = fits_packs<T>(inner, call.input<T>(0), call.output<T>(0));
  const Packs windows(chosen.dy, fours ? windows_width : 1), tiles(tiles_of(chosen.dx), packs ? pack_width<T> : 1);
  const bool small = std::max({windows.count, tiles.count, inner}) <= max_small;
  switch (place_bytes(chosen.dx)) {
    case 2:
      return small ? add_chosen<T, std::uint16_t, std::int32_t>(call, chosen, windows, tiles)
                   : add_chosen<T, std::uint16_t, std::int64_t>(call, chosen, windows, tiles);
    case 4:
      return small ? add_chosen<T, std::uint32_t, std::int32_t>(call, chosen, windows, tiles)
                   : add_chosen<T, std::uint32_t, std::int64_t>(call, chosen, windows, tiles);
    default:
      return add_chosen<T, std::uint64_t, std::int64_t>(call, chosen, windows, tiles);
  }
}
std::size_t scratch(const sdk::Call& call) {
  const auto windows = static_cast<std::size_t>(call.inputs[0].count);
  return places_offset + windows * place_bytes(ImageShape(call.outputs[0], call.channels_last));
}

// ---------------------------------------------------------------- mean

template <class T, int V>
__global__ void average_windows(Pool pool, bool padded, Packs windows, const T* x, T* y) {
  const std::int64_t plane = pool.x.rows * pool.x.columns, inner = pool.x.inner;
  for (std::int64_t p = thread_index(); p < windows.count; p += thread_count()) {
    const Packs::Place at = windows[p];
    const T* const from = x + at.outer * plane * inner + at.inner;
    const PlaneLoop loop(pool.rows.taps(at.row), pool.columns.taps(at.column), 1, 1, pool.x.columns);
    Wide<T> sums[V] = {};
    add_weighted(
        loop, from, inner, [](const PlaneLoop&) { return Wide<T>(1); }, sums);
    const auto divisor = static_cast<Wide<T>>(pool.rows.divisor(at.row, padded) * pool.columns.divisor(at.column, padded));
#pragma unroll
    for (int v = 0; v < V; ++v) sums[v] /= divisor;
    store_pack<V>(y + p * V, narrow<T>(sums));
  }
}

/// y = sum of x over each window, divided by the number of its elements inside the padded image, or inside x.
///
/// Shapes  x (N, C, d...), y (N, C, windows...), or their channels last.
template <class T>
void average_pool(const sdk::Call& call) {
  const Pool pool(call, call.inputs[0], call.outputs[0]);
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  const bool packs = fits_packs<T>(pool.x.inner, x, y);
  const Packs windows(pool.y, packs ? pack_width<T> : 1);
  launch_over(call, windows.count, packs ? average_windows<T, pack_width<T>> : average_windows<T, 1>, pool,
              call.attr<tenon_attributes_window>().count_include_pad != 0, windows, x, y);
}

template <class T, int V>
__global__ void gather_shares(Pool pool, bool padded, Packs elements, const T* dy, T* dx) {
  const std::int64_t windows = pool.y.rows * pool.y.columns, inner = pool.x.inner;
  for (std::int64_t p = thread_index(); p < elements.count; p += thread_count()) {
    const Packs::Place at = elements[p];
    const T* const from = dy + at.outer * windows * inner + at.inner;
    const Range down = pool.rows.seen_by(at.row), across = pool.columns.seen_by(at.column);
    const auto share = [&](const PlaneLoop& at_window) {
      return 1 / static_cast<Wide<T>>(pool.rows.divisor(down.first + at_window.row, padded) *
                                      pool.columns.divisor(across.first + at_window.column, padded));
    };
    Wide<T> sums[V] = {};
    add_weighted(PlaneLoop(down, across, 1, 1, pool.y.columns), from, inner, share, sums);
    store_pack<V>(dx + p * V, narrow<T>(sums));
  }
}

/// dx = sum of dy over the windows that contain it, each divided as in average_pool.
///
/// Shapes  dy (N, C, windows...), dx (N, C, d...), or their channels last.
template <class T>
void average_pool_grad(const sdk::Call& call) {
  const Pool pool(call, call.outputs[0], call.inputs[0]);
  const T* dy = call.input<T>(0);
  T* dx = call.output<T>(0);
  const bool packs = fits_packs<T>(pool.x.inner, dy, dx);
  const Packs elements(pool.x, packs ? pack_width<T> : 1);
  launch_over(call, elements.count, packs ? gather_shares<T, pack_width<T>> : gather_shares<T, 1>, pool,
              call.attr<tenon_attributes_window>().count_include_pad != 0, elements, dy, dx);
}

constexpr sdk::Traits max_traits{.channels_last = {.inputs = 1, .outputs = 3}, .channels_last_when = images_last};
constexpr sdk::Traits max_grad_traits{.channels_last = {.inputs = 3, .outputs = 1}, .channels_last_when = images_last, .scratch = scratch};
constexpr sdk::Traits average_traits{.channels_last = {.inputs = 1, .outputs = 1}, .channels_last_when = images_last};

}  // namespace
TENON_KERNEL_WITH(max_pool, max_traits, sdk::Half, sdk::BFloat16, float, double, std::int8_t, std::uint8_t)
TENON_KERNEL_WITH(max_pool_grad, max_grad_traits, sdk::Half, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(average_pool, average_traits, sdk::Half, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(average_pool_grad, average_traits, sdk::Half, sdk::BFloat16, float, double)
}  // namespace tenon::cuda
