// SPDX-License-Identifier: Apache-2.0
#include "quantize/integer_conv.h"

#include <algorithm>
#include <cstring>

#include <tenon/sdk/rounding.h>
#include <tenon/sdk/scratch_arena.h>

#include "conv/conv_direct_forms.h"
#include "conv/conv_geometry.h"
#include "conv/image_bands.h"
#include "quantize/integer_conv_layout.h"
#include "quantize/integer_depthwise.h"
#include "quantize/integer_gather.h"
#include "workers.h"

namespace tenon::openblas {
namespace {

// Bytes of gathered rows worth a thread.
constexpr std::int64_t gather_grain = 64 * 1024;

ConvGeometry geometry_of(const sdk::Call& call, const IntegerOperands& at) {
  return conv_geometry(call.inputs[at.a], call.inputs[at.b], call.outputs[0], call.attr<tenon_attributes_conv>());
}

bool is_packed(const sdk::Call& call, const IntegerOperands& at) {
  return call.packed != nullptr && call.packed[at.b] != nullptr;
}

/// Whether the pixels of x serve as rows.
bool in_place(const ConvGeometry& g) {
  const bool same_pixels = g.taps() == 1 && g.stride_height == 1 && g.stride_width == 1 && g.pad_top == 0 && g.pad_left == 0 &&
                           g.out_height == g.height && g.out_width == g.width;
  return same_pixels && g.groups == 1 && padded_k(g.channels) == g.channels;
}

/// What zero points and scales make of the sums of a column, for whole panels of all groups.
struct ColumnTerms {
  std::int32_t *column_factor, *bias = nullptr;
  float* factor = nullptr;

  ColumnTerms(sdk::ScratchArena& arena, const ConvGeometry& g, const IntegerOperands& at) {
    const std::int64_t columns = g.groups * padded_columns(g.group_out_channels());
    column_factor = arena.allocate<std::int32_t>(columns);
    if (!at.requantised) return;
    bias = arena.allocate<std::int32_t>(columns);
    factor = arena.allocate<float>(columns);
  }
};

/// The scratch memory of products with lines.
struct LineMemory {
  std::int64_t* a_offsets;             ///< of the parts of a row
  std::int32_t *row_sums, *part_sums;  ///< of each worker's rows
  std::uint8_t* copies;                ///< of each worker

  LineMemory(sdk::ScratchArena& arena, const ConvGeometry& g, const IntegerLineLayout& layout) {
    a_offsets = arena.allocate<std::int64_t>(layout.parts.count);
    row_sums = arena.allocate<std::int32_t>(layout.workers * layout.height * g.out_width);
    part_sums = arena.allocate<std::int32_t>(layout.workers * g.out_width);
    copies = arena.allocate<std::uint8_t>(layout.workers * copy_bytes(g, layout));
  }
  static std::int64_t copy_bytes(const ConvGeometry& g, const IntegerLineLayout& layout) {
    return sdk::round_up(IntegerLineLayout::copied(g, layout.height) * layout.step, 64);
  }
};

/// The scratch memory of products with rows of memory.
struct RowMemory {
  std::int32_t* row_sums;
  std::uint8_t* gathered = nullptr;  ///< rows of each worker

  RowMemory(sdk::ScratchArena& arena, const ConvGeometry& g, const IntegerRowLayout& layout) {
    row_sums = arena.allocate<std::int32_t>(layout.workers * layout.block);
    if (!in_place(g)) gathered = arena.allocate<std::uint8_t>(layout.workers * layout.block * layout.step);
  }
};

/// That of products with bands.
struct BandMemory {
  std::int64_t *a_offsets, *y_offsets;  ///< of the rows of one image
  std::int32_t *row_sums, *part_sums;   ///< of the rows of a band of each worker
  std::uint8_t* bands;                  ///< of each worker

  BandMemory(sdk::ScratchArena& arena, const DirectConv& conv, const Band& band, std::int64_t workers) {
    a_offsets = arena.allocate<std::int64_t>(conv.k() / band_pixel_bytes);
    y_offsets = arena.allocate<std::int64_t>(conv.high.results * band.width);
    row_sums = arena.allocate<std::int32_t>(workers * band.lines * band.width);
    part_sums = arena.allocate<std::int32_t>(workers * band.lines * band.width);
    bands = arena.allocate<std::uint8_t>(workers * band.bytes());
  }
};

/// A call with what its products share.
class Convolution {
 public:
  Convolution(const ConvGeometry& g, const sdk::Call& call, const IntegerOperands& at, const void* packed, sdk::ScratchArena& arena)
      : g_(g),
        call_(call),
        at_(at),
        packed_(static_cast<const char*>(packed)),
        terms_(arena, g, at),
        x_(call.input<std::uint8_t>(at.a)),
        x_signed_(call.inputs[at.a].dtype == TENON_DTYPE_I8),
        row_factor_(-zero_point_at(call, at.a_zero_point, 0)) {
    const std::int64_t columns = g.group_out_channels(), padded = padded_columns(columns);
    for (std::int64_t group = 0; group < g.groups; ++group) {
      const bool corrects = fill_column_factors(call, at, group * columns, columns, terms_.column_factor + group * padded);
      corrects_columns_ = corrects_columns_ || corrects;
    }
    if (!at.requantised) return;
    requantisation_ = requantisation_of(call);
    requantisation_.y_step = g.out_channels;
    for (std::int64_t group = 0; group < g.groups; ++group) {
      fill_requantisation(call, at, group * columns, columns, panels_of(group).column_sums, terms_.bias + group * padded,
                          terms_.factor + group * padded);
    }
  }

  void by_rows(sdk::ScratchArena& arena) const;
  void by_lines(sdk::ScratchArena& arena) const;
  void by_bands(sdk::ScratchArena& arena) const;

 private:
  const ConvGeometry& g_;
  const sdk::Call& call_;
  const IntegerOperands& at_;
  const char* packed_;
  ColumnTerms terms_;
  const std::uint8_t* x_;
  bool x_signed_;
  std::int32_t row_factor_;
  bool corrects_columns_ = false;
  IntegerRequantisation requantisation_;

  std::uint8_t padding() const { return static_cast<std::uint8_t>(-row_factor_); }
  IntegerPanels panels_of(std::int64_t group) const {
    const std::int64_t k = integer_conv_packed_k(g_, call_.host), columns = g_.group_out_channels();
    return integer_panels_at(packed_ + group * static_cast<std::int64_t>(integer_panels_bytes(k, columns)), k, columns);
  }
  /// All columns of a group; `first` is the first row's pixel of y. The rows are not set.
  IntegerTiles product_of(std::int64_t group, std::int64_t first) const {
    const std::int64_t columns = g_.group_out_channels(), padded = padded_columns(columns);
    const IntegerPanels panels = panels_of(group);
    IntegerTiles product;
    product.k = integer_conv_packed_k(g_, call_.host);
    product.columns = columns;
    product.a_signed = x_signed_;
    product.panels = panels.panels;
    product.row_factor = &row_factor_;
    product.column_sums = panels.column_sums;
    const std::int64_t at = first * g_.out_channels + group * columns;
    if (at_.requantised) {
      product.requantisation = requantisation_;
      product.requantisation.bias = terms_.bias + group * padded;
      product.requantisation.factor = terms_.factor + group * padded;
      product.requantisation.y = call_.output<std::uint8_t>(0) + at;
    } else {
      product.y = call_.output<std::int32_t>(0) + at;
      product.y_step = g_.out_channels;
    }
    if (corrects_columns_) product.column_factor = terms_.column_factor + group * padded;
    return product;
  }
  /// Row sums of a - a_zero_point from those of a.
  void shift_sums(std::int32_t* sums, std::int64_t rows) const {
    for (std::int64_t i = 0; i < rows; ++i) sums[i] += static_cast<std::int32_t>(g_.k() * row_factor_);
  }
  /// Row sums of a - a_zero_point for rows in parts, part p at a + a_offsets[p]; `terms` is memory for those of a part.
  void sum_rows_of_parts(const std::uint8_t* a, std::int64_t a_step, std::int64_t rows, const IntegerRowParts& parts,
                         const std::int64_t* a_offsets, std::int32_t* terms, std::int32_t* out_sums) const {
    std::fill_n(out_sums, rows, 0);
    for (std::int64_t part = 0; part < parts.count; ++part) {
      sum_integer_rows(a + a_offsets[part], x_signed_, a_step, rows, parts.filled, terms);
      for (std::int64_t i = 0; i < rows; ++i) out_sums[i] += terms[i];
    }
    shift_sums(out_sums, rows);
  }
};

void Convolution::by_rows(sdk::ScratchArena& arena) const {
  const IntegerRowLayout layout = integer_row_layout(g_, call_.host);
  const std::int64_t rows = g_.rows();
  const RowMemory memory(arena, g_, layout);
  /// The product of rows [begin, end) of a group, of which `own` has the gathered ones; `sums` is memory for sums of rows.
  const auto product_of_rows = [&](std::int64_t group, std::int64_t begin, std::int64_t end, const std::uint8_t* own, std::int32_t* sums) {
    IntegerTiles product = product_of(group, begin);
    product.rows = end - begin;
    product.a = own != nullptr ? own : x_ + begin * g_.channels;
    product.a_step = own != nullptr ? layout.step : g_.channels;
    if (corrects_columns_) {
      sum_integer_rows(product.a, x_signed_, product.a_step, product.rows, product.k, sums);
      shift_sums(sums, product.rows);
      product.row_sums = sums;
    }
    return product;
  };
  if (layout.by_panels) {
    if (memory.gathered != nullptr) {
      call_.host.parallel_for(rows, std::max<std::int64_t>(1, gather_grain / layout.step), [&](std::int64_t begin, std::int64_t end) {
        gather_integer_rows(g_, x_, 0, padding(), begin, end, layout.step, memory.gathered + begin * layout.step);
      });
    }
    return multiply_integers(&call_.host, product_of_rows(0, 0, rows, memory.gathered, memory.row_sums));
  }
  for_each_task(call_.host, sdk::ceil_div(rows, layout.block), [&](std::int64_t block, std::int64_t worker) {
    const std::int64_t begin = block * layout.block, end = std::min(rows, begin + layout.block);
    std::uint8_t* const own = memory.gathered == nullptr ? nullptr : memory.gathered + worker * layout.block * layout.step;
    for (std::int64_t group = 0; group < g_.groups; ++group) {
      if (own != nullptr) gather_integer_rows(g_, x_, group, padding(), begin, end, layout.step, own);
      multiply_integer_tiles(product_of_rows(group, begin, end, own, memory.row_sums + worker * layout.block));
    }
  });
}

/// Copies the lines of an image that results from line `first` on read.
void copy_lines(const ConvGeometry& g, const IntegerLineLayout& layout, const std::uint8_t* image, std::uint8_t padding, std::int64_t first,
                std::int64_t lines, std::uint8_t* out) {
  const std::int64_t begin = std::clamp<std::int64_t>(g.pad_left, 0, layout.width);  // of the image in a copied line
  const std::int64_t end = std::clamp<std::int64_t>(g.pad_left + g.width, begin, layout.width);
  const std::int64_t top = first * g.stride_height - g.pad_top;
  for (std::int64_t i = 0; i < IntegerLineLayout::copied(g, lines); ++i, out += layout.step) {
    if (top + i < 0 || top + i >= g.height) {
      std::memset(out, padding, static_cast<std::size_t>(layout.step));
      continue;
    }
    const std::uint8_t* const from = image + ((top + i) * g.width + begin - g.pad_left) * g.channels;
    std::memset(out, padding, static_cast<std::size_t>(begin * g.channels));
    std::memcpy(out + begin * g.channels, from, static_cast<std::size_t>((end - begin) * g.channels));
    std::memset(out + end * g.channels, padding, static_cast<std::size_t>(layout.step - end * g.channels));
  }
}

void Convolution::by_lines(sdk::ScratchArena& arena) const {
  const IntegerLineLayout layout(g_, call_.host);
  const LineMemory memory(arena, g_, layout);
  // The parts of a line of taps are those of its taps, or one part.
  const std::int64_t of_line = layout.parts.count / g_.kernel_height, of_tap = std::max<std::int64_t>(1, of_line / g_.kernel_width);
  for (std::int64_t part = 0; part < layout.parts.count; ++part) {
    const std::int64_t high = part / of_line * g_.dilation_height, wide = part % of_line / of_tap * g_.dilation_width;
    memory.a_offsets[part] = high * layout.step + wide * g_.channels + part % of_tap * integer_part_bytes;
  }
  const std::int64_t lines = g_.images * g_.out_height;
  /// The product of a group with `count` lines of results from `first` on, of one image, whose copies are at `own`.
  const auto product_of_lines = [&](std::int64_t group, std::int64_t first, std::int64_t count, const std::uint8_t* own,
                                    std::int64_t worker) {
    IntegerTiles product = product_of(group, first * g_.out_width);
    product.rows = count * g_.out_width;
    product.a = own + group * g_.group_channels();
    product.a_step = g_.stride_width * g_.channels;
    product.a_offsets = memory.a_offsets;
    product.part = layout.parts.size;
    product.line_rows = g_.out_width;
    product.line_step = g_.stride_height * layout.step;
    if (!corrects_columns_) return product;
    std::int32_t* const sums = memory.row_sums + worker * layout.height * g_.out_width;
    std::int32_t* const terms = memory.part_sums + worker * g_.out_width;
    for (std::int64_t line = 0; line < count; ++line) {
      sum_rows_of_parts(product.a + line * product.line_step, product.a_step, g_.out_width, layout.parts, memory.a_offsets, terms,
                        sums + line * g_.out_width);
    }
    product.row_sums = sums;
    return product;
  };
  for_each_task(call_.host, layout.blocks, [&](std::int64_t block, std::int64_t worker) {
    std::uint8_t* const own = memory.copies + worker * LineMemory::copy_bytes(g_, layout);
    const std::int64_t end = (block + 1) * lines / layout.blocks;
    for (std::int64_t line = block * lines / layout.blocks; line < end;) {
      const std::int64_t image = line / g_.out_height, count = std::min(end, (image + 1) * g_.out_height) - line;
      copy_lines(g_, layout, x_ + image * g_.pixels() * g_.channels, padding(), line % g_.out_height, count, own);
      for (std::int64_t group = 0; group < g_.groups; ++group) multiply_integer_tiles(product_of_lines(group, line, count, own, worker));
      line += count;
    }
  });
}

void Convolution::by_bands(sdk::ScratchArena& arena) const {
  const DirectConv conv = forward_conv(g_);
  const BandLayout layout(conv, 1, call_.host);
  const Band band(conv, 1, layout.lines);
  const BandMemory memory(arena, conv, band, layout.workers);
  write_tap_offsets(conv, band, 1, memory.a_offsets);
  write_result_offsets(conv, band, memory.y_offsets);
  const std::int64_t parts = band.parts / g_.groups, results = conv.high.results;
  /// The product of `lines` lines from line `first` of an image on, for which `worker` has filled its band.
  const auto product_of_lines = [&](std::int64_t image, std::int64_t first, std::int64_t lines, std::int64_t group, std::int64_t worker) {
    IntegerTiles product = product_of(group, image * g_.out_pixels());
    product.rows = band.rows(conv, lines);
    product.a = memory.bands + worker * band.bytes() + group * parts * band.part_step;
    product.a_step = band_pixel_bytes;
    product.a_offsets = memory.a_offsets;
    product.y_offsets = memory.y_offsets + first * band.width;
    if (corrects_columns_) {
      std::int32_t* const sums = memory.row_sums + worker * band.lines * band.width;
      std::int32_t* const terms = memory.part_sums + worker * band.lines * band.width;
      const IntegerRowParts row{g_.k() / integer_part_bytes, integer_part_bytes, integer_part_bytes};
      sum_rows_of_parts(product.a, product.a_step, product.rows, row, memory.a_offsets, terms, sums);
      product.row_sums = sums;
    }
    return product;
  };
  const auto fill = [&](std::int64_t image, std::int64_t first, std::int64_t lines, std::int64_t part, std::int64_t end,
                        std::int64_t worker) {
    fill_band(conv, band, x_ + image * g_.pixels() * g_.channels, padding(), first, lines, part, end, memory.bands + worker * band.bytes());
  };
  if (!layout.shared) {
    for_each_task(call_.host, g_.images * layout.blocks, [&](std::int64_t task, std::int64_t worker) {
      const std::int64_t image = task / layout.blocks, block = task % layout.blocks;
      const std::int64_t first = block * results / layout.blocks, lines = (block + 1) * results / layout.blocks - first;
      fill(image, first, lines, 0, band.parts, worker);
      for (std::int64_t group = 0; group < g_.groups; ++group) multiply_integer_tiles(product_of_lines(image, first, lines, group, worker));
    });
    return;
  }
  for (std::int64_t image = 0; image < g_.images; ++image) {
    const std::int64_t part_bytes = band.part_step;
    call_.host.parallel_for(band.parts, std::max<std::int64_t>(1, gather_grain / part_bytes),
                            [&](std::int64_t begin, std::int64_t end) { fill(image, 0, results, begin, end, 0); });
    for (std::int64_t group = 0; group < g_.groups; ++group) multiply_integers(&call_.host, product_of_lines(image, 0, results, group, 0));
  }
}

}  // namespace

std::size_t integer_conv_pack_size(const sdk::Call& call, const IntegerOperands& at, std::uint32_t input) {
  return input == at.b ? integer_conv_weight_bytes(geometry_of(call, at), call.host) : 0;
}

void pack_integer_conv(const sdk::Call& call, const IntegerOperands& at, void* out_packed) {
  const ConvGeometry g = geometry_of(call, at);
  const std::uint8_t* const w = call.input<std::uint8_t>(at.b);
  const tenon_dtype dtype = call.inputs[at.b].dtype;
  if (g.depthwise()) return pack_integer_depthwise(g, w, dtype, out_packed);
  const std::size_t group_bytes = integer_panels_bytes(integer_conv_packed_k(g, call.host), g.group_out_channels());
  const bool bands = integer_rows(g, at, call.host) == IntegerRows::bands;
  const std::int64_t line_step = integer_line_step(g, call.host);
  for (std::int64_t group = 0; group < g.groups; ++group) {
    PanelSource<std::uint8_t> source = forward_panels(g, w, group);
    if (bands) source.inner_block = band_pixel_bytes;
    pack_integer_panels(&call.host, source, flip_to_signed(dtype),
                        static_cast<char*>(out_packed) + static_cast<std::size_t>(group) * group_bytes, line_step);
  }
}

std::string integer_conv_form(const sdk::Call& call, const IntegerOperands& at) {
  const ConvGeometry g = geometry_of(call, at);
  if (g.depthwise()) return "integer depthwise";
  if (const std::int64_t step = integer_line_step(g, call.host); step != 0) return "integer lines, parts of " + std::to_string(step);
  const bool bands = integer_rows(g, at, call.host) == IntegerRows::bands;
  return (bands ? "integer bands, groups " : "integer direct, groups ") + std::to_string(g.groups);
}

std::size_t integer_conv_scratch(const sdk::Call& call, const IntegerOperands& at) {
  if (call.outputs[0].count == 0) return 0;
  const ConvGeometry g = geometry_of(call, at);
  const std::size_t weights = is_packed(call, at) ? 0 : integer_conv_weight_bytes(g, call.host);
  if (g.depthwise()) return weights + integer_depthwise_scratch(g, call, at);
  sdk::ScratchArena arena(nullptr);
  const ColumnTerms terms(arena, g, at);
  switch (integer_rows(g, at, call.host)) {
    case IntegerRows::bands: {
      const DirectConv conv = forward_conv(g);
      const BandLayout layout(conv, 1, call.host);
      const BandMemory memory(arena, conv, Band(conv, 1, layout.lines), layout.workers);
      break;
    }
    case IntegerRows::lines: {
      const LineMemory memory(arena, g, IntegerLineLayout(g, call.host));
      break;
    }
    case IntegerRows::memory: {
      const RowMemory memory(arena, g, integer_row_layout(g, call.host));
      break;
    }
  }
  return weights + arena.required_bytes();
}

void integer_conv(const sdk::Call& call, const IntegerOperands& at) {
  const ConvGeometry g = geometry_of(call, at);
  char* scratch = static_cast<char*>(call.scratch);
  const void* packed = is_packed(call, at) ? call.packed[at.b] : scratch;
  if (!is_packed(call, at)) {
    pack_integer_conv(call, at, scratch);
    scratch += integer_conv_weight_bytes(g, call.host);
  }
  if (g.depthwise()) return integer_depthwise(g, call, at, packed, scratch);
  sdk::ScratchArena arena(scratch);
  const Convolution convolution(g, call, at, packed, arena);
  switch (integer_rows(g, at, call.host)) {
    case IntegerRows::bands:
      return convolution.by_bands(arena);
    case IntegerRows::lines:
      return convolution.by_lines(arena);
    case IntegerRows::memory:
      return convolution.by_rows(arena);
  }
}

}  // namespace tenon::openblas
