// SPDX-License-Identifier: Apache-2.0
#include "gemm/small_products.h"

#include <algorithm>

#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "kernel/previous_kernel.cuh"
#include "kernel/wide.cuh"

namespace tenon::cuda {
namespace {

// A block computes a tile of results. Its threads are parts, each of which sums every parts-th product of a result: tiles are few, and more
// threads hide more of the time that loads take. A stage is what the block reads of both factors at once; the next one is read into
// registers during the arithmetic.
constexpr int threads = 256;
constexpr int parts = 4;
constexpr int side = 8;     ///< threads of a part along rows, and along columns
constexpr int depth = 128;  ///< products of a result in a stage
constexpr int lanes = 8;    ///< threads that share the sum of a column: as many for any tile, so that its bits do not depend on the tile
static_assert(parts * side * side == threads && depth % parts == 0 && depth % lanes == 0);

/// Rows of the left factor, or columns of the right one.
struct Lines {
  std::int64_t count;
  std::int64_t line_stride;
  std::int64_t term_stride;  ///< from one product of a sum to the next
  std::int64_t batch_stride;
};

template <class T>
struct Task {
  const T *a, *b;
  T* y;
  const T *c, *bias, *residual, *relu_result;
  T* column_sums;
  Lines rows, columns;
  std::int64_t terms;  ///< products of a sum
  std::int64_t c_row, c_column;
  float alpha, beta;
  sdk::Activation activation;
  int tiles_across, tiles;  ///< tiles of an entry of the batch
  int first_tile;           ///< of the launch
};

/// Passed by value, within the 4 KB of kernel parameters of every device.
template <class T>
struct Tasks {
  static constexpr int max_count = sdk::max_calls_together;
  Task<T> at[max_count];
  int count;
};
static_assert(sizeof(Tasks<float>) <= 4096);

/// What a thread reads of the lines of a tile: every step-th term of one line. A warp reads either all lines of one term, or eight terms of
/// four lines, whichever are next to each other; then its stores to shared memory have no bank conflicts.
template <class T, int lines>
struct Reader {
  static constexpr int step = threads / lines;
  static constexpr int count = depth / step;
  const T* at;
  std::int64_t stride;
  std::int64_t terms;  ///< left to read, from the thread's first one on; 0 for a line outside of the matrix
  int slot;            ///< of the thread's first term in shared memory

  __device__ Reader(const T* x, const Lines& of, std::int64_t all_terms, std::int64_t first_line, int pitch) {
    const int thread = static_cast<int>(threadIdx.x);
    int line = thread % lines, term = thread / lines;
    if (of.term_stride == 1) {
      const int warp = thread / 32;
      line = warp % (lines / 4) * 4 + thread / 8 % 4;
      term = warp / (lines / 4) * 8 + thread % 8;
    }
    at = x + (first_line + line) * of.line_stride + term * of.term_stride;
    stride = of.term_stride;
    terms = first_line + line < of.count ? all_terms - term : 0;
    slot = term * pitch + line;
  }
  __device__ void read(float (&out)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) out[i] = i * step < terms ? widen(at[i * step * stride]) : 0.0f;
    at += depth * stride;
    terms -= depth;
  }
  __device__ void store(const float (&x)[count], float* shared, int pitch) const {
#pragma unroll
    for (int i = 0; i < count; ++i) shared[slot + i * step * pitch] = x[i];
  }
};

/// The epilogue of the result at (row, column) of an entry; y has its result at `at`.
template <class T>
__device__ T finished(const Task<T>& task, float sum, std::int64_t row, std::int64_t column, std::int64_t at) {
  if (task.alpha != 1) sum *= task.alpha;
  if (task.c != nullptr) {
    const float addend = widen(task.c[row * task.c_row + column * task.c_column]);
    sum += task.beta == 1 ? addend : task.beta * addend;
  }
  if (task.bias != nullptr) sum += widen(task.bias[column]);
  if (task.residual != nullptr) sum += widen(task.residual[at]);
  sum = activated(task.activation, sum);
  if (task.relu_result != nullptr) sum = functions::ReluGrad{}(sum, widen(task.relu_result[at]));
  return narrow<T>(sum);
}

/// A thread computes width x width results of a part.
template <class T, int width>
__global__ void __launch_bounds__(threads, 2) small_products(Tasks<T> tasks) {
  constexpr int tile = side * width, pitch = tile + 4;
  static_assert(parts * tile * tile <= 2 * depth * pitch && lanes * tile <= threads);
  alignas(16) __shared__ float shared[2 * depth * pitch];
  float *const a = shared, *const b = shared + depth * pitch;

  int k = 0;
  while (k + 1 < tasks.count && static_cast<int>(blockIdx.x) >= tasks.at[k + 1].first_tile) ++k;
  const Task<T>& task = tasks.at[k];
  const int index = static_cast<int>(blockIdx.x) - task.first_tile;
  const int entry = index / task.tiles, of_entry = index - entry * task.tiles;
  const int down = of_entry / task.tiles_across;
  const std::int64_t row = std::int64_t{down} * tile, column = std::int64_t{of_entry - down * task.tiles_across} * tile;

  Reader<T, tile> of_a(task.a + entry * task.rows.batch_stride, task.rows, task.terms, row, pitch);
  Reader<T, tile> of_b(task.b + entry * task.columns.batch_stride, task.columns, task.terms, column, pitch);
  const int thread = static_cast<int>(threadIdx.x), part = thread / (side * side);
  const int x = thread % side * width, y = thread / side % side * width;
  const bool sums_columns = task.column_sums != nullptr && down == 0;
  float sums[width][width] = {}, column_sum = 0;
  wait_for_previous_kernel();
  float next_a[Reader<T, tile>::count], next_b[Reader<T, tile>::count];
  of_a.read(next_a);
  of_b.read(next_b);
  for (std::int64_t first = 0; first < task.terms; first += depth) {
    of_a.store(next_a, a, pitch);
    of_b.store(next_b, b, pitch);
    __syncthreads();
    if (first + depth < task.terms) {
      of_a.read(next_a);
      of_b.read(next_b);
    }
    const int terms = task.terms - first < depth ? static_cast<int>(task.terms - first) : depth;
#pragma unroll 4
    for (int t = part; t < terms; t += parts) {
      const Pack<float, width> left = pack_at<width>(a + t * pitch + y), right = pack_at<width>(b + t * pitch + x);
#pragma unroll
      for (int i = 0; i < width; ++i) {
#pragma unroll
        for (int j = 0; j < width; ++j) sums[i][j] += left.at[i] * right.at[j];
      }
    }
    if (sums_columns && thread < lanes * tile) {
      for (int t = thread / tile; t < terms; t += lanes) column_sum += b[t * pitch + thread % tile];
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < width; ++i) {
#pragma unroll
    for (int j = 0; j < width; ++j) shared[(part * tile + y + i) * tile + x + j] = sums[i][j];
  }
  __syncthreads();
  for (int i = thread; i < tile * tile; i += threads) {
    const std::int64_t r = row + i / tile, c = column + i % tile;
    if (r >= task.rows.count || c >= task.columns.count) continue;
    const float sum = (shared[i] + shared[tile * tile + i]) + (shared[2 * tile * tile + i] + shared[3 * tile * tile + i]);
    const std::int64_t at = (entry * task.rows.count + r) * task.columns.count + c;
    task.y[at] = finished(task, sum, r, c, at);
  }
  if (!sums_columns) return;
  __syncthreads();
  shared[thread] = column_sum;
  __syncthreads();
  if (thread >= tile || column + thread >= task.columns.count) return;
  for (int i = thread + tile; i < lanes * tile; i += tile) column_sum += shared[i];
  task.column_sums[column + thread] = narrow<T>(column_sum);
}

std::int64_t tiles_of(const SmallProduct& p, int tile) {
  return (p.a_view.rows + tile - 1) / tile * ((p.b_view.columns + tile - 1) / tile) * p.batch;
}

template <class T>
Task<T> task_of(const SmallProduct& p, int tile) {
  Task<T> task{};
  task.a = static_cast<const T*>(p.a);
  task.b = static_cast<const T*>(p.b);
  task.y = static_cast<T*>(p.y);
  task.c = p.beta != 0 ? static_cast<const T*>(p.c) : nullptr;
  task.bias = static_cast<const T*>(p.bias);
  task.residual = static_cast<const T*>(p.residual);
  task.relu_result = static_cast<const T*>(p.relu_result);
  task.column_sums = static_cast<T*>(p.column_sums);
  task.rows = {p.a_view.rows, p.a_view.row_stride, p.a_view.column_stride, p.a_step};
  task.columns = {p.b_view.columns, p.b_view.column_stride, p.b_view.row_stride, p.b_step};
  task.terms = p.a_view.columns;
  task.c_row = p.c_row;
  task.c_column = p.c_column;
  task.alpha = static_cast<float>(p.alpha);
  task.beta = static_cast<float>(p.beta);
  task.activation = p.activation;
  task.tiles_across = static_cast<int>((p.b_view.columns + tile - 1) / tile);
  task.tiles = static_cast<int>(tiles_of(p, tile) / p.batch);
  return task;
}

template <class T, int width>
void multiply_by(Stream& stream, std::span<const SmallProduct> products) {
  constexpr int tile = side * width;
  Tasks<T> tasks{};
  std::int64_t tiles = 0;
  const auto send = [&] {
    launch_early(stream, {tiles, threads}, small_products<T, width>, tasks);
    tasks.count = 0;
    tiles = 0;
  };
  for (const SmallProduct& p : products) {
    if (tiles_of(p, tile) == 0) continue;
    Task<T>& task = tasks.at[tasks.count++] = task_of<T>(p, tile);
    task.first_tile = static_cast<int>(tiles);
    tiles += tiles_of(p, tile);
    if (tasks.count == tasks.max_count) send();
  }
  if (tasks.count > 0) send();
}

/// Products of one dtype. Large tiles read less, small ones are more: the large ones if they suffice for all multiprocessors.
template <class T>
void multiply_as(Stream& stream, std::span<const SmallProduct> products) {
  std::int64_t large_tiles = 0;
  for (const SmallProduct& p : products) large_tiles += tiles_of(p, 4 * side);
  if (large_tiles >= stream.device().multiprocessors()) {
    multiply_by<T, 4>(stream, products);
  } else {
    multiply_by<T, 2>(stream, products);
  }
}

}  // namespace

bool is_small(const SmallProduct& p) {
  const bool is_narrow = p.dtype == TENON_DTYPE_F16 || p.dtype == TENON_DTYPE_BF16;
  if (!is_narrow && p.dtype != TENON_DTYPE_F32) return false;
  // The longest sum is read in 8 stages of about 0.4 us each. What all multiprocessors multiply and add is 2 us for f32 and half of it for
  // 16 bits, where tensor cores are an alternative. Operands are bounded because they may be kept for a while.
  constexpr std::int64_t max_terms = 8 * depth, max_elements = std::int64_t{1} << 20;
  const std::int64_t max_products = std::int64_t{1} << (is_narrow ? 24 : 25);
  const std::int64_t m = p.a_view.rows, n = p.b_view.columns, k = p.a_view.columns;
  if (std::max({m, n, p.batch}) > max_elements || k > max_terms) return false;
  if (m * p.batch > max_elements || n * p.batch > max_elements) return false;
  const std::int64_t elements = std::max({m * p.batch * n, m * p.batch * k, n * p.batch * k});
  return elements <= max_elements && m * p.batch * n * k <= max_products;
}

void multiply_small(Stream& stream, std::span<const SmallProduct> products) {
  while (!products.empty()) {
    const tenon_dtype dtype = products[0].dtype;
    const auto other = std::find_if(products.begin(), products.end(), [&](const SmallProduct& p) { return p.dtype != dtype; });
    const auto alike = products.first(static_cast<std::size_t>(other - products.begin()));
    products = products.subspan(alike.size());
    if (dtype == TENON_DTYPE_F16) {
      multiply_as<sdk::Half>(stream, alike);
    } else if (dtype == TENON_DTYPE_BF16) {
      multiply_as<sdk::BFloat16>(stream, alike);
    } else {
      multiply_as<float>(stream, alike);
    }
  }
}

}  // namespace tenon::cuda
