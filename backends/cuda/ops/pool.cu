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

constexpr int at_once = 4;  ///< packs that are loaded at once; past the end, the last one is loaded again

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
template <class T, int V>
__global__ void max_windows(Pool pool, Packs windows, const T* x, T* y, std::int64_t* indices) {
  const std::int64_t plane = pool.x.rows * pool.x.columns, inner = pool.x.inner;
  for (std::int64_t p = thread_index(); p < windows.count; p += thread_count()) {
    const Packs::Place at = windows[p];
    const T* const from = x + at.outer * plane * inner + at.inner;
    PlaneLoop loop(pool.rows.taps(at.row), pool.columns.taps(at.column), pool.rows.dilation, pool.columns.dilation, pool.x.columns);
    Pack<T, V> maximum = pack_at<V>(from + loop.place * inner);
    std::int64_t place[V];
#pragma unroll
    for (int v = 0; v < V; ++v) place[v] = loop.place;
    for (std::int64_t t = 0; t < loop.count; t += at_once) {
      Pack<T, V> packs[at_once];
      std::int64_t here[at_once];
#pragma unroll
      for (int u = 0; u < at_once; ++u) {
        here[u] = loop.place;
        packs[u] = pack_at<V>(from + here[u] * inner);
        loop.advance();
      }
#pragma unroll
      for (int u = 0; u < at_once; ++u) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
          const auto value = ordered(packs[u].at[v]), best = ordered(maximum.at[v]);
          if (value > best || (value != value && best == best)) {
            maximum.at[v] = packs[u].at[v];
            place[v] = here[u];
          }
        }
      }
    }
    if (y != nullptr) pack_at<V>(y + p * V) = maximum;
    if (indices == nullptr) continue;
    Pack<std::int64_t, V> packed;
#pragma unroll
    for (int v = 0; v < V; ++v) packed.at[v] = (at.outer * inner + at.inner + v) * plane + place[v];
    pack_at<V>(indices + p * V) = packed;
  }
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
  launch_over(call, windows.count, packs ? max_windows<T, pack_width<T>> : max_windows<T, 1>, pool, windows, x, y, indices);
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

  /// The windows that can have chosen an element of a dimension.
  __device__ static Range windows_of(std::int64_t element, const long long (&reach)[2], const Divisor& by_step, std::int64_t windows) {
    const std::int64_t min_reach = -reach[0], max_reach = reach[1];
    const std::int64_t above = element - max_reach, below = element - min_reach;  // first step >= above, last step <= below
    if (below < 0) return {0, 0};
    const std::int64_t first = above <= 0 ? 0 : by_step.quotient(above - 1) + 1;
    std::int64_t last = by_step.quotient(below);
    if (last >= windows) last = windows - 1;
    return {first, last >= first ? last - first + 1 : 0};
  }
};

constexpr int reach_threads = 256;

__device__ long long largest_of_warp(long long own) {
  for (int mask = 16; mask > 0; mask /= 2) {
    const long long other = __shfl_xor_sync(0xffffffffu, own, mask);
    if (other > own) own = other;
  }
  return own;
}

/// Errors  an index outside the plane of its window; its position is the index in (N, C, windows...).
template <int V>
__global__ void __launch_bounds__(reach_threads)
    find_reach(Chosen chosen, Packs windows, const std::int64_t* indices, Fault fault, Reach* reach) {
  constexpr long long lowest = std::numeric_limits<long long>::min();
  const std::int64_t plane = chosen.dx.rows * chosen.dx.columns;
  long long own[4] = {lowest, lowest, lowest, lowest};
  for (std::int64_t p = thread_index(); p < windows.count; p += thread_count()) {
    const Packs::Place at = windows[p];
    const Pack<std::int64_t, V> packed = pack_at<V>(indices + p * V);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const std::int64_t image = at.outer * chosen.dx.inner + at.inner + v, begin = image * plane;
      if (packed.at[v] < begin || packed.at[v] >= begin + plane) {
        const std::int64_t position = (image * chosen.dy.rows + at.row) * chosen.dy.columns + at.column;
        fault.raise(FaultKind::index, position, packed.at[v], begin, begin + plane);
        continue;
      }
      const std::int64_t place = packed.at[v] - begin, row = chosen.by_columns.quotient(place);
      const long long down = row - at.row * chosen.row_step.d;
      const long long across = place - row * chosen.dx.columns - at.column * chosen.column_step.d;
      const long long now[4] = {-down, down, -across, across};
#pragma unroll
      for (int k = 0; k < 4; ++k) own[k] = now[k] > own[k] ? now[k] : own[k];
    }
  }
  __shared__ long long of_warps[4][reach_threads / 32];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const long long largest = largest_of_warp(own[k]);
    if (threadIdx.x % 32 == 0) of_warps[k][threadIdx.x / 32] = largest;
  }
  __syncthreads();
  if (threadIdx.x >= 4) return;
  long long largest = of_warps[threadIdx.x][0];
  for (int w = 1; w < reach_threads / 32; ++w) {
    if (of_warps[threadIdx.x][w] > largest) largest = of_warps[threadIdx.x][w];
  }
  atomicMax((threadIdx.x < 2 ? reach->rows : reach->columns) + threadIdx.x % 2, largest);
}

/// dx = sum of dy over the windows that chose this element.
template <class T, int V>
__global__ void gather_chosen(Chosen chosen, Packs elements, const Reach* reach, const T* dy, const std::int64_t* indices, T* dx) {
  constexpr int pairs = V > 2 ? 2 : at_once;  // the indices of a pack take up to 32 bytes of registers
  const Reach far = *reach;
  const std::int64_t plane = chosen.dx.rows * chosen.dx.columns, inner = chosen.dx.inner, windows = chosen.dy.rows * chosen.dy.columns;
  for (std::int64_t p = thread_index(); p < elements.count; p += thread_count()) {
    const Packs::Place at = elements[p];
    const std::int64_t from = at.outer * windows * inner + at.inner;
    const std::int64_t own_index = (at.outer * inner + at.inner) * plane + at.row * chosen.dx.columns + at.column;
    PlaneLoop loop(Chosen::windows_of(at.row, far.rows, chosen.row_step, chosen.dy.rows),
                   Chosen::windows_of(at.column, far.columns, chosen.column_step, chosen.dy.columns), 1, 1, chosen.dy.columns);
    Wide<T> sums[V] = {};
    for (std::int64_t t = 0; t < loop.count; t += pairs) {
      Pack<T, V> terms[pairs];
      Pack<std::int64_t, V> packed[pairs];
#pragma unroll
      for (int u = 0; u < pairs; ++u) {
        terms[u] = pack_at<V>(dy + from + loop.place * inner);
        packed[u] = pack_at<V>(indices + from + loop.place * inner);
        loop.advance();
      }
#pragma unroll
      for (int u = 0; u < pairs; ++u) {
        if (t + u >= loop.count) break;
#pragma unroll
        for (int v = 0; v < V; ++v) {
          if (packed[u].at[v] == own_index + v * plane) sums[v] += widen(terms[u].at[v]);
        }
      }
    }
    pack_at<V>(dx + p * V) = narrow<T>(sums);
  }
}

/// dx[i] = sum of dy where indices are i, in the order of dy.
///
/// A first pass over the indices finds their distance from their windows, which leaves few candidate windows per element. For arbitrary
/// indices, not from a pool, every element checks every window of its plane.
///
/// Shapes  dy and indices (N, C, windows...), dx (N, C, d...), or their channels last; indices count (N, C, d...).
/// Errors  an index outside the image and channel of its dy, when the work is waited for.
template <class T>
void max_pool_grad(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  const Chosen chosen(call);
  const T* dy = call.input<T>(0);
  const auto* indices = call.input<std::int64_t>(1);
  T* dx = call.output<T>(0);
  auto* const reach = static_cast<Reach*>(call.scratch);
  Stream& stream = stream_of(call);
  stream.device().enter();
  // bytes of 0x80 give a value below all others
  stream.device().check(cudaMemsetAsync(reach, 0x80, sizeof(Reach), stream.handle()), "cudaMemsetAsync");
  // With more than four channels, the indices of neighbouring threads would be too far apart.
  constexpr int V = std::min(pack_width<T>, 4);
  const bool packs = chosen.dx.inner % V == 0 && is_aligned(V * sizeof(T), dy, dx) && is_aligned(8 * V, indices);
  const bool pairs = fits_packs<std::int64_t>(chosen.dx.inner, indices);
  const Packs windows(chosen.dy, pairs ? 2 : 1);
  launch(stream, grid_stride(stream.device(), windows.count, reach_threads), pairs ? find_reach<2> : find_reach<1>, chosen, windows,
         indices, fault_of(call, TENON_OP_MaxPoolGrad), reach);
  const Packs elements(chosen.dx, packs ? V : 1);
  launch_over(stream, elements.count, packs ? gather_chosen<T, V> : gather_chosen<T, 1>, chosen, elements, reach, dy, indices, dx);
}
std::size_t scratch(const sdk::Call&) {
  return sizeof(Reach);
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
    pack_at<V>(y + p * V) = narrow<T>(sums);
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
    pack_at<V>(dx + p * V) = narrow<T>(sums);
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
