// SPDX-License-Identifier: Apache-2.0
#include "quantize/integer_conv.h"

#include "simd/foreach_target.h"
#include "workers.h"

#include <algorithm>
#include <cstring>

#include <tenon/sdk/rounding.h>
#include <tenon/sdk/scratch_arena.h>

#include "conv/conv_direct.h"
#include "quantize/integer_products.h"
#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

// Plain loops, which the compiler vectorises for each instruction set.

/// sums[c] += (x[c] - zero_point) w[c]
void add_tap(const std::uint8_t* x, std::uint8_t flip, std::int16_t zero_point, const std::int16_t* w, std::int64_t channels,
             std::int32_t* sums) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto difference = static_cast<std::int16_t>(static_cast<std::uint8_t>(x[c] ^ flip) - zero_point);
    sums[c] += std::int32_t{difference} * std::int32_t{w[c]};
  }
}

void flip_bytes(std::uint8_t* bytes, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) bytes[i] ^= 0x80;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Bytes of gathered rows that stay in L2 while panels stream through it.
constexpr std::int64_t block_bytes = 256 * 1024;
// Blocks have a multiple of this number of rows: whole register tiles.
constexpr std::int64_t row_multiple = 32;
// Multiply-adds worth handing to a thread.
constexpr std::int64_t smallest_piece = 2'000'000;
// Multiply-adds of a depthwise convolution worth a thread.
constexpr std::int64_t depthwise_grain = 128 * 1024;

std::int64_t k_of(const ConvGeometry& g) {
  return g.taps() * g.group_channels();
}
std::int64_t rows_of(const ConvGeometry& g) {
  return g.images * g.out_pixels();
}

/// Whether the pixels of x serve as rows.
bool in_place(const ConvGeometry& g, tenon_dtype dtype) {
  const bool same_pixels = g.taps() == 1 && g.stride_height == 1 && g.stride_width == 1 && g.pad_top == 0 && g.pad_left == 0 &&
                           g.out_height == g.height && g.out_width == g.width;
  return same_pixels && g.groups == 1 && dtype == TENON_DTYPE_U8 && g.channels % integer_group == 0;
}

/// How the work is divided; it changes no bit of the result.
struct Layout {
  std::int64_t block = 1;  ///< rows of a block
  std::int64_t step = 0;   ///< bytes between rows
  std::int64_t workers = 1;
};

Layout layout_of(const ConvGeometry& g, const sdk::Host& host) {
  Layout layout;
  const std::int64_t rows = rows_of(g);
  layout.workers = worker_count(host, rows);
  layout.step = sdk::round_up(k_of(g), integer_group);
  // Rows a multiple of 4 KiB apart would map to the same L1 cache set.
  if (layout.step % 4096 == 0) layout.step += 64;
  const std::int64_t fitting = std::max(row_multiple, block_bytes / layout.step / row_multiple * row_multiple);
  const std::int64_t fair = sdk::round_up(sdk::ceil_div(rows, 8 * layout.workers), row_multiple);
  const std::int64_t row_work = k_of(g) * g.out_channels;
  const std::int64_t worthwhile = sdk::round_up(smallest_piece / std::max<std::int64_t>(1, row_work) + 1, row_multiple);
  layout.block = std::min({fitting, std::max(fair, worthwhile), std::max<std::int64_t>(rows, 1)});
  return layout;
}

/// Copies n bytes; the source has `readable` ones, the destination `writable`. A copy of 16 bytes costs less than a call of memcpy.
inline void copy_run(const std::uint8_t* from, std::int64_t n, std::int64_t readable, std::uint8_t* to, std::int64_t writable) {
  const std::int64_t whole = sdk::round_up(n, 16);
  if (n > 256 || whole > readable || whole > writable) {
    std::memcpy(to, from, static_cast<std::size_t>(n));
    return;
  }
  for (std::int64_t i = 0; i < whole; i += 16) std::memcpy(to + i, from + i, 16);
}

/// Gathers rows [begin, end) of the im2col matrix of one group, `step` bytes apart, as u8; `zero_point` stands for the padding.
/// A run may be written past its end, because the next one overwrites the excess.
void gather(const ConvGeometry& g, const std::uint8_t* x, std::int64_t group, std::uint8_t flip, std::uint8_t zero_point,
            std::int64_t begin, std::int64_t end, std::int64_t step, std::uint8_t* out) {
  const std::int64_t channels = g.group_channels();
  // Neighbouring taps are one run if they are contiguous in memory.
  const bool runs = g.dilation_width == 1 && g.groups == 1;
  const std::uint8_t* const source = x + group * channels;
  const std::uint8_t* const source_end = x + g.images * g.pixels() * g.channels;
  const std::uint8_t* const out_end = out + (end - begin) * step;
  const auto padding = static_cast<std::uint8_t>(zero_point ^ flip);  // flipped with the rest below
  std::int64_t column = begin % g.out_width, line = begin / g.out_width % g.out_height, image = begin / g.out_pixels();
  std::uint8_t* row_out = out;
  for (std::int64_t row = begin; row < end; ++row, row_out += step) {
    std::uint8_t* to = row_out;
    const std::int64_t left = column * g.stride_width - g.pad_left;
    const auto fill = [&](std::int64_t n) {
      std::memset(to, padding, static_cast<std::size_t>(n));
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
    if (++column < g.out_width) continue;
    column = 0;
    if (++line < g.out_height) continue;
    line = 0;
    ++image;
  }
  if (flip != 0) TENON_DISPATCH(flip_bytes)(out, (end - begin) * step);
}

/// By blocks of rows.
void convolve_rows(const ConvGeometry& g, const sdk::Call& call, const void* packed, void* scratch) {
  const tenon_dtype dtype = call.inputs[0].dtype, w_dtype = call.inputs[1].dtype;
  const Layout layout = layout_of(g, call.host);
  const bool gathers = !in_place(g, dtype);
  const std::int64_t rows = rows_of(g), k = k_of(g), columns = g.group_out_channels(), padded = padded_columns(columns);
  sdk::ScratchArena arena(scratch);
  auto* const column_factor = arena.allocate<std::int32_t>(g.groups * padded);
  auto* const sums = arena.allocate<std::int32_t>(layout.workers * layout.block);
  auto* const gathered = gathers ? arena.allocate<std::uint8_t>(layout.workers * layout.block * layout.step) : nullptr;

  const std::int32_t x_zero_point = zero_point_of_unsigned(call, 2, dtype, 0), row_factor = -x_zero_point;
  bool corrects_columns = false;
  for (std::int64_t i = 0; i < g.groups * padded; ++i) {
    const std::int64_t group = i / padded, column = i % padded;
    column_factor[i] = column < columns ? -zero_point_of_signed(call, 3, w_dtype, group * columns + column) : 0;
    corrects_columns = corrects_columns || column_factor[i] != 0;
  }
  const auto group_bytes = static_cast<std::int64_t>(integer_panels_bytes(k, columns));
  const std::uint8_t* const x = call.input<std::uint8_t>(0);
  for_each_task(call.host, sdk::ceil_div(rows, layout.block), [&](std::int64_t block, std::int64_t worker) {
    const std::int64_t begin = block * layout.block, end = std::min(rows, begin + layout.block);
    std::uint8_t* const own = gathers ? gathered + worker * layout.block * layout.step : nullptr;
    std::int32_t* const own_sums = sums + worker * layout.block;
    for (std::int64_t group = 0; group < g.groups; ++group) {
      if (gathers) {
        gather(g, x, group, flip_to_unsigned(dtype), static_cast<std::uint8_t>(x_zero_point), begin, end, layout.step, own);
      }
      const IntegerPanels panels = integer_panels_at(static_cast<const char*>(packed) + group * group_bytes, k, columns);
      IntegerTiles product;
      product.rows = end - begin;
      product.k = k;
      product.columns = columns;
      product.a = gathers ? own : x + begin * g.channels;
      product.a_step = gathers ? layout.step : g.channels;
      product.panels = panels.panels;
      product.y = call.output<std::int32_t>(0) + begin * g.out_channels + group * columns;
      product.y_step = g.out_channels;
      product.row_factor = &row_factor;
      product.column_sums = panels.column_sums;
      if (corrects_columns) {
        sum_integer_rows(product.a, product.a_step, product.rows, k, own_sums);
        for (std::int64_t i = 0; i < product.rows; ++i) own_sums[i] += static_cast<std::int32_t>(k * row_factor);
        product.column_factor = column_factor + group * padded;
        product.row_sums = own_sums;
      }
      multiply_integer_tiles(product);
    }
  });
}

/// Channel by channel: products of i16 with sums in i32.
void convolve_channels(const ConvGeometry& g, const sdk::Call& call, const void* packed, void* scratch) {
  const tenon_dtype dtype = call.inputs[0].dtype;
  const std::uint8_t flip = flip_to_unsigned(dtype);
  const auto x_zero_point = static_cast<std::int16_t>(zero_point_of_unsigned(call, 2, dtype, 0));
  const auto* const stored = static_cast<const std::int16_t*>(packed);
  sdk::ScratchArena arena(scratch);
  auto* const w = arena.allocate<std::int16_t>(g.weights());
  for (std::int64_t c = 0; c < g.channels; ++c) {
    const auto zero_point = static_cast<std::int16_t>(zero_point_of_signed(call, 3, TENON_DTYPE_I8, c));  // as stored
    for (std::int64_t t = 0; t < g.taps(); ++t) w[t * g.channels + c] = static_cast<std::int16_t>(stored[t * g.channels + c] - zero_point);
  }
  const std::int64_t work = std::max<std::int64_t>(1, g.out_width * g.channels * g.taps());
  call.host.parallel_for(
      g.images * g.out_height, std::max<std::int64_t>(1, depthwise_grain / work), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t image = i / g.out_height, line = i % g.out_height;
          for (std::int64_t column = 0; column < g.out_width; ++column) {
            std::int32_t* const y = call.output<std::int32_t>(0) + (i * g.out_width + column) * g.channels;
            std::memset(y, 0, static_cast<std::size_t>(g.channels) * sizeof *y);
            for (std::int64_t a = 0; a < g.kernel_height; ++a) {
              const std::int64_t high = line * g.stride_height - g.pad_top + a * g.dilation_height;
              if (high < 0 || high >= g.height) continue;
              for (std::int64_t b = 0; b < g.kernel_width; ++b) {
                const std::int64_t wide = column * g.stride_width - g.pad_left + b * g.dilation_width;
                if (wide < 0 || wide >= g.width) continue;
                const std::uint8_t* const x = call.input<std::uint8_t>(0) + ((image * g.height + high) * g.width + wide) * g.channels;
                TENON_DISPATCH(add_tap)(x, flip, x_zero_point, w + (a * g.kernel_width + b) * g.channels, g.channels, y);
              }
            }
          }
        }
      });
}

}  // namespace

std::size_t integer_conv_weight_bytes(const ConvGeometry& g) {
  if (g.depthwise()) return static_cast<std::size_t>(g.weights()) * sizeof(std::int16_t);
  return static_cast<std::size_t>(g.groups) * integer_panels_bytes(k_of(g), g.group_out_channels());
}

void pack_integer_conv_weights(const ConvGeometry& g, const sdk::Host& host, const std::uint8_t* w, tenon_dtype dtype, void* out_packed) {
  if (g.depthwise()) {
    auto* const out = static_cast<std::int16_t*>(out_packed);
    for (std::int64_t c = 0; c < g.channels; ++c) {
      for (std::int64_t t = 0; t < g.taps(); ++t) {
        const std::uint8_t element = w[c * g.taps() + t];
        out[t * g.channels + c] = dtype == TENON_DTYPE_I8 ? std::int16_t{static_cast<std::int8_t>(element)} : std::int16_t{element};
      }
    }
    return;
  }
  const std::size_t group_bytes = integer_panels_bytes(k_of(g), g.group_out_channels());
  for (std::int64_t group = 0; group < g.groups; ++group) {
    pack_integer_panels(host, forward_panels(g, w, group), flip_to_signed(dtype),
                        static_cast<char*>(out_packed) + static_cast<std::size_t>(group) * group_bytes);
  }
}

std::string integer_conv_form(const ConvGeometry& g) {
  return g.depthwise() ? "integer depthwise" : "integer direct, groups " + std::to_string(g.groups);
}

std::size_t integer_conv_scratch(const ConvGeometry& g, const sdk::Call& call) {
  sdk::ScratchArena arena(nullptr);
  if (g.depthwise()) {
    arena.allocate<std::int16_t>(g.weights());
    return arena.required_bytes();
  }
  const Layout layout = layout_of(g, call.host);
  arena.allocate<std::int32_t>(g.groups * padded_columns(g.group_out_channels()));
  arena.allocate<std::int32_t>(layout.workers * layout.block);
  if (!in_place(g, call.inputs[0].dtype)) arena.allocate<std::uint8_t>(layout.workers * layout.block * layout.step);
  return arena.required_bytes();
}

void integer_conv(const ConvGeometry& g, const sdk::Call& call, const void* packed, void* scratch) {
  if (g.depthwise()) return convolve_channels(g, call, packed, scratch);
  convolve_rows(g, call, packed, scratch);
}

}  // namespace tenon::openblas
#endif
