// SPDX-License-Identifier: Apache-2.0
// The largest or smallest elements along an axis. Elements are mapped to unsigned keys, of which the greater is better; equal keys are
// ordered by index.
//
// Short lines: a warp computes the rank of each element. Small k: a block finds the smallest selected key digit by digit, collects the keys
// that are not below it, and sorts them. Otherwise: whole lines are sorted.
#include <bit>
#include <cstring>
#include <limits>

#include "kernel/image.cuh"
#include "movement/radix_sort.h"

namespace tenon::cuda {
namespace {

constexpr unsigned all_lanes = 0xffffffffu;

/// x as (outer, n, inner), a line for each outer and inner.
struct Lines {
  std::int64_t outer, n, inner, k;
  bool largest;

  explicit Lines(const sdk::Call& call) {
    const auto& attributes = call.attr<tenon_attributes_top_k>();
    const sdk::AxisView view = sdk::around_axis(call.inputs[0], attributes.axis);
    outer = view.outer;
    n = view.n;
    inner = view.inner;
    k = attributes.k;
    largest = attributes.largest != 0;
  }
  std::int64_t count() const { return outer * inner; }
  /// The start of a line in x, and in the results; its elements are `inner` apart.
  __device__ std::int64_t start(std::int64_t line) const { return line / inner * n * inner + line % inner; }
  __device__ std::int64_t result_start(std::int64_t line) const { return line / inner * k * inner + line % inner; }
};

template <class T>
using Key = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/// NaN is larger than every other value; zeros are equal.
template <class T>
__device__ Key<T> key_of(T x, bool largest) {
  using K = Key<T>;
  constexpr K sign = K{1} << (8 * sizeof(K) - 1);
  K key;
  if constexpr (std::is_integral_v<T>) {
    key = static_cast<K>(x) ^ sign;
  } else {
    const Wide<T> value = widen(x) + 0;  // -0 becomes 0
    std::memcpy(&key, &value, sizeof key);
    key = value != value ? static_cast<K>(~K{0}) : (key & sign) != 0 ? static_cast<K>(~key) : static_cast<K>(key | sign);
  }
  return largest ? key : static_cast<K>(~key);
}

// ---------------------------------------------------------------- short lines

constexpr int slots = 4;  ///< elements per lane
constexpr std::int64_t longest_ranked = 32 * slots;

template <class T>
__global__ void rank_elements(Lines lines, std::int64_t count, const T* x, T* values, std::int64_t* indices) {
  const int lane = static_cast<int>(threadIdx.x) % 32, n = static_cast<int>(lines.n);
  for (std::int64_t line = thread_index() / 32; line < count; line += thread_count() / 32) {
    const std::int64_t start = lines.start(line), to = lines.result_start(line);
    T own[slots];
    Key<T> keys[slots];
    int rank[slots] = {};
#pragma unroll
    for (int s = 0; s < slots; ++s) {
      const int j = s * 32 + lane;
      own[s] = x[start + (j < n ? j : 0) * lines.inner];
      keys[s] = key_of(own[s], lines.largest);
    }
#pragma unroll
    for (int s = 0; s < slots; ++s) {
      for (int l = 0; l < 32 && s * 32 + l < n; ++l) {
        const Key<T> other = __shfl_sync(all_lanes, keys[s], l);
#pragma unroll
        for (int e = 0; e < slots; ++e) rank[e] += other > keys[e] || (other == keys[e] && s * 32 + l < e * 32 + lane) ? 1 : 0;
      }
    }
#pragma unroll
    for (int s = 0; s < slots; ++s) {
      if (s * 32 + lane >= n || rank[s] >= lines.k) continue;
      values[to + rank[s] * lines.inner] = own[s];
      indices[to + rank[s] * lines.inner] = s * 32 + lane;
    }
  }
}

// ---------------------------------------------------------------- small k

constexpr int threads = 256, warps = threads / 32;
constexpr int digit_bits = 8, digits = 1 << digit_bits;
static_assert(threads == digits, "one thread per digit");
constexpr std::int64_t max_selected = 1024;

/// An element of a line.
template <class K>
struct Entry {
  K key;
  std::uint32_t index;

  __device__ bool beats(const Entry& other) const { return key > other.key || (key == other.key && index < other.index); }
};

/// body(j, key) for the elements of the line at x, distributed over the threads of a block, with several loads in flight.
template <class T, class Body>
__device__ void for_each_key(const Lines& lines, const T* x, const Body& body) {
  constexpr int at_once = 4;
  for (std::int64_t begin = threadIdx.x; begin < lines.n; begin += at_once * threads) {
    T batch[at_once];
#pragma unroll
    for (int u = 0; u < at_once; ++u) {
      const std::int64_t j = begin + u * threads;
      batch[u] = x[(j < lines.n ? j : begin) * lines.inner];
    }
#pragma unroll
    for (int u = 0; u < at_once; ++u) {
      const std::int64_t j = begin + u * threads;
      if (j < lines.n) body(j, key_of(batch[u], lines.largest));
    }
  }
}

/// Inclusive prefix sum over the threads of the block. `of_warp` has one element per warp.
__device__ unsigned sum_until(unsigned own, unsigned* of_warp) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (unsigned step = 1; step < 32; step *= 2) {
    const unsigned left = __shfl_up_sync(all_lanes, own, step);
    if (lane >= step) own += left;
  }
  if (lane == 31) of_warp[warp] = own;
  __syncthreads();
  for (unsigned w = 0; w < warp; ++w) own += of_warp[w];
  __syncthreads();  // all reads must finish before the next write
  return own;
}

/// Selects the keys whose bits in `mask` are above `prefix`, and the first `ties` of those that are equal.
template <class K>
struct Threshold {
  K prefix = 0, mask = 0;
  unsigned ties;
};

/// Searches by digits, highest first, and stops when all keys of a digit are selected. Every thread of the block gets the result.
template <class T>
__device__ Threshold<Key<T>> find_threshold(const Lines& lines, const T* x) {
  using K = Key<T>;
  __shared__ unsigned counts[digits], of_warp[warps], chosen, ties;
  Threshold<K> threshold;
  threshold.ties = static_cast<unsigned>(lines.k);
  for (int shift = 8 * static_cast<int>(sizeof(K)) - digit_bits; shift >= 0; shift -= digit_bits) {
    counts[threadIdx.x] = 0;
    __syncthreads();
    for_each_key(lines, x, [&](std::int64_t, K key) {
      if ((key & threshold.mask) == threshold.prefix) atomicAdd(&counts[static_cast<unsigned>(key >> shift) % digits], 1u);
    });
    __syncthreads();
    const unsigned digit = digits - 1 - threadIdx.x, here = counts[digit];
    const unsigned until = sum_until(here, of_warp);
    if (until - here < threshold.ties && threshold.ties <= until) {
      chosen = digit;
      ties = threshold.ties - (until - here);
    }
    __syncthreads();
    threshold.prefix |= static_cast<K>(K{chosen} << shift);
    threshold.mask |= static_cast<K>(K{digits - 1} << shift);
    threshold.ties = ties;
    const bool takes_all = counts[chosen] == ties;
    __syncthreads();
    if (takes_all) break;
  }
  return threshold;
}

/// best[0, k) in any order.
template <class T>
__device__ void collect(const Lines& lines, const T* x, const Threshold<Key<T>>& threshold, Entry<Key<T>>* best) {
  using K = Key<T>;
  __shared__ unsigned taken, of_warp[2][warps];
  const auto k = static_cast<unsigned>(lines.k), above = k - threshold.ties;
  if (threadIdx.x == 0) taken = 0;
  __syncthreads();
  for_each_key(lines, x, [&](std::int64_t j, K key) {
    if ((key & threshold.mask) > threshold.prefix) best[atomicAdd(&taken, 1u)] = {key, static_cast<std::uint32_t>(j)};
  });
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned found = 0, parity = 0;
  for (std::int64_t begin = 0; begin < lines.n && found < threshold.ties; begin += threads, parity ^= 1) {
    const std::int64_t j = begin + threadIdx.x;
    const K key = j < lines.n ? key_of(x[j * lines.inner], lines.largest) : K{0};
    const bool is_tie = j < lines.n && (key & threshold.mask) == threshold.prefix;
    const unsigned of_lanes = __ballot_sync(all_lanes, is_tie);
    if (lane == 0) of_warp[parity][warp] = static_cast<unsigned>(__popc(of_lanes));
    __syncthreads();  // slower warps may still read the other half of the buffer
    unsigned rank = found + static_cast<unsigned>(__popc(of_lanes & ((1u << lane) - 1)));
    for (unsigned w = 0; w < warps; ++w) {
      if (w < warp) rank += of_warp[parity][w];
      found += of_warp[parity][w];
    }
    if (is_tie && rank < threshold.ties) best[above + rank] = {key, static_cast<std::uint32_t>(j)};
  }
  __syncthreads();
}

/// best[0, size) in order, size a power of two.
///
/// Source  Batcher: Sorting networks and their applications (1968).
template <class K>
__device__ void sort_entries(Entry<K>* best, unsigned size) {
  for (unsigned block = 2; block <= size; block *= 2) {
    for (unsigned distance = block / 2; distance > 0; distance /= 2) {
      for (unsigned pair = threadIdx.x; pair < size / 2; pair += threads) {
        const unsigned low = pair / distance * 2 * distance + pair % distance, high = low + distance;
        const bool ascends = (low & block) == 0;
        const Entry<K> a = best[low], b = best[high];
        if (ascends ? b.beats(a) : a.beats(b)) {
          best[low] = b;
          best[high] = a;
        }
      }
      __syncthreads();
    }
  }
}

template <class T>
__global__ void __launch_bounds__(threads) select_elements(Lines lines, std::int64_t count, const T* x, T* values, std::int64_t* indices) {
  using K = Key<T>;
  __shared__ Entry<K> best[max_selected];
  const auto k = static_cast<unsigned>(lines.k);
  for (std::int64_t line = blockIdx.x; line < count; line += gridDim.x) {
    const T* const from = x + lines.start(line);
    const std::int64_t to = lines.result_start(line);
    collect(lines, from, find_threshold(lines, from), best);
    unsigned size = 1;
    while (size < k) size *= 2;
    for (unsigned j = k + threadIdx.x; j < size; j += threads) best[j] = {K{0}, ~std::uint32_t{0}};  // sorts last
    __syncthreads();
    sort_entries(best, size);
    for (unsigned j = threadIdx.x; j < k; j += threads) {
      values[to + j * lines.inner] = from[best[j].index * lines.inner];
      indices[to + j * lines.inner] = best[j].index;
    }
    __syncthreads();
  }
}

// ---------------------------------------------------------------- whole lines sorted

/// The maximum number of elements that are sorted at once, unless one line has more.
constexpr std::int64_t sorted_at_once = std::int64_t{1} << 24;

std::int64_t lines_at_once(const Lines& lines) {
  return std::min(lines.count(), std::max<std::int64_t>(1, sorted_at_once / lines.n));
}

/// Keys of the lines from `first` on; ascending order is best first.
template <class T>
__global__ void make_keys(Lines lines, std::int64_t first, std::int64_t count, const T* x, SortBuffers buffers) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t line = i / lines.n;
    buffers.keys[0][i] = static_cast<Key<T>>(~key_of(x[lines.start(first + line) + (i - line * lines.n) * lines.inner], lines.largest));
    buffers.values[0][i] = static_cast<std::uint32_t>(i);
  }
}
/// The second sort key: the line.
__global__ void key_lines(std::int64_t n, std::int64_t count, SortBuffers buffers) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count())
    buffers.keys[0][i] = static_cast<std::uint64_t>(buffers.values[0][i] / n);
}
template <class T>
__global__ void take_first(Lines lines, std::int64_t first, std::int64_t count, const std::uint32_t* order, const T* x, T* values,
                           std::int64_t* indices) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t line = i / lines.k, j = i - line * lines.k;
    const std::int64_t index = std::int64_t{order[line * lines.n + j]} - line * lines.n;
    const std::int64_t to = lines.result_start(first + line) + j * lines.inner;
    values[to] = x[lines.start(first + line) + index * lines.inner];
    indices[to] = index;
  }
}

template <class T>
void sort_lines(const sdk::Call& call, const Lines& lines) {
  const T* x = call.input<T>(0);
  Stream& stream = stream_of(call);
  const std::int64_t max_lines = lines_at_once(lines);
  for (std::int64_t first = 0; first < lines.count(); first += max_lines) {
    const std::int64_t n = std::min(max_lines, lines.count() - first), count = n * lines.n;
    SortBuffers buffers = sort_buffers(call.scratch, count);
    const auto to_front = [&buffers](int where) {
      if (where == 0) return;
      std::swap(buffers.keys[0], buffers.keys[1]);
      std::swap(buffers.values[0], buffers.values[1]);
    };
    launch_over(stream, count, make_keys<T>, lines, first, count, x, buffers);
    to_front(sort_pairs(stream, buffers, count, 8 * static_cast<int>(sizeof(Key<T>))));
    if (n > 1) {
      launch_over(stream, count, key_lines, lines.n, count, buffers);
      to_front(sort_pairs(stream, buffers, count, bits_below(n)));
    }
    launch_over(stream, n * lines.k, take_first<T>, lines, first, n * lines.k, buffers.values[0], x, call.output<T>(0),
                call.output<std::int64_t>(1));
  }
}

/// One block reads a line several times: with too few lines to keep a GPU busy, a sort by all blocks is faster.
bool is_selected(const Lines& lines) {
  constexpr std::int64_t long_line = 64 * 1024, many_lines = 64;
  return lines.k <= max_selected && (lines.n <= long_line || lines.count() >= many_lines);
}

/// The k best of each line along the axis in order, equal ones by their index.
///
/// Shapes  x dense (..., n, ...), values and indices (..., k, ...).
template <class T>
void top_k(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  const Lines lines(call);
  Stream& stream = stream_of(call);
  if (lines.n > longest_ranked && !is_selected(lines)) return sort_lines<T>(call, lines);
  const bool ranked = lines.n <= longest_ranked;
  const Geometry geometry = grid_stride(stream.device(), lines.count() * (ranked ? 32 : threads), threads);
  launch(stream, geometry, ranked ? rank_elements<T> : select_elements<T>, lines, lines.count(), call.input<T>(0), call.output<T>(0),
         call.output<std::int64_t>(1));
}
std::size_t scratch(const sdk::Call& call) {
  const Lines lines(call);
  if (call.outputs[0].count == 0 || lines.n <= longest_ranked || is_selected(lines)) return 0;
  return sort_bytes(lines_at_once(lines) * lines.n);
}
const char* refuse(const sdk::Call& call) {
  return Lines(call).n > max_sorted ? "a line has 2^32 elements or more" : nullptr;
}

}  // namespace
TENON_KERNEL_WITH(top_k, (sdk::Traits{.scratch = scratch, .refuse = refuse}), sdk::Half, sdk::BFloat16, float, double, std::int32_t,
                  std::int64_t)
}  // namespace tenon::cuda
