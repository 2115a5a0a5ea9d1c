// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_weight_grad_thin.h"

#include "simd/foreach_target.h"

#include <algorithm>

#include <tenon/sdk/rounding.h>

#include "simd/simd.h"
#include "workers.h"

#ifndef TENON_OPENBLAS_THIN_LINE
#define TENON_OPENBLAS_THIN_LINE
namespace tenon::openblas {
namespace {

/// A line of pixels and one row of the kernel: sums (run, out_channels) += sum over j of x[j x_step ... + run)' dy[j].
template <class T>
struct ThinLine {
  const T* x = nullptr;
  std::int64_t x_step = 0;
  const T* dy = nullptr;
  std::int64_t n = 0;  ///< pixels
  std::int64_t run = 0;
  std::int64_t out_channels = 0;
  T* sums = nullptr;
};

}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

// Weights whose sums are in registers together, two vectors of output channels each: as many as fit.
constexpr int max_weights = HWY_TARGET == HWY_AVX3 ? 12 : 6;

/// Sums weights [first, first + weights) of the run for `registers` vectors of output channels from o on; the first `done` are not stored.
template <int weights, int registers, bool part, class T>
HWY_INLINE void sum_weights(const ThinLine<T>& line, std::int64_t first, std::int64_t done, std::int64_t o) {
  const Wide<T> d;
  const auto load = [&](const T* p) HWY_ATTR {
    if constexpr (part) return load_first(Wide<T>(), p, line.out_channels - o);
    return hn::LoadU(Wide<T>(), p);
  };
  hn::Vec<Wide<T>> sums[weights][registers];
  for (auto& sum : sums) {
    for (auto& lane : sum) lane = hn::Zero(d);
  }
  const T* x = line.x + first;
  const T* dy = line.dy + o;
  for (std::int64_t j = 0; j < line.n; ++j, x += line.x_step, dy += line.out_channels) {
    hn::Vec<Wide<T>> g[registers];
    for (int i = 0; i < registers; ++i) g[i] = load(dy + i * lanes(d));
    for (int w = 0; w < weights; ++w) {
      const auto v = hn::Set(d, x[w]);
      for (int i = 0; i < registers; ++i) sums[w][i] = hn::MulAdd(v, g[i], sums[w][i]);
    }
  }
  for (int w = 0; w < weights; ++w) {
    if (w < done) continue;
    T* const out = line.sums + (first + w) * line.out_channels + o;
    for (int i = 0; i < registers; ++i) {
      const auto total = hn::Add(load(out + i * lanes(d)), sums[w][i]);
      if constexpr (part) {
        store_first(total, d, out, line.out_channels - o);
      } else {
        hn::StoreU(total, d, out + i * lanes(d));
      }
    }
  }
}

template <int weights, class T>
void sum_run(const ThinLine<T>& line) {
  const std::int64_t width = lanes(Wide<T>());
  for (std::int64_t first = 0; first < line.run; first += weights) {
    // The last group overlaps weights that are already done, so that all groups have the same size.
    const std::int64_t begin = std::min(first, line.run - weights);
    std::int64_t o = 0;
    for (; o + 2 * width <= line.out_channels; o += 2 * width) sum_weights<weights, 2, false>(line, begin, first - begin, o);
    for (; o + width <= line.out_channels; o += width) sum_weights<weights, 1, false>(line, begin, first - begin, o);
    if (o < line.out_channels) sum_weights<weights, 1, true>(line, begin, first - begin, o);
  }
}

/// Chooses the largest number of weights at once that fits the registers, or a smaller one if the last group then overlaps less.
template <class T>
void run_line(const ThinLine<T>& line) {
  std::int64_t group = 1;
  for (const std::int64_t weights : {3, 6, 9, 12}) {
    if (weights > line.run || weights > max_weights) break;
    const std::int64_t computed = (line.run + weights - 1) / weights * weights;
    if (computed <= (line.run + group - 1) / group * group || group == 1) group = weights;
  }
  if (group == 12) return sum_run<std::min(12, max_weights)>(line);
  if (group == 9) return sum_run<std::min(9, max_weights)>(line);
  if (group == 6) return sum_run<6>(line);
  if (group == 3) return sum_run<3>(line);
  return sum_run<1>(line);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

constexpr std::int64_t largest_channels = 8;
// The largest number of slots (parts of the lines with their own sums), and the smallest number of multiply-adds of a slot: about 100 us.
constexpr std::int64_t target_slots = 32;
constexpr std::int64_t smallest_slot = 4 << 20;

struct Layout {
  explicit Layout(const ConvGeometry& g) : lines(g.images * g.out_height), columns((g.out_width - 1) * g.stride_width + g.kernel_width) {
    const std::int64_t work = g.out_width * g.weights();
    slot_lines = std::max(sdk::ceil_div(smallest_slot, work), sdk::ceil_div(lines, target_slots));
    slots = sdk::ceil_div(lines, slot_lines);
  }
  std::int64_t lines;    ///< of dy
  std::int64_t columns;  ///< of a line of x with its padding
  std::int64_t slot_lines, slots;
};

/// The pixels of x under a line of dy and one row of the kernel, with zeros outside the image.
template <class T>
void padded_line(const ConvGeometry& g, const T* line, std::int64_t columns, T* out) {
  const std::int64_t first = std::min(g.pad_left, columns);
  const std::int64_t end = std::max(first, std::min(columns, g.pad_left + g.width));
  std::fill_n(out, first * g.channels, T(0));
  std::copy_n(line, (end - first) * g.channels, out + first * g.channels);
  std::fill_n(out + end * g.channels, (columns - end) * g.channels, T(0));
}

}  // namespace

bool thin_weight_grad_pays(const ConvGeometry& g) {
  return g.groups == 1 && g.channels <= largest_channels && g.dilation_width == 1;
}

std::size_t thin_weight_grad_scratch(const ConvGeometry& g, const sdk::Host& host, std::size_t element_size) {
  const Layout layout(g);
  return scratch_bytes(layout.slots * g.weights(), element_size) +
         static_cast<std::size_t>(worker_count(host, layout.slots)) * scratch_bytes(layout.columns * g.channels, element_size);
}

template <class T>
void thin_weight_grad(const ConvGeometry& g, const sdk::Host& host, const T* dy, const T* x, void* memory, T* dw) {
  const Layout layout(g);
  T* const sums = static_cast<T*>(memory);
  char* const buffers = static_cast<char*>(memory) + scratch_bytes(layout.slots * g.weights(), sizeof(T));
  const std::int64_t run_length = g.kernel_width * g.channels;
  for_each_task(host, layout.slots, [&](std::int64_t slot, std::int64_t worker) {
    T* const buffer =
        reinterpret_cast<T*>(buffers + static_cast<std::size_t>(worker) * scratch_bytes(layout.columns * g.channels, sizeof(T)));
    T* const slot_sums = sums + slot * g.weights();
    std::fill_n(slot_sums, g.weights(), T(0));
    const std::int64_t end = std::min(layout.lines, (slot + 1) * layout.slot_lines);
    for (std::int64_t i = slot * layout.slot_lines; i < end; ++i) {
      for (std::int64_t a = 0; a < g.kernel_height; ++a) {
        const std::int64_t row = i % g.out_height * g.stride_height + a * g.dilation_height - g.pad_top;
        if (row < 0 || row >= g.height) continue;
        padded_line(g, x + (i / g.out_height * g.height + row) * g.width * g.channels, layout.columns, buffer);
        ThinLine<T> line;
        line.x = buffer;
        line.x_step = g.stride_width * g.channels;
        line.dy = dy + i * g.out_width * g.out_channels;
        line.n = g.out_width;
        line.run = run_length;
        line.out_channels = g.out_channels;
        line.sums = slot_sums + a * run_length * g.out_channels;
        TENON_DISPATCH(run_line<T>)(line);
      }
    }
  });
  const std::int64_t taps = g.taps();
  for (std::int64_t k = 0; k < taps * g.channels; ++k) {
    T* const total = sums + k * g.out_channels;
    for (std::int64_t slot = 1; slot < layout.slots; ++slot) {
      const T* const part = total + slot * g.weights();
      for (std::int64_t o = 0; o < g.out_channels; ++o) total[o] += part[o];
    }
    T* const out = dw + k % g.channels * taps + k / g.channels;
    for (std::int64_t o = 0; o < g.out_channels; ++o) out[o * g.channels * taps] = total[o];
  }
}

template void thin_weight_grad<float>(const ConvGeometry&, const sdk::Host&, const float*, const float*, void*, float*);
template void thin_weight_grad<double>(const ConvGeometry&, const sdk::Host&, const double*, const double*, void*, double*);

}  // namespace tenon::openblas
#endif
