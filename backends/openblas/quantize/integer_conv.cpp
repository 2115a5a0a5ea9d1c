// SPDX-License-Identifier: Apache-2.0
#include "quantize/integer_conv.h"

#include <algorithm>
#include <cstring>

#include <tenon/sdk/rounding.h>
#include <tenon/sdk/scratch_arena.h>

#include "conv/conv_direct.h"
#include "conv/conv_geometry.h"
#include "quantize/integer_depthwise.h"
#include "workers.h"

namespace tenon::openblas {
namespace {

// Bytes of gathered rows that stay in L2 while panels stream through it.
constexpr std::int64_t block_bytes = 256 * 1024;
// Blocks have a multiple of this number of rows: whole register tiles.
constexpr std::int64_t row_multiple = 32;
// Rows of a block of whole lines.
constexpr std::int64_t band_rows = 512;
// Bytes of gathered rows worth a thread.
constexpr std::int64_t gather_grain = 64 * 1024;
// Multiply-adds worth handing to a thread.
constexpr std::int64_t smallest_piece = 2'000'000;

std::int64_t k_of(const ConvGeometry& g) {
  return g.taps() * g.group_channels();
}
std::int64_t rows_of(const ConvGeometry& g) {
  return g.images * g.out_pixels();
}

ConvGeometry geometry_of(const sdk::Call& call, const IntegerOperands& at) {
  return conv_geometry(call.inputs[at.a], call.inputs[at.b], call.outputs[0], call.attr<tenon_attributes_conv>());
}

bool is_packed(const sdk::Call& call, const IntegerOperands& at) {
  return call.packed != nullptr && call.packed[at.b] != nullptr;
}

std::size_t weight_bytes(const ConvGeometry& g) {
  const std::size_t bytes = g.depthwise() ? integer_depthwise_weight_bytes(g)
                                          : static_cast<std::size_t>(g.groups) * integer_panels_bytes(k_of(g), g.group_out_channels());
  return sdk::aligned_size(bytes, sdk::block_alignment);
}

/// Whether the pixels of x serve as rows.
bool in_place(const ConvGeometry& g) {
  const bool same_pixels = g.taps() == 1 && g.stride_height == 1 && g.stride_width == 1 && g.pad_top == 0 && g.pad_left == 0 &&
                           g.out_height == g.height && g.out_width == g.width;
  return same_pixels && g.groups == 1 && padded_k(g.channels) == g.channels;
}

/// How the work is divided; it changes no bit of the result.
struct Layout {
  std::int64_t block = 1;  ///< rows of a block
  std::int64_t step = 0;   ///< bytes between rows
  std::int64_t workers = 1;
  /// Threads share the rows and divide the panels, of weights that are larger than the rows: each weight is then read once.
  bool by_panels = false;
};

/// Bytes of all rows up to which threads may share them.
constexpr std::int64_t shared_bytes = 1024 * 1024;

Layout layout_of(const ConvGeometry& g, const sdk::Host& host) {
  Layout layout;
  const std::int64_t rows = rows_of(g);
  layout.workers = worker_count(host, rows);
  layout.step = padded_k(k_of(g));
  // Rows a multiple of 4 KiB apart would map to the same L1 cache set.
  if (layout.step % 4096 == 0) layout.step += 64;
  const std::int64_t fitting = std::max(row_multiple, block_bytes / layout.step / row_multiple * row_multiple);
  const std::int64_t fair = sdk::round_up(sdk::ceil_div(rows, 8 * layout.workers), row_multiple);
  const std::int64_t row_work = k_of(g) * g.out_channels;
  const std::int64_t worthwhile = sdk::round_up(smallest_piece / std::max<std::int64_t>(1, row_work) + 1, row_multiple);
  layout.block = std::min({fitting, std::max(fair, worthwhile), std::max<std::int64_t>(rows, 1)});
  const bool parts = padded_columns(g.out_channels) / integer_panel_width >= 2 * layout.workers;
  layout.by_panels = g.groups == 1 && parts && rows < g.out_channels && rows * layout.step <= shared_bytes && host.thread_count() > 1;
  if (layout.by_panels) {
    layout.block = rows;
    layout.workers = 1;
  }
  return layout;
}

/// A part of the image with its padding, whose pixels are the rows of the product for every tap of the kernel, a constant distance away.
/// Rows run over lines of the padded width; those between the lines are computed and dropped.
struct Band {
  std::int64_t width = 0;   ///< padded pixels of a line
  std::int64_t lines = 0;   ///< of y in a block
  std::int64_t blocks = 0;  ///< of an image

  explicit Band(const ConvGeometry& g) : width(g.out_width + g.kernel_width - 1) {
    lines = std::clamp<std::int64_t>(band_rows / width, 1, g.out_height);
    blocks = sdk::ceil_div(g.out_height, lines);
  }
  std::int64_t rows(const ConvGeometry& g, std::int64_t block_lines) const { return (block_lines - 1) * width + g.out_width; }
  std::int64_t bytes(const ConvGeometry& g) const { return (lines + g.kernel_height - 1) * width * g.channels; }
  std::int64_t steps(const ConvGeometry& g) const { return k_of(g) / 64; }
};

/// Whether the tile registers read taps from a band, instead of rows that are gathered: of lines that are wide enough for the rows between
/// them to be few.
bool by_bands(const ConvGeometry& g, const IntegerOperands& at, const Layout& layout) {
  const bool slides = g.taps() > 1 && g.stride_height == 1 && g.stride_width == 1 && g.dilation_height == 1 && g.dilation_width == 1;
  return at.requantised && slides && g.groups == 1 && g.channels % 64 == 0 && !layout.by_panels &&
         g.out_width >= 10 * (g.kernel_width - 1) && integer_tiles_take_offsets(g.out_width);
}

/// The parts of the scratch memory.
struct Scratch {
  std::int32_t *column_factor, *row_sums, *bias = nullptr;
  float* factor = nullptr;
  std::uint8_t* gathered = nullptr;  ///< rows, or bands, of each worker
  std::int64_t *a_offsets = nullptr, *y_offsets = nullptr;

  Scratch(sdk::ScratchArena& arena, const ConvGeometry& g, const IntegerOperands& at, const Layout& layout) {
    const std::int64_t columns = g.groups * padded_columns(g.group_out_channels());
    column_factor = arena.allocate<std::int32_t>(columns);
    row_sums = arena.allocate<std::int32_t>(layout.workers * layout.block);
    if (at.requantised) {
      bias = arena.allocate<std::int32_t>(columns);
      factor = arena.allocate<float>(columns);
    }
    std::int64_t bytes = in_place(g) ? 0 : layout.block * layout.step;
    if (by_bands(g, at, layout)) {
      const Band band(g);
      a_offsets = arena.allocate<std::int64_t>(band.steps(g));
      y_offsets = arena.allocate<std::int64_t>(band.rows(g, band.lines));
      bytes = std::max(bytes, band.bytes(g));  // rows are gathered if the weights have zero points
    }
    if (bytes > 0) gathered = arena.allocate<std::uint8_t>(layout.workers * bytes);
  }
};

/// Copies n bytes; the source has `readable` ones, the destination `writable`. A copy of 16 bytes costs less than a call of memcpy.
inline void copy_run(const std::uint8_t* from, std::int64_t n, std::int64_t readable, std::uint8_t* to, std::int64_t writable) {
  const std::int64_t whole = sdk::round_up(n, 16);
  if (n > 256 || whole > readable || whole > writable) {
    std::memcpy(to, from, static_cast<std::size_t>(n));
    return;
  }
  for (std::int64_t i = 0; i < whole; i += 16) std::memcpy(to + i, from + i, 16);
}

/// Gathers rows [begin, end) of the im2col matrix of one group, `step` bytes apart; `zero_point` stands for the padding. A run may be
/// written past its end, because the next one overwrites the excess.
void gather(const ConvGeometry& g, const std::uint8_t* x, std::int64_t group, std::uint8_t zero_point, std::int64_t begin, std::int64_t end,
            std::int64_t step, std::uint8_t* out) {
  const std::int64_t channels = g.group_channels();
  // Neighbouring taps are one run if they are contiguous in memory.
  const bool runs = g.dilation_width == 1 && g.groups == 1;
  const std::uint8_t* const source = x + group * channels;
  const std::uint8_t* const source_end = x + g.images * g.pixels() * g.channels;
  const std::uint8_t* const out_end = out + (end - begin) * step;
  std::int64_t column = begin % g.out_width, line = begin / g.out_width % g.out_height, image = begin / g.out_pixels();
  // Short runs of windows inside the image, as those of an image with three channels, are copied by vectors of 16 bytes.
  const std::int64_t run = g.kernel_width * channels, vectors = sdk::ceil_div(run, std::int64_t{16});
  const std::int64_t line_step = g.dilation_height * g.width * g.channels, tail = step - k_of(g);
  const bool is_short = runs && vectors <= 4 && tail <= 64;
  std::uint8_t* row_out = out;
  for (std::int64_t row = begin; row < end; ++row, row_out += step) {
    std::uint8_t* to = row_out;
    const std::int64_t left = column * g.stride_width - g.pad_left, top = line * g.stride_height - g.pad_top;
    const std::int64_t bottom = top + (g.kernel_height - 1) * g.dilation_height;
    const auto advance = [&] {
      if (++column < g.out_width) return;
      column = 0;
      if (++line < g.out_height) return;
      line = 0;
      ++image;
    };
    if (is_short && left >= 0 && left + g.kernel_width <= g.width && top >= 0 && bottom < g.height) {
      const std::uint8_t* from = source + ((image * g.height + top) * g.width + left) * g.channels;
      const bool readable = from + (g.kernel_height - 1) * line_step + 16 * vectors <= source_end;
      if (readable && row_out + (g.kernel_height - 1) * run + 16 * vectors <= out_end) {
        for (std::int64_t a = 0; a < g.kernel_height; ++a, from += line_step, to += run) {
          for (std::int64_t v = 0; v < vectors; ++v) std::memcpy(to + 16 * v, from + 16 * v, 16);
        }
        for (std::int64_t i = 0; i < tail; ++i) to[i] = 0;
        advance();
        continue;
      }
    }
    const auto fill = [&](std::int64_t n) {
      std::memset(to, zero_point, static_cast<std::size_t>(n));
      to += n;
    };
    const auto copy = [&](const std::uint8_t* from, std::int64_t n) {
      copy_run(from, n, source_end - from, to, out_end - to);
      to += n;
    };
    for (std::int64_t a = 0; a < g.kernel_height; ++a) {
      const std::int64_t high = line * g.stride_height - g.pad_top + a * g.dilation_height;
      if (high < 0 || high >= g.height) {
        fill(g.kernel_width * channels);
        continue;
      }
      const std::uint8_t* const from = source + (image * g.height + high) * g.width * g.channels;
      if (runs) {
        const std::int64_t first = std::clamp<std::int64_t>(left, 0, g.width);
        const std::int64_t last = std::clamp<std::int64_t>(left + g.kernel_width, first, g.width);
        const std::int64_t before = std::clamp<std::int64_t>(first - left, 0, g.kernel_width);
        if (before > 0) fill(before * channels);
        if (last > first) copy(from + first * channels, (last - first) * channels);
        const std::int64_t after = g.kernel_width - before - (last - first);
        if (after > 0) fill(after * channels);
        continue;
      }
      for (std::int64_t b = 0; b < g.kernel_width; ++b) {
        const std::int64_t wide = left + b * g.dilation_width;
        if (wide < 0 || wide >= g.width) {
          fill(channels);
        } else {
          copy(from + wide * g.channels, channels);
        }
      }
    }
    std::memset(to, 0, static_cast<std::size_t>(row_out + step - to));
    advance();
  }
}

/// Copies the lines that `lines` lines of y from `line` on read, with their padding.
void copy_band(const ConvGeometry& g, const Band& band, const std::uint8_t* image, std::uint8_t zero_point, std::int64_t line,
               std::int64_t lines, std::uint8_t* out) {
  const std::int64_t line_bytes = band.width * g.channels;
  const std::int64_t left = g.pad_left * g.channels, inner = std::min(g.width, band.width - g.pad_left) * g.channels;
  for (std::int64_t i = 0; i < lines + g.kernel_height - 1; ++i, out += line_bytes) {
    const std::int64_t high = line + i - g.pad_top;
    if (high < 0 || high >= g.height) {
      std::memset(out, zero_point, static_cast<std::size_t>(line_bytes));
      continue;
    }
    std::memset(out, zero_point, static_cast<std::size_t>(left));
    std::memcpy(out + left, image + high * g.width * g.channels, static_cast<std::size_t>(inner));
    std::memset(out + left + inner, zero_point, static_cast<std::size_t>(line_bytes - left - inner));
  }
}

/// By blocks of rows.
void convolve_rows(const ConvGeometry& g, const sdk::Call& call, const IntegerOperands& at, const void* packed, void* scratch) {
  const Layout layout = layout_of(g, call.host);
  const std::int64_t rows = rows_of(g), k = k_of(g), columns = g.group_out_channels(), padded = padded_columns(columns);
  sdk::ScratchArena arena(scratch);
  const Scratch memory(arena, g, at, layout);
  const auto group_bytes = static_cast<std::int64_t>(integer_panels_bytes(k, columns));
  const auto panels_of = [&](std::int64_t group) {
    return integer_panels_at(static_cast<const char*>(packed) + group * group_bytes, k, columns);
  };

  const std::int32_t x_zero_point = zero_point_at(call, at.a_zero_point, 0), row_factor = -x_zero_point;
  const bool x_signed = call.inputs[at.a].dtype == TENON_DTYPE_I8;
  bool corrects_columns = false;
  for (std::int64_t i = 0; i < g.groups * padded; ++i) {
    const std::int64_t group = i / padded, column = i % padded;
    memory.column_factor[i] = column < columns ? -zero_point_of_weights(call, at, group * columns + column) : 0;
    corrects_columns = corrects_columns || memory.column_factor[i] != 0;
  }
  IntegerRequantisation requantisation;
  if (at.requantised) {
    requantisation = requantisation_of(call);
    requantisation.y_step = g.out_channels;
    for (std::int64_t group = 0; group < g.groups; ++group) {
      fill_requantisation(call, at, group * columns, columns, panels_of(group).column_sums, memory.bias + group * padded,
                          memory.factor + group * padded);
    }
  }
  const std::uint8_t* const x = call.input<std::uint8_t>(at.a);
  /// The product of rows [begin, end) of a group, of which `own` has the gathered ones; `sums` is memory for sums of rows.
  const auto product_of = [&](std::int64_t group, std::int64_t begin, std::int64_t end, const std::uint8_t* own, std::int32_t* sums) {
    const IntegerPanels panels = panels_of(group);
    IntegerTiles product;
    product.rows = end - begin;
    product.k = k;
    product.columns = columns;
    product.a = own != nullptr ? own : x + begin * g.channels;
    product.a_signed = x_signed;
    product.a_step = own != nullptr ? layout.step : g.channels;
    product.panels = panels.panels;
    product.row_factor = &row_factor;
    product.column_sums = panels.column_sums;
    const std::int64_t first = begin * g.out_channels + group * columns;  // of y
    if (at.requantised) {
      product.requantisation = requantisation;
      product.requantisation.bias = memory.bias + group * padded;
      product.requantisation.factor = memory.factor + group * padded;
      product.requantisation.y = call.output<std::uint8_t>(0) + first;
    } else {
      product.y = call.output<std::int32_t>(0) + first;
      product.y_step = g.out_channels;
    }
    if (corrects_columns) {
      sum_integer_rows(product.a, x_signed, product.a_step, product.rows, k, sums);
      for (std::int64_t i = 0; i < product.rows; ++i) sums[i] += static_cast<std::int32_t>(k * row_factor);
      product.column_factor = memory.column_factor + group * padded;
      product.row_sums = sums;
    }
    return product;
  };
  const auto padding = static_cast<std::uint8_t>(x_zero_point);
  if (layout.by_panels) {
    if (memory.gathered != nullptr) {
      call.host.parallel_for(rows, std::max<std::int64_t>(1, gather_grain / layout.step), [&](std::int64_t begin, std::int64_t end) {
        gather(g, x, 0, padding, begin, end, layout.step, memory.gathered + begin * layout.step);
      });
    }
    return multiply_integers(&call.host, product_of(0, 0, rows, memory.gathered, memory.row_sums));
  }
  if (!corrects_columns && by_bands(g, at, layout)) {
    const Band band(g);
    for (std::int64_t step = 0; step < band.steps(g); ++step) {
      const std::int64_t tap = step * 64 / g.channels, channel = step * 64 % g.channels;
      memory.a_offsets[step] = (tap / g.kernel_width * band.width + tap % g.kernel_width) * g.channels + channel;
    }
    for (std::int64_t row = 0; row < band.rows(g, band.lines); ++row) {
      const std::int64_t line = row / band.width, column = row % band.width;
      memory.y_offsets[row] = column < g.out_width ? (line * g.out_width + column) * g.out_channels : -1;
    }
    for_each_task(call.host, g.images * band.blocks, [&](std::int64_t task, std::int64_t worker) {
      const std::int64_t image = task / band.blocks, line = task % band.blocks * band.lines;
      const std::int64_t lines = std::min(band.lines, g.out_height - line);
      std::uint8_t* const own = memory.gathered + worker * band.bytes(g);
      copy_band(g, band, x + image * g.pixels() * g.channels, padding, line, lines, own);
      const std::int64_t first = (image * g.out_height + line) * g.out_width;
      IntegerTiles product = product_of(0, first, first + band.rows(g, lines), own, nullptr);
      product.a_step = g.channels;
      product.a_offsets = memory.a_offsets;
      product.y_offsets = memory.y_offsets;
      multiply_integer_tiles(product);
    });
    return;
  }
  for_each_task(call.host, sdk::ceil_div(rows, layout.block), [&](std::int64_t block, std::int64_t worker) {
    const std::int64_t begin = block * layout.block, end = std::min(rows, begin + layout.block);
    std::uint8_t* const own = memory.gathered == nullptr ? nullptr : memory.gathered + worker * layout.block * layout.step;
    for (std::int64_t group = 0; group < g.groups; ++group) {
      if (own != nullptr) gather(g, x, group, padding, begin, end, layout.step, own);
      multiply_integer_tiles(product_of(group, begin, end, own, memory.row_sums + worker * layout.block));
    }
  });
}

}  // namespace

std::size_t integer_conv_pack_size(const sdk::Call& call, const IntegerOperands& at, std::uint32_t input) {
  return input == at.b ? weight_bytes(geometry_of(call, at)) : 0;
}

void pack_integer_conv(const sdk::Call& call, const IntegerOperands& at, void* out_packed) {
  const ConvGeometry g = geometry_of(call, at);
  const std::uint8_t* const w = call.input<std::uint8_t>(at.b);
  const tenon_dtype dtype = call.inputs[at.b].dtype;
  if (g.depthwise()) return pack_integer_depthwise(g, w, dtype, out_packed);
  const std::size_t group_bytes = integer_panels_bytes(k_of(g), g.group_out_channels());
  for (std::int64_t group = 0; group < g.groups; ++group) {
    pack_integer_panels(&call.host, forward_panels(g, w, group), flip_to_signed(dtype),
                        static_cast<char*>(out_packed) + static_cast<std::size_t>(group) * group_bytes);
  }
}

std::string integer_conv_form(const sdk::Call& call, const IntegerOperands& at) {
  const ConvGeometry g = geometry_of(call, at);
  return g.depthwise() ? "integer depthwise" : "integer direct, groups " + std::to_string(g.groups);
}

std::size_t integer_conv_scratch(const sdk::Call& call, const IntegerOperands& at) {
  const ConvGeometry g = geometry_of(call, at);
  const std::size_t weights = is_packed(call, at) ? 0 : weight_bytes(g);
  if (g.depthwise()) return weights + integer_depthwise_scratch(g, call, at);
  sdk::ScratchArena arena(nullptr);
  Scratch(arena, g, at, layout_of(g, call.host));
  return weights + arena.required_bytes();
}

void integer_conv(const sdk::Call& call, const IntegerOperands& at) {
  const ConvGeometry g = geometry_of(call, at);
  char* scratch = static_cast<char*>(call.scratch);
  const void* packed = is_packed(call, at) ? call.packed[at.b] : scratch;
  if (!is_packed(call, at)) {
    pack_integer_conv(call, at, scratch);
    scratch += weight_bytes(g);
  }
  if (g.depthwise()) return integer_depthwise(g, call, at, packed, scratch);
  convolve_rows(g, call, at, packed, scratch);
}

}  // namespace tenon::openblas
