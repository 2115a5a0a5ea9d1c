// SPDX-License-Identifier: Apache-2.0
#include "quantize/integer_products.h"

#include "simd/foreach_target.h"

#include <algorithm>
#include <cstring>

#include <tenon/sdk/rounding.h>

#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

// Plain loops, which the compiler vectorises for each instruction set.

/// Four lines of up to one panel's width as groups of four bytes.
void interleave(const std::uint8_t* const (&lines)[integer_group], std::int64_t n, std::uint8_t flip, std::uint32_t* out) {
  const std::uint32_t flips = flip * 0x01010101u;
  const std::uint8_t *a = lines[0], *b = lines[1], *c = lines[2], *d = lines[3];
  for (std::int64_t j = 0; j < n; ++j) {
    const std::uint32_t low = a[j] | static_cast<std::uint32_t>(b[j]) << 8;
    const std::uint32_t high = c[j] | static_cast<std::uint32_t>(d[j]) << 8;
    out[j] = (low | high << 16) ^ flips;
  }
}

/// Groups of four neighbours of n columns, `step` bytes apart.
void gather_columns(const std::uint8_t* columns, std::int64_t step, std::int64_t n, std::int64_t groups, std::uint8_t flip,
                    std::uint32_t* out) {
  const std::uint32_t flips = flip * 0x01010101u;
  const auto word_at = [&](std::int64_t j, std::int64_t g) {
    std::uint32_t word;
    std::memcpy(&word, columns + j * step + g * integer_group, sizeof word);
    return word ^ flips;
  };
  std::int64_t whole_columns = 0, whole_groups = 0;
#if HWY_TARGET != HWY_SCALAR
  // Blocks of four columns and four groups are transposed in registers.
  const hn::FixedTag<std::uint32_t, 4> d;
  const hn::FixedTag<std::uint64_t, 2> pairs;
  const auto flipped = hn::Set(d, flips);
  whole_columns = n / 4 * 4;
  whole_groups = groups / 4 * 4;
  for (std::int64_t j = 0; j < whole_columns; j += 4) {
    for (std::int64_t g = 0; g < whole_groups; g += 4) {
      const auto column = [&](std::int64_t c) HWY_ATTR {
        return hn::Xor(hn::LoadU(d, reinterpret_cast<const std::uint32_t*>(columns + (j + c) * step + g * integer_group)), flipped);
      };
      const auto a = column(0), b = column(1), c = column(2), e = column(3);
      const auto ab = hn::BitCast(pairs, hn::InterleaveLower(d, a, b)), ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
      const auto ce = hn::BitCast(pairs, hn::InterleaveLower(d, c, e)), ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
      std::uint32_t* const to = out + g * integer_panel_width + j;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ce)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ce)), d, to + integer_panel_width);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, to + 2 * integer_panel_width);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, to + 3 * integer_panel_width);
    }
  }
#endif
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t g = j < whole_columns ? whole_groups : 0; g < groups; ++g) out[g * integer_panel_width + j] = word_at(j, g);
  }
}

/// The sums of the columns of a panel.
void sum_columns(const std::int8_t* panel, std::int64_t groups, std::int32_t* out_sums) {
  std::int32_t sums[integer_panel_width] = {};
  for (std::int64_t g = 0; g < groups; ++g, panel += integer_group * integer_panel_width) {
    for (std::int64_t j = 0; j < integer_panel_width; ++j) {
      sums[j] += panel[4 * j] + panel[4 * j + 1] + panel[4 * j + 2] + panel[4 * j + 3];
    }
  }
  for (std::int64_t j = 0; j < integer_panel_width; ++j) out_sums[j] = sums[j];
}

template <class A>
void sum_rows(const A* a, std::int64_t step, std::int64_t rows, std::int64_t k, std::int32_t* out_sums) {
  for (std::int64_t row = 0; row < rows; ++row, a += step) {
    std::int32_t sum = 0;
    for (std::int64_t i = 0; i < k; ++i) sum += a[i];
    out_sums[row] = sum;
  }
}

/// factor[j] = a_scale b_scale[j] / y_scale
void scale_factors(const float* b_scale, float a_scale, float y_scale, std::int64_t n, float* out_factor) {
  for (std::int64_t j = 0; j < n; ++j) out_factor[j] = a_scale * b_scale[j] / y_scale;
}

/// bias[j] -= a_zero_point column_sums[j]
void correct_bias(std::uint32_t a_zero_point, const std::int32_t* column_sums, std::int64_t n, std::int32_t* bias) {
  for (std::int64_t j = 0; j < n; ++j) {
    bias[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(bias[j]) - a_zero_point * static_cast<std::uint32_t>(column_sums[j]));
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Bytes worth a thread for packing and copying: about 20 us.
constexpr std::int64_t pack_grain = 64 * 1024;
constexpr std::int64_t copy_grain = 256 * 1024;
// Multiply-adds worth a thread: about 15 us.
constexpr std::int64_t multiply_grain = 4'000'000;
// Rows of a task when there are too few panels for all threads: a multiple of the tiles of AMX.
constexpr std::int64_t task_rows = 64;

/// body(begin, end) for parts of [0, count), by the threads of the host if there is one.
template <class Body>
void for_parts(const sdk::Host* host, std::int64_t count, std::int64_t grain, const Body& body) {
  if (host != nullptr) return host->parallel_for(count, grain, body);
  if (count > 0) body(std::int64_t{0}, count);
}

/// k with the zeros between lines of taps.
std::int64_t packed_k(const PanelSource<std::uint8_t>& from, std::int64_t line_step) {
  return line_step == 0 ? from.k() : from.taps_high * line_step;
}

/// Packs the panel of index `panel`.
void pack(const PanelSource<std::uint8_t>& from, std::uint8_t flip, std::int64_t line_step, std::int64_t panel, std::int8_t* out_panel,
          std::int32_t* out_sums) {
  const std::int64_t k = packed_k(from, line_step), groups = padded_k(k) / integer_group;
  const std::int64_t first = panel * integer_panel_width, n = std::min(integer_panel_width, from.columns - first);
  auto* const words = reinterpret_cast<std::uint32_t*>(out_panel);
  const bool is_matrix = from.taps_high * from.taps_wide == 1 && line_step == 0;
  const std::int64_t whole = is_matrix && from.column_step == 1 ? k / integer_group : 0;
  // Columns whose elements are neighbours, as of a transposed matrix.
  const bool by_columns = is_matrix && whole == 0 && from.inner_step == 1 && from.inner_block == 0;
  const std::int64_t words_of_column = by_columns ? k / integer_group : 0;
  if (n < integer_panel_width || std::max(whole, words_of_column) < groups)
    std::memset(out_panel, 0, static_cast<std::size_t>(integer_panel_bytes(k)));
  const std::uint8_t* const data = from.data + first * from.column_step;
  for (std::int64_t g = 0; g < whole; ++g) {
    const std::uint8_t* const line = data + g * integer_group * from.inner_step;
    const std::uint8_t* const lines[] = {line, line + from.inner_step, line + 2 * from.inner_step, line + 3 * from.inner_step};
    TENON_DISPATCH(interleave)(lines, n, flip, words + g * integer_panel_width);
  }
  if (by_columns) TENON_DISPATCH(gather_columns)(data, from.column_step, n, words_of_column, flip, words);
  auto* const bytes = reinterpret_cast<std::uint8_t*>(out_panel);
  const std::int64_t block = from.inner_block == 0 ? from.inner : from.inner_block, taps = from.taps_high * from.taps_wide;
  const std::int64_t line_rows = from.taps_wide * from.inner, step = line_step == 0 ? line_rows : line_step;
  for (std::int64_t row = std::max(whole, words_of_column) * integer_group; row < from.k(); ++row) {
    const std::int64_t tap = row / block % taps, i = row / (block * taps) * block + row % block;
    const std::int64_t a = tap / from.taps_wide, b = tap % from.taps_wide;
    const std::uint8_t* const line = data + a * from.tap_step_high + b * from.tap_step_wide + i * from.inner_step;
    const std::int64_t p = row / line_rows * step + row % line_rows;
    std::uint8_t* const out = bytes + p / integer_group * integer_group * integer_panel_width + p % integer_group;
    for (std::int64_t j = 0; j < n; ++j) out[j * integer_group] = line[j * from.column_step] ^ flip;
  }
  TENON_DISPATCH(sum_columns)(out_panel, groups, out_sums);
}

/// The part of a product with rows [row, row + rows) and panels [panel, panel + panels).
IntegerTiles part_of(const IntegerTiles& p, std::int64_t row, std::int64_t rows, std::int64_t panel, std::int64_t panels) {
  const std::int64_t column = panel * integer_panel_width;
  IntegerTiles part = p;
  part.rows = rows;
  part.columns = std::min(panels * integer_panel_width, p.columns - column);
  part.a += row * p.a_step;
  part.panels += panel * integer_panel_bytes(p.k);
  if (p.requantisation.y != nullptr) {
    part.requantisation.bias += column;
    part.requantisation.factor += column;
    part.requantisation.y += (p.y_offsets == nullptr ? row * p.requantisation.y_step : 0) + column;
    if (p.y_offsets != nullptr) part.y_offsets += row;
  } else {
    if (p.y != nullptr) part.y += row * p.y_step + column;
    part.row_factor += row * p.row_factor_step;
  }
  part.column_sums += column;
  if (p.column_factor != nullptr) {
    part.column_factor += column;
    part.row_sums += row;
  }
  return part;
}

/// A product on the calling thread whose sums stay in the L1 cache until the epilogue has read them.
void multiply_in_blocks(const IntegerTiles& product, const IntegerEpilogue& epilogue) {
  alignas(64) std::int32_t sums[integer_block_rows * integer_block_columns];
  const std::int64_t blocks = sdk::ceil_div(product.rows, integer_block_rows);
  const std::int64_t rows = sdk::round_up(sdk::ceil_div(product.rows, std::max<std::int64_t>(1, blocks)), 16);
  for (std::int64_t column = 0; column < product.columns; column += integer_panel_width) {
    const std::int64_t panel = column / integer_panel_width;
    const bool is_last = column + integer_panel_width >= product.columns;
    for (std::int64_t row = 0; row < product.rows; row += rows) {
      IntegerTiles block = part_of(product, row, std::min(rows, product.rows - row), panel, 1);
      block.columns = std::min(integer_panel_width, product.columns - column);
      block.y = sums;
      block.y_step = integer_block_columns;
      if (row == 0 && !is_last) block.next_panel = product.panels + (panel + 1) * integer_panel_bytes(product.k);
      multiply_integer_tiles(block);
      apply_integer_epilogue(epilogue.from(row, column), sums, block.rows, block.columns);
    }
  }
}

}  // namespace

std::int32_t zero_point_at(const sdk::Call& call, std::uint32_t operand, std::int64_t i) {
  if (!call.has_input(operand)) return 0;
  const sdk::Operand& list = call.inputs[operand];
  const std::int64_t at = list.rank == 0 ? 0 : i;
  return list.dtype == TENON_DTYPE_I8 ? std::int32_t{list.as<const std::int8_t>()[at]} : std::int32_t{list.as<const std::uint8_t>()[at]};
}
bool has_symmetric_weights(const sdk::Call& call, const IntegerOperands& at) {
  if (call.inputs[at.b].dtype != TENON_DTYPE_I8) return false;
  if (!call.has_input(at.b_zero_point)) return true;
  const sdk::Operand& list = call.inputs[at.b_zero_point];
  const auto* const zero_points = list.as<const std::int8_t>();
  return std::all_of(zero_points, zero_points + list.count, [](std::int8_t zero_point) { return zero_point == 0; });
}

bool fill_column_factors(const sdk::Call& call, const IntegerOperands& at, std::int64_t first_column, std::int64_t columns,
                         std::int32_t* out_factor) {
  std::fill_n(out_factor, padded_columns(columns), 0);
  if (has_symmetric_weights(call, at)) return false;
  const std::int32_t flipped = call.inputs[at.b].dtype == TENON_DTYPE_U8 ? 128 : 0;
  bool any = false;
  for (std::int64_t j = 0; j < columns; ++j) {
    out_factor[j] = flipped - zero_point_at(call, at.b_zero_point, first_column + j);
    any = any || out_factor[j] != 0;
  }
  return any;
}

void fill_requantisation(const sdk::Call& call, const IntegerOperands& at, std::int64_t first_column, std::int64_t columns,
                         const std::int32_t* column_sums, std::int32_t* out_bias, float* out_factor) {
  const float a_scale = *call.input<float>(1), y_scale = *call.input<float>(6);
  const float* const b_scale = call.input<float>(4);
  const bool one_scale = call.inputs[4].rank == 0;
  std::fill_n(out_factor, padded_columns(columns), 0.0F);
  std::fill_n(out_bias, padded_columns(columns), 0);
  if (one_scale) {
    std::fill_n(out_factor, columns, a_scale * *b_scale / y_scale);
  } else {
    TENON_DISPATCH(scale_factors)(b_scale + first_column, a_scale, y_scale, columns, out_factor);
  }
  if (call.has_input(8)) std::copy_n(call.input<std::int32_t>(8) + first_column, columns, out_bias);
  const auto a_zero_point = static_cast<std::uint32_t>(zero_point_at(call, at.a_zero_point, 0));
  if (a_zero_point != 0) TENON_DISPATCH(correct_bias)(a_zero_point, column_sums, columns, out_bias);
}

IntegerRequantisation requantisation_of(const sdk::Call& call) {
  IntegerRequantisation by;
  const bool is_signed = call.outputs[0].dtype == TENON_DTYPE_I8;
  by.zero_point = zero_point_at(call, 7, 0);
  by.low = is_signed ? -128 : 0;
  by.high = is_signed ? 127 : 255;
  return by;
}

IntegerPanels integer_panels_at(const void* packed, std::int64_t k, std::int64_t columns) {
  const auto* const panels = static_cast<const std::int8_t*>(packed);
  const std::int64_t bytes = padded_columns(columns) / integer_panel_width * integer_panel_bytes(k);
  return {panels, reinterpret_cast<const std::int32_t*>(panels + bytes)};
}

void pack_integer_panels(const sdk::Host* host, const PanelSource<std::uint8_t>& from, std::uint8_t flip, void* out_packed,
                         std::int64_t line_step) {
  const std::int64_t k = packed_k(from, line_step), bytes = integer_panel_bytes(k);
  const IntegerPanels out = integer_panels_at(out_packed, k, from.columns);
  for_parts(host, padded_columns(from.columns) / integer_panel_width,
            std::max<std::int64_t>(1, pack_grain / std::max<std::int64_t>(1, bytes)), [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t panel = begin; panel < end; ++panel) {
                pack(from, flip, line_step, panel, const_cast<std::int8_t*>(out.panels) + panel * bytes,
                     const_cast<std::int32_t*>(out.column_sums) + panel * integer_panel_width);
              }
            });
}

void copy_integer_rows(const sdk::Host* host, const std::uint8_t* a, std::int64_t rows, std::int64_t k, std::uint8_t* out_rows) {
  const std::int64_t step = padded_k(k);
  for_parts(host, rows, std::max<std::int64_t>(1, copy_grain / std::max<std::int64_t>(1, k)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      std::memcpy(out_rows + row * step, a + row * k, static_cast<std::size_t>(k));
      std::memset(out_rows + row * step + k, 0, static_cast<std::size_t>(step - k));
    }
  });
}

void sum_integer_rows(const std::uint8_t* a, bool a_signed, std::int64_t step, std::int64_t rows, std::int64_t k, std::int32_t* out_sums) {
  if (a_signed) return TENON_DISPATCH(sum_rows<std::int8_t>)(reinterpret_cast<const std::int8_t*>(a), step, rows, k, out_sums);
  TENON_DISPATCH(sum_rows<std::uint8_t>)(a, step, rows, k, out_sums);
}

void multiply_integers(const sdk::Host* host, const IntegerTiles& product, const IntegerEpilogue& epilogue) {
  const std::int64_t panels = padded_columns(product.columns) / integer_panel_width;
  const bool divides_rows = host != nullptr && product.a_offsets == nullptr && panels < 2 * host->thread_count();
  const std::int64_t row_tasks = divides_rows ? sdk::ceil_div(product.rows, task_rows) : 1;
  const std::int64_t rows = sdk::round_up(sdk::ceil_div(product.rows, std::max<std::int64_t>(1, row_tasks)), 32);
  const std::int64_t tasks = sdk::ceil_div(product.rows, std::max<std::int64_t>(1, rows));
  const std::int64_t work = rows * std::max<std::int64_t>(1, product.k) * integer_panel_width;
  for_parts(host, tasks * panels, std::max<std::int64_t>(1, multiply_grain / std::max<std::int64_t>(1, work)),
            [&](std::int64_t begin, std::int64_t end) {
              while (begin < end) {
                const std::int64_t row = begin / panels * rows, panel = begin % panels;
                const std::int64_t count = std::min(end - begin, panels - panel);
                const IntegerTiles part = part_of(product, row, std::min(rows, product.rows - row), panel, count);
                if (epilogue.scale == nullptr) {
                  multiply_integer_tiles(part);
                } else {
                  multiply_in_blocks(part, epilogue.from(row, panel * integer_panel_width));
                }
                begin += count;
              }
            });
}

}  // namespace tenon::openblas
#endif
