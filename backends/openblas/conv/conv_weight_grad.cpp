// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_weight_grad.h"

#include <cblas.h>

#include <algorithm>
#include <type_traits>

#include <tenon/sdk/rounding.h>
#include <tenon/sdk/scratch_arena.h>

#include "conv/conv_weight_grad_thin.h"
#include "conv/conv_weight_grad_winograd.h"
#include "conv/direct_cost.h"
#include "elementwise/half.h"
#include "elementwise/transpose.h"
#include "gemm/panels.h"
#include "gemm/product_types.h"
#include "gemm/products.h"
#include "workers.h"

namespace tenon::openblas {
namespace {

// The number of tasks of large problems: more than most machines have threads.
constexpr std::int64_t target_tasks = 32;
// With fewer columns than this, products repack dy too often.
constexpr std::int64_t smallest_column_block = 192;
// Products of bf16 are so fast that copies of dy for more column blocks would cost as much.
constexpr std::int64_t smallest_bf16_column_block = 768;
constexpr std::int64_t largest_row_block = 512;
constexpr std::int64_t column_tile = 16;  // columns that OpenBLAS's kernels hold in registers
// The sums of the slots (parts of the pixels) are added at the end: a slot has to be worth a pass over all weights.
constexpr std::int64_t smallest_slot_pixels = 1024;
constexpr double smallest_slot_work = 4e6;      // multiply-adds
constexpr std::int64_t largest_sums = 8 << 20;  // elements, of all slots together
// Pixels of a panel: OpenBLAS processes its inner dimension in steps of 384, and panel, dy and sums together should stay in L2.
constexpr std::int64_t panel_step = 384;
constexpr std::int64_t largest_panel = 256 << 10;  // elements

/// c = a' b + beta c, with a (k, m), b (k, n), c (m, n), row-major.
void accumulate(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                float beta, float* c, std::int64_t ldc) {
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), 1.0F, a,
              static_cast<int>(lda), b, static_cast<int>(ldb), beta, c, static_cast<int>(ldc));
}
void accumulate(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, std::int64_t lda, const double* b, std::int64_t ldb,
                double beta, double* c, std::int64_t ldc) {
  cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), 1.0, a,
              static_cast<int>(lda), b, static_cast<int>(ldb), beta, c, static_cast<int>(ldc));
}

/// c = a' b + beta c, with sums in f32. `a_rows` (m, k) and `panels` are memory for copies of a and b, whose pairs along k are neighbours.
void accumulate(std::int64_t m, std::int64_t n, std::int64_t k, const sdk::BFloat16* a, std::int64_t lda, const sdk::BFloat16* b,
                std::int64_t ldb, float beta, float* c, std::int64_t ldc, sdk::BFloat16* a_rows, sdk::BFloat16* panels) {
  transpose_block(a, lda, a_rows, k, m, k);
  PanelSource<sdk::BFloat16> source;
  source.data = b;
  source.inner = k;
  source.inner_step = ldb;
  source.columns = n;
  source.column_step = 1;
  for (std::int64_t i = 0; i < panel_count<sdk::BFloat16>(n); ++i) pack_panel(source, i, panels);
  PanelProduct<sdk::BFloat16> product;
  product.rows = m;
  product.k = k;
  product.columns = n;
  product.a = a_rows;
  product.a_step = k;
  product.panels = panels;
  product.wide_y = c;
  product.y_step = ldc;
  product.accumulates = beta != 0;
  multiply_panels(product);
}

/// How dw' (O, columns), columns (kh, kw, c) of a group, is divided into tasks: by rows, by columns, and by the pixels that are summed. It
/// depends only on the geometry, so the bits do not depend on the number of threads.
struct Tiling {
  Tiling(const ConvGeometry& g, bool bf16)
      : is_bf16(bf16),
        columns(g.k()),
        pixels(g.rows()),
        direct(g.taps() == 1 && g.stride_height == 1 && g.stride_width == 1 && g.pad_top == 0 && g.pad_left == 0 &&
               g.out_height == g.height && g.out_width == g.width) {
    row_blocks = sdk::ceil_div(g.group_out_channels(), largest_row_block);
    row_block = sdk::ceil_div(g.group_out_channels(), row_blocks);
    column_blocks = std::clamp<std::int64_t>(columns / (bf16 ? smallest_bf16_column_block : smallest_column_block), 1, target_tasks);
    column_block = column_blocks == 1
                       ? columns
                       : sdk::round_up(sdk::ceil_div(columns, column_blocks), bf16 ? panel_width<sdk::BFloat16> : column_tile);
    column_blocks = sdk::ceil_div(columns, column_block);

    const std::int64_t blocks = g.groups * row_blocks * column_blocks;
    const double work = static_cast<double>(pixels) * static_cast<double>(columns) * static_cast<double>(g.out_channels);
    slots = 1;
    if (2 * blocks <= target_tasks) {
      slots = std::min({sdk::ceil_div(target_tasks, blocks), pixels / smallest_slot_pixels,
                        static_cast<std::int64_t>(work / smallest_slot_work), largest_sums / g.weights()});
      slots = std::max<std::int64_t>(slots, 1);
    }
    const std::int64_t fitting = largest_panel / (column_block + row_block);
    panel_pixels =
        fitting >= panel_step ? std::min(fitting / panel_step, std::int64_t{2}) * panel_step : std::max<std::int64_t>(fitting, 64);
    slot_pixels = sdk::round_up(sdk::ceil_div(pixels, slots), direct ? 1 : panel_pixels);
    slots = sdk::ceil_div(pixels, slot_pixels);
  }

  std::int64_t tasks(const ConvGeometry& g) const { return g.groups * row_blocks * column_blocks * slots; }
  /// Whether dw' is dw.
  bool in_place(const ConvGeometry& g) const { return slots == 1 && g.taps() == 1 && !is_bf16; }
  std::int64_t panel_size() const { return direct ? 0 : panel_pixels * column_block; }
  /// Elements of the copies of dy and of the panel that products of bf16 read.
  std::int64_t rows_size() const { return is_bf16 ? row_block * panel_pixels : 0; }
  std::int64_t packed_size() const { return is_bf16 ? openblas::panel_elements<sdk::BFloat16>(panel_pixels, column_block) : 0; }

  bool is_bf16;
  std::int64_t columns, pixels;
  bool direct;  ///< x equals its im2col matrix
  std::int64_t row_block = 0, row_blocks = 0;
  std::int64_t column_block = 0, column_blocks = 0;
  std::int64_t slot_pixels = 0, slots = 0;
  std::int64_t panel_pixels = 0;
};

/// Columns [begin, end) of the im2col matrix of one group, computed for some pixels at a time.
template <class T>
class Panel {
 public:
  Panel(const ConvGeometry& g, const T* x, std::int64_t group, std::int64_t begin, std::int64_t end)
      : g_(g), x_(x + group * g.group_channels()), begin_(begin), end_(end) {
    // If the channels of neighbouring taps are contiguous, a whole row of the kernel is copied at once.
    const bool joined = g.groups == 1 && g.dilation_width == 1;
    run_taps_ = joined ? g.kernel_width : 1;
    run_ = run_taps_ * g.group_channels();
  }

  /// out (count, end - begin), for the result's pixels from index `first` (over all images) on.
  void fill(std::int64_t first, std::int64_t count, T* out) const {
    const std::int64_t step = end_ - begin_;
    while (count > 0) {
      const std::int64_t column = first % g_.out_width;
      const std::int64_t line = first / g_.out_width;
      const std::int64_t n = std::min(count, g_.out_width - column);
      for (std::int64_t r = begin_ / run_; r * run_ < end_; ++r) {
        const std::int64_t from = std::max(begin_, r * run_) - r * run_;
        const std::int64_t to = std::min(end_, (r + 1) * run_) - r * run_;
        fill_run(line / g_.out_height, line % g_.out_height, column, n, r * run_taps_, from, to, out + r * run_ + from - begin_, step);
      }
      out += n * step;
      first += n;
      count -= n;
    }
  }

 private:
  /// Elements [from, to) of the run that begins at `tap`, for n pixels of a line.
  void fill_run(std::int64_t image, std::int64_t out_row, std::int64_t out_column, std::int64_t n, std::int64_t tap, std::int64_t from,
                std::int64_t to, T* out, std::int64_t step) const {
    const std::int64_t row = out_row * g_.stride_height + tap / g_.kernel_width * g_.dilation_height - g_.pad_top;
    if (row < 0 || row >= g_.height) {
      for (std::int64_t i = 0; i < n; ++i) std::fill_n(out + i * step, to - from, T{});
      return;
    }
    const T* const line = x_ + (image * g_.height + row) * g_.width * g_.channels;
    std::int64_t column = out_column * g_.stride_width + tap % g_.kernel_width * g_.dilation_width - g_.pad_left;
    for (std::int64_t i = 0; i < n; ++i, column += g_.stride_width, out += step) {
      const T* const source = line + column * g_.channels;  // the run's first element, which may lie outside the image
      if (column >= 0 && column + run_taps_ <= g_.width) {
        copy(source + from, to - from, out);
        continue;
      }
      const std::int64_t group_channels = g_.group_channels();
      const std::int64_t low = std::clamp(-column * group_channels, from, to);
      const std::int64_t high = std::clamp((g_.width - column) * group_channels, low, to);
      std::fill(out, out + (low - from), T{});
      copy(source + low, high - low, out + (low - from));
      std::fill(out + (high - from), out + (to - from), T{});
    }
  }

  static void copy(const T* from, std::int64_t n, T* to) {
    if (n >= 16) {
      std::copy_n(from, n, to);
    } else {
      for (std::int64_t i = 0; i < n; ++i) to[i] = from[i];  // cheaper than a call of memcpy
    }
  }

  const ConvGeometry& g_;
  const T* x_;  ///< the group's first channel
  std::int64_t begin_, end_;
  std::int64_t run_taps_;  ///< taps whose elements are contiguous in x
  std::int64_t run_;       ///< the number of their elements
};

/// The memory of a thread.
template <class T>
struct Memory {
  T *panel, *rows, *packed;

  Memory(sdk::ScratchArena& arena, const Tiling& tiling)
      : panel(arena.allocate<T>(tiling.panel_size())),
        rows(arena.allocate<T>(tiling.rows_size())),
        packed(arena.allocate<T>(tiling.packed_size())) {}

  static std::size_t bytes(const Tiling& tiling) {
    sdk::ScratchArena arena(nullptr);
    Memory(arena, tiling);
    return arena.required_bytes();
  }
};

/// Computes one block of dw' from the pixels of one slot.
template <class T>
void sum_block(const ConvGeometry& g, const Tiling& tiling, const T* dy, const T* x, std::int64_t task, const Memory<T>& memory,
               SumOf<T>* sums) {
  T* const panel = memory.panel;
  const std::int64_t slot = task % tiling.slots;
  task /= tiling.slots;
  const std::int64_t first_column = task % tiling.column_blocks * tiling.column_block;
  task /= tiling.column_blocks;
  const std::int64_t first_row = task % tiling.row_blocks * tiling.row_block;
  const std::int64_t group = task / tiling.row_blocks;
  const std::int64_t columns = std::min(tiling.column_block, tiling.columns - first_column);
  const std::int64_t rows = std::min(tiling.row_block, g.group_out_channels() - first_row);

  const std::int64_t row = group * g.group_out_channels() + first_row;  // the row of dw' and channel of dy
  SumOf<T>* const out = sums + (slot * g.out_channels + row) * tiling.columns + first_column;
  const Panel<T> maker(g, x, group, first_column, first_column + columns);
  // Direct products are divided too, because their length is an int.
  const std::int64_t step = tiling.direct && !tiling.is_bf16 ? std::int64_t{1} << 20 : tiling.panel_pixels;
  const std::int64_t begin = slot * tiling.slot_pixels;
  const std::int64_t end = std::min(begin + tiling.slot_pixels, tiling.pixels);
  for (std::int64_t pixel = begin; pixel < end; pixel += step) {
    const std::int64_t n = std::min(step, end - pixel);
    const SumOf<T> beta = pixel == begin ? 0 : 1;
    const T* b = panel;
    std::int64_t ldb = columns;
    if (tiling.direct) {
      b = x + pixel * g.channels + group * g.group_channels() + first_column;
      ldb = g.channels;
    } else {
      maker.fill(pixel, n, panel);
    }
    const T* const a = dy + pixel * g.out_channels + row;
    if constexpr (std::is_same_v<T, sdk::BFloat16>) {
      accumulate(rows, columns, n, a, g.out_channels, b, ldb, beta, out, tiling.columns, memory.rows, memory.packed);
    } else {
      accumulate(rows, columns, n, a, g.out_channels, b, ldb, beta, out, tiling.columns);
    }
  }
}

/// dw (O, c, kh, kw) = the sum over the slots, in order, of dw' (O, kh, kw, c).
template <class T>
void arrange(const ConvGeometry& g, const Tiling& tiling, const sdk::Host& host, SumOf<T>* sums, T* dw) {
  const std::int64_t taps = g.taps();
  const std::int64_t channels = g.group_channels();
  const std::int64_t grain = std::max<std::int64_t>(1, 16 * 1024 / (tiling.columns * tiling.slots));
  host.parallel_for(g.out_channels, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      SumOf<T>* const total = sums + o * tiling.columns;
      for (std::int64_t slot = 1; slot < tiling.slots; ++slot) {
        const SumOf<T>* const part = total + slot * g.out_channels * tiling.columns;
        for (std::int64_t i = 0; i < tiling.columns; ++i) total[i] += part[i];
      }
      T* const row = dw + o * tiling.columns;
      for (std::int64_t t = 0; t < taps; ++t) {
        for (std::int64_t c = 0; c < channels; ++c) row[c * taps + t] = rounded_to<T>(total[t * channels + c]);
      }
    }
  });
}

template <class T>
bool weight_grad_by_winograd(const ConvGeometry& g, const sdk::Host& host) {
  return WeightGradWinograd::pays(g, direct_cost<T>(host));
}

}  // namespace

template <class T>
std::size_t weight_grad_scratch(const ConvGeometry& g, const sdk::Call& call) {
  constexpr bool is_bf16 = std::is_same_v<T, sdk::BFloat16>;
  if (g.empty() || g.weights() == 0) return 0;
  if (weight_grad_by_winograd<T>(g, call.host)) return WeightGradWinograd(g).scratch(call.host);
  if (!is_bf16 && thin_weight_grad_pays(g)) return thin_weight_grad_scratch(g, call.host, sizeof(T));
  const Tiling tiling(g, is_bf16);
  const std::int64_t sums = tiling.in_place(g) ? 0 : tiling.slots * g.weights();
  return scratch_bytes(sums, sizeof(SumOf<T>)) +
         static_cast<std::size_t>(worker_count(call.host, tiling.tasks(g))) * Memory<T>::bytes(tiling);
}

template <class T>
void weight_grad(const ConvGeometry& g, const sdk::Call& call) {
  constexpr bool is_bf16 = std::is_same_v<T, sdk::BFloat16>;
  const T* const dy = call.input<T>(0);
  const T* const x = call.input<T>(1);
  T* const dw = call.output<T>(0);
  if (g.weights() == 0) return;
  if (g.empty()) {
    std::fill_n(dw, g.weights(), T{});
    return;
  }
  check_sizes("conv_weight_grad", g.out_channels, g.channels * g.taps(), 1);
  if constexpr (!std::is_same_v<T, double>) {
    if (weight_grad_by_winograd<T>(g, call.host)) {
      WeightGradWinograd(g).run(call.host, dy, x, static_cast<char*>(call.scratch), dw);
      return;
    }
  }
  if constexpr (!is_bf16) {
    if (thin_weight_grad_pays(g)) {
      thin_weight_grad(g, call.host, dy, x, call.scratch, dw);
      return;
    }
  }
  const Tiling tiling(g, is_bf16);
  char* scratch = static_cast<char*>(call.scratch);
  SumOf<T>* sums = reinterpret_cast<SumOf<T>*>(tiling.in_place(g) ? static_cast<void*>(dw) : scratch);
  if (!tiling.in_place(g)) scratch += scratch_bytes(tiling.slots * g.weights(), sizeof(SumOf<T>));
  for_each_task(call.host, tiling.tasks(g), [&](std::int64_t task, std::int64_t worker) {
    sdk::ScratchArena arena(scratch + static_cast<std::size_t>(worker) * Memory<T>::bytes(tiling));
    sum_block(g, tiling, dy, x, task, Memory<T>(arena, tiling), sums);
  });
  if (!tiling.in_place(g)) arrange<T>(g, tiling, call.host, sums, dw);
}

template std::size_t weight_grad_scratch<sdk::BFloat16>(const ConvGeometry& g, const sdk::Call& call);
template std::size_t weight_grad_scratch<float>(const ConvGeometry& g, const sdk::Call& call);
template std::size_t weight_grad_scratch<double>(const ConvGeometry& g, const sdk::Call& call);
template void weight_grad<sdk::BFloat16>(const ConvGeometry& g, const sdk::Call& call);
template void weight_grad<float>(const ConvGeometry& g, const sdk::Call& call);
template void weight_grad<double>(const ConvGeometry& g, const sdk::Call& call);

}  // namespace tenon::openblas
