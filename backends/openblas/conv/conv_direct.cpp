// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_direct.h"

#include "simd/foreach_target.h"
#include "workers.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <type_traits>

#include <tenon/sdk/rounding.h>

#include "conv/conv_bands.h"
#include "conv/conv_scaled_rows.h"
#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// A row that is being gathered, run by run. A run may write past its end, because the next one overwrites the excess: it uses whole
/// vectors wherever source and destination are long enough.
template <class T>
class Row {
 public:
  Row(T* row, std::int64_t size, const T* source_end) : to_(row), end_(row + size), source_end_(source_end) {}

  HWY_INLINE void copy(const T* from, std::int64_t n) {
    const Wide<T> d;
    std::int64_t i = 0;
    for (; i + lanes(d) <= n; i += lanes(d)) hn::StoreU(hn::LoadU(d, from + i), d, to_ + i);
    if (i < n) store(source_end_ - from >= i + lanes(d) ? hn::LoadU(d, from + i) : load_first(d, from + i, n - i), i, n);
    to_ += n;
  }
  HWY_INLINE void zero(std::int64_t n) {
    const Wide<T> d;
    for (std::int64_t i = 0; i < n; i += lanes(d)) store(hn::Zero(d), i, n);
    to_ += n;
  }

 private:
  T* to_;
  T* end_;
  const T* source_end_;

  HWY_INLINE void store(hn::Vec<Wide<T>> value, std::int64_t i, std::int64_t n) {
    const Wide<T> d;
    if (end_ - to_ >= i + lanes(d)) {
      hn::StoreU(value, d, to_ + i);
    } else {
      store_first(value, d, to_ + i, n - i);
    }
  }
};

/// Gathers rows [begin, end) of the im2col matrix of one group, out_step elements apart.
template <class T>
void gather(const DirectConv& conv, const T* x, std::int64_t group, std::int64_t begin, std::int64_t end, T* out, std::int64_t out_step) {
  const std::int64_t channels = conv.channels / conv.groups;
  // Neighbouring taps are one run if they are contiguous in memory.
  const bool runs = conv.wide.tap_step == 1 && conv.groups == 1;
  const T* const source = x + group * channels;
  const T* const source_end = x + conv.images * conv.high.size * conv.wide.size * conv.channels;
  std::int64_t column = begin % conv.wide.results;
  std::int64_t line = begin / conv.wide.results % conv.high.results;
  std::int64_t image = begin / conv.wide.results / conv.high.results;
  for (std::int64_t row = begin; row < end; ++row, out += out_step) {
    Row<T> to(out, out_step, source_end);
    const std::int64_t left = column * conv.wide.read_step + conv.wide.offset;
    for (std::int64_t a = 0; a < conv.high.taps; ++a) {
      const std::int64_t high = line * conv.high.read_step + conv.high.offset + a * conv.high.tap_step;
      if (high < 0 || high >= conv.high.size) {
        to.zero(conv.wide.taps * channels);
        continue;
      }
      const T* const from = source + (image * conv.high.size + high) * conv.wide.size * conv.channels;
      if (runs) {
        const std::int64_t first = std::clamp<std::int64_t>(left, 0, conv.wide.size);
        const std::int64_t last = std::clamp<std::int64_t>(left + conv.wide.taps, first, conv.wide.size);
        const std::int64_t before = std::clamp<std::int64_t>(first - left, 0, conv.wide.taps);
        if (before > 0) to.zero(before * channels);
        to.copy(from + first * channels, (last - first) * channels);
        const std::int64_t after = conv.wide.taps - before - (last - first);
        if (after > 0) to.zero(after * channels);
        continue;
      }
      for (std::int64_t b = 0; b < conv.wide.taps; ++b) {
        const std::int64_t wide = left + b * conv.wide.tap_step;
        if (wide < 0 || wide >= conv.wide.size) {
          to.zero(channels);
        } else {
          to.copy(from + wide * conv.channels, channels);
        }
      }
    }
    if (++column < conv.wide.results) continue;
    column = 0;
    if (++line < conv.high.results) continue;
    line = 0;
    ++image;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Bytes of gathered rows that stay in L2 while panels stream through it.
constexpr std::int64_t block_bytes = 512 * 1024;
// Bytes of rows that are scaled and then multiplied while they are in L1, if two register tiles of rows take no more.
constexpr std::int64_t scaled_bytes = 32 * 1024;
// Blocks have a multiple of this number of rows: whole register tiles.
constexpr std::int64_t row_multiple = 14;
// The largest size of all rows together that are gathered at once and shared among the threads.
constexpr std::int64_t shared_bytes = 2 * 1024 * 1024;
// The largest weights that stay in each core's L2. Up to this size threads divide the rows, which are still in the cache of the core that
// wrote them in the layer before.
constexpr std::int64_t near_weight_bytes = 1280 * 1024;
// Multiply-adds of a block that are worth taking it: about 2 us.
constexpr double smallest_piece = 0.2e6;

/// What rows are gathered as.
template <class T>
using Gathered = std::conditional_t<sizeof(T) == 2, std::uint16_t, T>;

template <class T>
void gather_rows(const DirectConv& conv, const DirectOperands<T>& o, std::int64_t group, std::int64_t begin, std::int64_t end, T* out,
                 std::int64_t step) {
  using G = Gathered<T>;
  if (conv.scales) return scale_rows(o.x, o.scale, conv.channels, conv.high.size * conv.wide.size, begin, end, out, step);
  TENON_DISPATCH(gather<G>)(conv, reinterpret_cast<const G*>(o.x), group, begin, end, reinterpret_cast<G*>(out), step);
}

/// How the work is divided. It depends on the sizes and the number of threads, but changes no bit of the result.
struct Layout {
  bool gathers = true;       ///< rows are copied; else the rows of x are used in place
  bool shared = false;       ///< all rows are gathered first and the threads divide the columns; else each block gathers its own rows
  bool dense_result = true;  ///< row r of the product is row r of y
  std::int64_t a_step = 0;   ///< between rows, elements
  std::int64_t block = 0;    ///< rows of a block
  std::int64_t workers = 1;
  std::size_t rows_bytes = 0;     ///< of gathered rows, per worker, or in all if shared
  std::size_t offsets_bytes = 0;  ///< of the offsets of y's rows, per worker, or in all if shared

  std::size_t bytes() const { return (rows_bytes + offsets_bytes) * (shared ? 1u : static_cast<std::size_t>(workers)); }
};

bool covers(const ConvAxis& axis, std::int64_t size) {
  return axis.first == 0 && axis.step == 1 && axis.results == size;
}
bool reads_contiguously(const ConvAxis& axis) {
  return axis.taps == 1 && axis.offset == 0 && axis.read_step == 1 && axis.results == axis.size;
}

}  // namespace

bool reads_pixels(const DirectConv& conv) {
  return conv.groups == 1 && reads_contiguously(conv.high) && reads_contiguously(conv.wide);
}

namespace {

Layout layout_of(const DirectConv& conv, const sdk::Host& host, std::size_t element_size) {
  const auto size = static_cast<std::int64_t>(element_size);
  const std::int64_t rows = conv.rows();
  const std::int64_t k = conv.k();
  Layout layout;
  layout.workers = worker_count(host, rows);
  layout.gathers = conv.scales || !reads_pixels(conv);
  layout.dense_result = covers(conv.high, conv.out_height) && covers(conv.wide, conv.out_width);
  layout.a_step = k;
  if (layout.gathers) {
    layout.a_step = sdk::round_up(k, 64 / size);
    // Rows a multiple of 4 KiB apart would map to the same L1 cache set.
    if (layout.a_step * size % 4096 == 0) layout.a_step += 64 / size;
  }
  const std::int64_t row_bytes = std::max<std::int64_t>(1, layout.a_step * size);
  const std::int64_t weight_bytes = k * conv.group_columns() * size;
  layout.shared = rows <= shared_bytes / row_bytes && weight_bytes > std::max(near_weight_bytes, rows * row_bytes);
  if (layout.shared) {
    layout.block = rows;
  } else {
    // Blocks fit the cache, and each thread gets several, unless they become too small to be worth handing to a thread.
    const bool near = conv.scales && weight_bytes <= block_bytes;
    const std::int64_t fitting =
        std::max((near ? 2 : 1) * row_multiple, (near ? scaled_bytes : block_bytes) / row_bytes / row_multiple * row_multiple);
    const std::int64_t fair = sdk::round_up((rows + 4 * layout.workers - 1) / (4 * layout.workers), row_multiple);
    const double row_work = static_cast<double>(std::max<std::int64_t>(1, k)) * static_cast<double>(conv.out_channels);
    const std::int64_t worthwhile = sdk::round_up(static_cast<std::int64_t>(smallest_piece / row_work) + 1, row_multiple);
    layout.block = std::min({fitting, std::max(fair, worthwhile), std::max<std::int64_t>(rows, 1)});
  }
  if (layout.gathers) layout.rows_bytes = scratch_bytes(layout.block * layout.a_step, element_size);
  if (!layout.dense_result) layout.offsets_bytes = scratch_bytes(layout.block, sizeof(std::int64_t));
  return layout;
}

/// Writes the offsets in y of rows [begin, end) of the product.
void write_row_offsets(const DirectConv& conv, std::int64_t begin, std::int64_t end, std::int64_t* out_offsets) {
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t wide = conv.wide.first + row % conv.wide.results * conv.wide.step;
    const std::int64_t line = row / conv.wide.results;
    const std::int64_t high = conv.high.first + line % conv.high.results * conv.high.step;
    const std::int64_t image = line / conv.high.results;
    *out_offsets++ = ((image * conv.out_height + high) * conv.out_width + wide) * conv.out_channels;
  }
}

/// The product of rows [begin, end), stored at a, with all panels of one group.
template <class T>
PanelProduct<T> product_of(const DirectConv& conv, const DirectOperands<T>& o, const Layout& layout, std::int64_t group, const T* a,
                           std::int64_t begin, std::int64_t end, const std::int64_t* offsets) {
  const std::int64_t column = group * conv.group_columns();
  const std::int64_t at = column + (offsets == nullptr ? begin * conv.out_channels : 0);
  PanelProduct<T> p;
  p.rows = end - begin;
  p.k = conv.k();
  p.columns = conv.group_columns();
  p.a = a;
  p.a_step = layout.a_step;
  p.panels = o.panels + group * panel_elements<T>(p.k, p.columns);
  p.y = o.y + at;
  p.y_step = conv.out_channels;
  p.y_offsets = offsets;
  p.bias = o.bias == nullptr ? nullptr : o.bias + column;
  p.residual = o.residual == nullptr ? nullptr : o.residual + at;
  p.activation = o.activation;
  return p;
}

/// The part of p with rows [begin, end) and panels [first, last).
template <class T>
PanelProduct<T> part_of(const PanelProduct<T>& p, std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t last) {
  const std::int64_t column = first * panel_width<T>;
  const std::int64_t at = column + (p.y_offsets == nullptr ? begin * p.y_step : 0);
  PanelProduct<T> part = p;
  part.rows = end - begin;
  part.columns = std::min(last * panel_width<T>, p.columns) - column;
  part.a += begin * p.a_step;
  part.panels += first * panel_step<T>(p.k);
  if (last < panel_count<T>(p.columns)) part.next_panels = p.panels + last * panel_step<T>(p.k);
  part.y += at;
  if (p.y_offsets != nullptr) part.y_offsets += begin;
  if (p.bias != nullptr) part.bias += column;
  if (p.residual != nullptr) part.residual += at;
  return part;
}

/// Each thread gathers a block of rows and multiplies it with all panels.
template <class T>
void by_rows(const DirectConv& conv, const DirectOperands<T>& o, const Layout& layout, const sdk::Host& host, char* scratch) {
  // Blocks of nearly equal size, as many for each thread.
  const std::int64_t rows = conv.rows();
  const std::int64_t blocks = std::min(rows, sdk::round_up(sdk::ceil_div(rows, layout.block), layout.workers));
  for_each_task(host, blocks, [&](std::int64_t block, std::int64_t worker) {
    const std::int64_t begin = block * rows / blocks;
    const std::int64_t end = (block + 1) * rows / blocks;
    char* const mine = scratch + static_cast<std::size_t>(worker) * (layout.rows_bytes + layout.offsets_bytes);
    T* const gathered = reinterpret_cast<T*>(mine);
    std::int64_t* const offsets = layout.dense_result ? nullptr : reinterpret_cast<std::int64_t*>(mine + layout.rows_bytes);
    if (offsets != nullptr) write_row_offsets(conv, begin, end, offsets);
    for (std::int64_t group = 0; group < conv.groups; ++group) {
      if (layout.gathers) gather_rows(conv, o, group, begin, end, gathered, layout.a_step);
      const T* const a = layout.gathers ? gathered : o.x + begin * layout.a_step;
      multiply_panels(product_of(conv, o, layout, group, a, begin, end, offsets));
    }
  });
}

/// All rows are gathered, then the threads divide panels and rows: for few rows and many weights, which are read only once.
template <class T>
void by_panels(const DirectConv& conv, const DirectOperands<T>& o, const Layout& layout, const sdk::Host& host, char* scratch) {
  const std::int64_t rows = conv.rows();
  T* const gathered = reinterpret_cast<T*>(scratch);
  std::int64_t* const offsets = layout.dense_result ? nullptr : reinterpret_cast<std::int64_t*>(scratch + layout.rows_bytes);
  if (offsets != nullptr) write_row_offsets(conv, 0, rows, offsets);
  const std::int64_t panels = panel_count<T>(conv.group_columns());
  const std::int64_t target_tasks = 4 * layout.workers;
  const std::int64_t parts = std::clamp<std::int64_t>((target_tasks + panels - 1) / panels, 1, (rows + row_multiple - 1) / row_multiple);
  for (std::int64_t group = 0; group < conv.groups; ++group) {
    if (layout.gathers) {
      host.parallel_for(rows, std::max<std::int64_t>(1, 32 * 1024 / std::max<std::int64_t>(1, layout.a_step)),
                        [&](std::int64_t begin, std::int64_t end) {
                          gather_rows(conv, o, group, begin, end, gathered + begin * layout.a_step, layout.a_step);
                        });
    }
    const PanelProduct<T> whole = product_of(conv, o, layout, group, layout.gathers ? gathered : o.x, 0, rows, offsets);
    // Row parts of the same panel are consecutive, so that the panel is in the cache for all but the first.
    host.parallel_for(panels * parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t panel = i / parts;
        const std::int64_t part = i % parts;
        multiply_panels(part_of(whole, part * rows / parts, (part + 1) * rows / parts, panel, panel + 1));
      }
    });
  }
}

}  // namespace

std::size_t direct_scratch(const DirectConv& conv, const sdk::Host& host, std::size_t element_size) {
  if (element_size == sizeof(sdk::BFloat16) && reads_bands(conv, host)) return bands_scratch(conv, host);
  return layout_of(conv, host, element_size).bytes();
}

template <class T>
void direct_conv(const DirectConv& conv, const DirectOperands<T>& operands, const sdk::Host& host, void* scratch) {
  if (conv.rows() == 0 || conv.group_columns() == 0) return;
  if constexpr (std::is_same_v<T, sdk::BFloat16>) {
    if (reads_bands(conv, host)) return bands_conv(conv, operands, host, static_cast<char*>(scratch));
  }
  const Layout layout = layout_of(conv, host, sizeof(T));
  if (layout.shared) {
    by_panels(conv, operands, layout, host, static_cast<char*>(scratch));
  } else {
    by_rows(conv, operands, layout, host, static_cast<char*>(scratch));
  }
}

template void direct_conv(const DirectConv&, const DirectOperands<sdk::BFloat16>&, const sdk::Host&, void*);
template void direct_conv(const DirectConv&, const DirectOperands<float>&, const sdk::Host&, void*);
template void direct_conv(const DirectConv&, const DirectOperands<double>&, const sdk::Host&, void*);

}  // namespace tenon::openblas
#endif
