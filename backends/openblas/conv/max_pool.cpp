// SPDX-License-Identifier: Apache-2.0
#include "conv/max_pool.h"

#include "simd/foreach_target.h"

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

#include <tenon/sdk/rounding.h>

#include "conv/pool_windows.h"
#include "workers.h"

#ifndef TENON_OPENBLAS_MAX_POOL_ONCE
#define TENON_OPENBLAS_MAX_POOL_ONCE
namespace tenon::openblas {
namespace {
/// The destination of the indices of a row of results.
struct IndexRow {
  std::int64_t* indices;        ///< NULL: not requested
  const std::int64_t* channel;  ///< per channel: the index of its plane's first element in an image (C, H, W)
  std::int64_t image;           ///< the index of the image's first element
};
}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// Whether a later element replaces the best one so far: it is larger, or the first NaN.
template <class D, class V>
HWY_INLINE hn::Mask<D> replaces(D, V x, V best) {
  return hn::Or(hn::Gt(x, best), hn::And(hn::IsNaN(x), hn::Eq(best, best)));
}

template <class T, class Part>
HWY_INLINE void max_part(const PoolWindow<T>& window, const Part& part, std::int64_t c, T* y) {
  const Wide<Computed<T>> d;
  const std::int64_t step = lanes(d);
  hn::Vec<Wide<Computed<T>>> best[Part::count];
  for (int i = 0; i < Part::count; ++i) {
    best[i] = window.empty() ? hn::Set(d, -std::numeric_limits<Computed<T>>::infinity()) : part.load(d, window.first + c + i * step);
  }
  window.for_each([&](const T* at, std::int64_t, std::int64_t) HWY_ATTR {
    for (int i = 0; i < Part::count; ++i) {
      const auto x = part.load(d, at + c + i * step);
      // any NaN may replace an earlier one
      best[i] = hn::IfThenElse(hn::Or(hn::Gt(x, best[i]), hn::IsNaN(x)), x, best[i]);
    }
  });
  for (int i = 0; i < Part::count; ++i) part.store(best[i], d, y + c + i * step);
}

/// Converts indices within a plane to indices in x and stores them.
template <class T, class Index>
HWY_INLINE void store_indices(const Index* places, std::int64_t n, const IndexRow& to, std::int64_t c, std::int64_t* out) {
  const Wide<std::int64_t> d;
  const hn::Rebind<Index, Wide<std::int64_t>> narrow;
  const auto image = hn::Set(d, to.image);
  for (std::int64_t j = 0; j < n; j += lanes(d)) {
    hn::Vec<Wide<std::int64_t>> place;
    if constexpr (sizeof(Index) == 8) {
      place = hn::Load(d, places + j);
    } else {
      place = hn::PromoteTo(d, hn::Load(narrow, places + j));
    }
    place = hn::Add(place, image);
    if (n - j >= lanes(d)) {
      hn::StoreU(hn::Add(place, hn::LoadU(d, to.channel + c + j)), d, out + c + j);
    } else {
      store_first(hn::Add(place, load_first(d, to.channel + c + j, n - j)), d, out + c + j, n - j);
    }
  }
}

template <class T, class Part>
HWY_INLINE void arg_max_part(const PoolGeometry& g, const PoolWindow<T>& window, const Part& part, std::int64_t c, T* y, const IndexRow& to,
                             std::int64_t* out) {
  using Index = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  const Wide<Computed<T>> d;
  const Wide<Index> di;
  const std::int64_t step = lanes(d);
  const std::int64_t corner = window.rows.first * g.w.size + window.columns.first;
  hn::Vec<Wide<Computed<T>>> best[Part::count];
  hn::Vec<Wide<Index>> place[Part::count];
  for (int i = 0; i < Part::count; ++i) {
    best[i] = window.empty() ? hn::Set(d, -std::numeric_limits<Computed<T>>::infinity()) : part.load(d, window.first + c + i * step);
    place[i] = hn::Set(di, static_cast<Index>(window.empty() ? 0 : corner));
  }
  window.for_each([&](const T* at, std::int64_t row, std::int64_t column) HWY_ATTR {
    const std::int64_t index = corner + row * g.h.dilation * g.w.size + column * g.w.dilation;
    const auto here = hn::Set(di, static_cast<Index>(index));
    for (int i = 0; i < Part::count; ++i) {
      const auto x = part.load(d, at + c + i * step);
      const auto better = replaces(d, x, best[i]);
      best[i] = hn::IfThenElse(better, x, best[i]);
      place[i] = hn::IfThenElse(hn::RebindMask(di, better), here, place[i]);
    }
  });
  HWY_ALIGN Index places[HWY_MAX_BYTES / sizeof(Index)];
  for (int i = 0; i < Part::count; ++i) {
    if (y != nullptr) part.store(best[i], d, y + c + i * step);
    hn::Store(place[i], di, places);
    store_indices<T>(places, HWY_MIN(step, g.channels - c - i * step), to, c + i * step, out);
  }
}

/// The same of bytes.
template <class T>
void max_byte_row(const PoolGeometry& g, const T* image, std::int64_t row, T* y, const IndexRow& to) {
  const PoolTaps rows = g.h.taps(row);
  for (std::int64_t column = 0; column < g.w.windows; ++column) {
    const PoolWindow<T> window(g, image, rows, column);
    if (y != nullptr) {
      const Wide<T> d;
      const auto lowest = hn::Set(d, std::numeric_limits<T>::lowest());
      std::int64_t c = 0;
      for (; c + lanes(d) <= g.channels; c += lanes(d)) {
        auto best = lowest;
        window.for_each([&](const T* at, std::int64_t, std::int64_t) HWY_ATTR { best = hn::Max(best, hn::LoadU(d, at + c)); });
        hn::StoreU(best, d, y + c);
      }
      for (; c < g.channels; ++c) {
        T best = std::numeric_limits<T>::lowest();
        window.for_each([&](const T* at, std::int64_t, std::int64_t) HWY_ATTR { best = at[c] > best ? at[c] : best; });
        y[c] = best;
      }
      y += g.channels;
    }
    if (to.indices == nullptr) continue;
    std::int64_t* const out = to.indices + column * g.channels;
    const std::int64_t corner = window.rows.first * g.w.size + window.columns.first;
    for (std::int64_t c = 0; c < g.channels; ++c) {
      std::int64_t place = corner;
      T best = std::numeric_limits<T>::lowest();
      window.for_each([&](const T* at, std::int64_t i, std::int64_t k) HWY_ATTR {
        if (at[c] <= best) return;
        best = at[c];
        place = corner + i * g.h.dilation * g.w.size + k * g.w.dilation;
      });
      out[c] = to.image + to.channel[c] + place;
    }
  }
}

/// A row of results: y and, if requested, the indices.
template <class T>
void max_row(const PoolGeometry& g, const T* image, std::int64_t row, T* y, const IndexRow& to) {
  const PoolTaps rows = g.h.taps(row);
  for (std::int64_t column = 0; column < g.w.windows; ++column) {
    const PoolWindow<T> window(g, image, rows, column);
    if (to.indices == nullptr) {
      for_each_part(Wide<Computed<T>>(), g.channels, [&](const auto& part, std::int64_t c) HWY_ATTR { max_part(window, part, c, y); });
    } else {
      std::int64_t* const out = to.indices + column * g.channels;
      for_each_part(Wide<Computed<T>>(), g.channels,
                    [&](const auto& part, std::int64_t c) HWY_ATTR { arg_max_part(g, window, part, c, y, to, out); });
    }
    if (y != nullptr) y += g.channels;
  }
}

/// y (rows, n), rows `step` elements apart, from dense x.
void round_rows(const float* x, std::int64_t rows, std::int64_t n, sdk::BFloat16* y, std::int64_t step) {
  const Floats d;
  for (std::int64_t row = 0; row < rows; ++row, x += n, y += step) {
    for (std::int64_t i = 0; i < n; i += lanes(d))
      store(n - i < lanes(d) ? load_first(d, x + i, n - i) : hn::LoadU(d, x + i), d, y + i, n - i);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

/// How max_pool_grad is divided into tasks: each has a block of the channels of an image. The sums of bf16 are f32, in memory
/// that only the thread uses.
template <class T>
struct MaxPoolGradTasks {
  static constexpr bool has_sums = !std::is_same_v<T, SumOf<T>>;

  std::int64_t images, channels, pixels = 0, windows = 0, block = 0, blocks = 0;

  explicit MaxPoolGradTasks(const sdk::Call& call)
      : images(call.outputs[0].shape[0]), channels(call.outputs[0].shape[call.outputs[0].rank - 1]) {
    if (images * channels == 0) return;
    pixels = call.outputs[0].count / (images * channels);
    windows = call.inputs[0].count / (images * channels);
    // A few images are divided into blocks of channels; a cache line of 64 bytes belongs to one thread.
    constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
    constexpr std::int64_t largest_sums = 1024 * 1024;  // elements, which stay in the cache that the cores share
    const std::int64_t target_blocks = (call.host.thread_count() + images - 1) / images;
    block = ((channels + target_blocks - 1) / target_blocks + line - 1) / line * line;
    if (has_sums) block = std::clamp(largest_sums / std::max<std::int64_t>(1, pixels) / line * line, line, block);
    blocks = (channels + block - 1) / block;
  }
  std::int64_t count() const { return images * blocks; }
  /// Elements of a task.
  std::int64_t work() const { return std::max<std::int64_t>(1, (pixels + windows) * std::min(block, channels)); }
  std::size_t sums_bytes() const {
    return has_sums ? sdk::aligned_size(static_cast<std::size_t>(pixels * std::min(block, channels)) * sizeof(SumOf<T>)) : 0;
  }
  std::int64_t workers(const sdk::Host& host) const {
    const std::int64_t tasks = std::max<std::int64_t>(1, count());
    return worker_count(host, std::clamp<std::int64_t>(tasks * work() / pool_grain, 1, tasks));
  }
};

/// Adds the dy of a task to `sums`, whose pixels are `step` elements apart.
template <class T, class S>
void add_to_maxima(const sdk::Call& call, const MaxPoolGradTasks<T>& tasks, std::int64_t image, std::int64_t first, std::int64_t n, S* sums,
                   std::int64_t step) {
  const std::int64_t plane = (image * tasks.channels + first) * tasks.pixels;  // the index of its first element
  for (std::int64_t i = 0; i < tasks.windows; ++i) {
    const std::int64_t at = (image * tasks.windows + i) * tasks.channels + first;
    const T* const dy = call.input<T>(0) + at;
    const std::int64_t* const index = call.input<std::int64_t>(1) + at;
    std::int64_t start = plane;
    for (std::int64_t c = 0; c < n; ++c, start += tasks.pixels) {
      const auto place = static_cast<std::uint64_t>(index[c]) - static_cast<std::uint64_t>(start);
      if (place >= static_cast<std::uint64_t>(tasks.pixels)) {
        throw sdk::Error(TENON_INVALID_ARGUMENT, "max_pool_grad: index " + std::to_string(index[c]) + " at position " +
                                                     std::to_string((image * tasks.channels + first + c) * tasks.windows + i) +
                                                     " is out of range [" + std::to_string(start) + ", " +
                                                     std::to_string(start + tasks.pixels) + ") of its image and channel");
      }
      sums[static_cast<std::int64_t>(place) * step + c] += number_of(dy[c]);
    }
  }
}

}  // namespace

template <class T>
void max_pool(const sdk::Call& call) {
  const sdk::Operand& windows = call.has_output(0) ? call.outputs[0] : call.outputs[1];
  const PoolGeometry g(call.inputs[0], windows, call.attr<tenon_attributes_window>());
  const T* const x = call.input<T>(0);
  T* const y = call.has_output(0) ? call.output<T>(0) : nullptr;
  std::int64_t* const indices = call.has_output(1) ? call.output<std::int64_t>(1) : nullptr;
  auto* const channel = static_cast<std::int64_t*>(call.scratch);
  for (std::int64_t c = 0; indices != nullptr && c < g.channels; ++c) channel[c] = c * g.pixels();
  const auto row_of = [] {
    if constexpr (std::is_integral_v<T>) {
      return TENON_DISPATCH(max_byte_row<T>);
    } else {
      return TENON_DISPATCH(max_row<T>);
    }
  }();
  const std::int64_t line = g.w.windows * g.channels;
  for_each_pool_row(call.host, g.images, g.h.windows, line * g.h.kernel * g.w.kernel, [&](std::int64_t image, std::int64_t row) {
    const std::int64_t at = (image * g.h.windows + row) * line;
    const std::int64_t plane = g.pixels() * g.channels;
    row_of(g, x + image * plane, row, y == nullptr ? nullptr : y + at,
           {indices == nullptr ? nullptr : indices + at, channel, image * plane});
  });
}
std::size_t max_pool_scratch(const sdk::Call& call) {
  const sdk::Operand& x = call.inputs[0];
  return call.has_output(1) ? static_cast<std::size_t>(x.shape[x.rank - 1]) * sizeof(std::int64_t) : 0;
}
const char* refuse_max_pool(const sdk::Call& call) {
  const sdk::Operand& x = call.inputs[0];
  std::int64_t pixels = 1;
  for (std::uint32_t i = 2; i < x.rank; ++i) pixels *= x.shape[i];
  return x.dtype != TENON_DTYPE_F64 && call.has_output(1) && pixels > std::numeric_limits<std::int32_t>::max()
             ? "indices in images of 2^31 or more pixels are supported only for f64"
             : nullptr;
}

template <class T>
void max_pool_grad(const sdk::Call& call) {
  const MaxPoolGradTasks<T> tasks(call);
  const std::int64_t pixels = tasks.pixels, channels = tasks.channels;
  const auto run = [&](std::int64_t task, std::int64_t worker) {
    const std::int64_t image = task / tasks.blocks, first = task % tasks.blocks * tasks.block;
    const std::int64_t n = std::min(tasks.block, channels - first);
    T* const to = call.output<T>(0) + image * pixels * channels + first;
    if constexpr (MaxPoolGradTasks<T>::has_sums) {
      auto* const sums =
          reinterpret_cast<SumOf<T>*>(static_cast<char*>(call.scratch) + static_cast<std::size_t>(worker) * tasks.sums_bytes());
      std::fill_n(sums, pixels * n, SumOf<T>(0));
      add_to_maxima(call, tasks, image, first, n, sums, n);
      TENON_DISPATCH(round_rows)(sums, pixels, n, to, channels);
    } else {
      if (n == channels) {
        std::fill_n(to, pixels * channels, T(0));
      } else {
        for (std::int64_t i = 0; i < pixels; ++i) std::fill_n(to + i * channels, n, T(0));
      }
      add_to_maxima(call, tasks, image, first, n, to, channels);
    }
  };
  if constexpr (MaxPoolGradTasks<T>::has_sums) {
    // As many parts as workers, each with memory of its own.
    const std::int64_t workers = tasks.workers(call.host);
    call.host.parallel_for(workers, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t worker = begin; worker < end; ++worker) {
        for (std::int64_t task = worker * tasks.count() / workers; task < (worker + 1) * tasks.count() / workers; ++task) run(task, worker);
      }
    });
  } else {
    call.host.parallel_for(tasks.count(), std::max<std::int64_t>(1, pool_grain / tasks.work()), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task) run(task, 0);
    });
  }
}
std::size_t max_pool_grad_scratch(const sdk::Call& call) {
  if (call.outputs[0].dtype != TENON_DTYPE_BF16) return 0;
  const MaxPoolGradTasks<sdk::BFloat16> tasks(call);
  return static_cast<std::size_t>(tasks.workers(call.host)) * tasks.sums_bytes();
}

TENON_INSTANTIATE(max_pool, sdk::BFloat16)
TENON_INSTANTIATE_FLOATS(max_pool)
TENON_INSTANTIATE(max_pool, std::int8_t)
TENON_INSTANTIATE(max_pool, std::uint8_t)
TENON_INSTANTIATE(max_pool_grad, sdk::BFloat16)
TENON_INSTANTIATE_FLOATS(max_pool_grad)

}  // namespace tenon::openblas
#endif
