// SPDX-License-Identifier: Apache-2.0
#include "gemm/panels.h"

#include "elementwise/transpose.h"
#include "simd/foreach_target.h"

#include <hwy/cache_control.h>
#include <limits>
#include <type_traits>
#include <utility>

#include "simd/activations.h"
#include "simd/simd.h"
#include "simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

// Rows of a register tile that is two vectors wide. AVX-512: 28 sums, two vectors of b and one element of a in 32 registers; elsewhere
// 12 sums in 16 registers.
#if HWY_TARGET == HWY_AVX3
constexpr int tile_rows = 14;
#else
constexpr int tile_rows = 6;
#endif
// Panel lines that are prefetched: a little more than L2's latency at one line in 14 clocks.
constexpr std::int64_t lines_ahead = 16;

// Lines of a k block. All rows use a block before the next one begins: its lines and a tile's part of a fit L1 while the next block is
// prefetched into L2.
constexpr std::int64_t k_block_lines = 512;
// k is divided into blocks of k_block_lines, to the nearest number of blocks.
constexpr std::int64_t max_block_lines = k_block_lines * 3 / 2;
// Rows whose partial sums are kept between k blocks, 28 KiB.
constexpr std::int64_t max_partial_rows = 16 * tile_rows;

// Bytes of panels that stay in L2 together with the rows.
constexpr std::int64_t resident_bytes = 512 * 1024;

/// Memory that is used next, which tiles fetch into L2, a piece for each line of a panel.
template <class T>
struct PrefetchCursor {
  const T* from = nullptr;
  std::int64_t elements = 0;
};
/// The smallest piece, half a line of the cache: bursts of more bytes per multiplication wait for memory, and smaller pieces repeat
/// requests.
template <class T>
inline constexpr std::int64_t smallest_piece = 32 / static_cast<std::int64_t>(sizeof(T));

/// The output of one tile: columns [0, columns) of `y`, `columns` <= V lanes.
template <class T>
struct TileOutput {
  T* y;
  std::int64_t y_step;
  const std::int64_t* y_offsets;
  const T* bias;
  const T* residual;
  const T* relu_result;
  std::int64_t columns;
  const Clip<T>* bounds;  ///< the activation; NULL: none
  const T* sums_in;       ///< the sums so far, lines of panel_width; NULL: 0
  T* sums_out;            ///< where they wait for the next stretch; NULL: this is the last one
};

/// Writes a row of the last columns, whose last vector is partial.
template <class T>
void write_row(const TileOutput<T>& out, std::int64_t at, const T* sums) {
  const Wide<T> d;
  for (std::int64_t column = 0; column < out.columns; column += lanes(d)) {
    const std::int64_t left = out.columns - column;
    const bool whole = left >= lanes(d);
    auto value = hn::Load(d, sums + column);
    if (out.bias != nullptr) value = hn::Add(value, whole ? hn::LoadU(d, out.bias + column) : load_first(d, out.bias + column, left));
    if (out.residual != nullptr) {
      const T* const from = out.residual + at + column;
      value = hn::Add(value, whole ? hn::LoadU(d, from) : load_first(d, from, left));
    }
    if (out.bounds != nullptr) value = (*out.bounds)(d, value);
    if (out.relu_result != nullptr) {
      const T* const from = out.relu_result + at + column;
      value = ReluGrad{}(d, value, whole ? hn::LoadU(d, from) : load_first(d, from, left));
    }
    if (whole) {
      hn::StoreU(value, d, out.y + at + column);
    } else {
      store_first(value, d, out.y + at + column, left);
    }
  }
}

/// Where a tile finds element p of row r of a, and line p of b: at a[r step + p] and b[p panel_width]; at a[r step + offsets[p]]; or at
/// a[r step + p inner_step] and b[p line_step].
enum class Access { plain, indirect, strided };

/// a, and what is strided.
template <class T>
struct TileRows {
  const T* a;
  std::int64_t step;
  const std::int32_t* offsets;
  std::int64_t inner_step;
  std::int64_t line_step;
  T* packed;  ///< where the lines of b are copied to, as those of a panel; NULL: they are not
};

template <int R, int V, Access access, class T>
HWY_NOINLINE void tile(const TileRows<T>& left, const T* HWY_RESTRICT b, std::int64_t k, const T* ahead, std::int64_t ahead_step,
                       const TileOutput<T>& out) {
  constexpr bool indirect = access == Access::indirect, strided = access == Access::strided;
  const T* HWY_RESTRICT const a = left.a;
  const std::int64_t a_step = left.step;
  const std::int64_t inner_step = strided ? left.inner_step : 1, line_step = strided ? left.line_step : panel_width<T>;
  const T* fetched_line = b + lines_ahead * line_step;
  T* HWY_RESTRICT packed = left.packed;
  const Wide<T> d;
  const std::int64_t n = lanes(d);
  // load the partial sums
  hn::Vec<Wide<T>> sum[R][V];
  TENON_UNROLL
  for (int r = 0; r < R; ++r) {
    TENON_UNROLL
    for (int v = 0; v < V; ++v) sum[r][v] = out.sums_in == nullptr ? hn::Zero(d) : hn::Load(d, out.sums_in + r * panel_width<T> + v * n);
  }
  // multiply; a pointer for each three rows, since one for each row does not fit the registers
  constexpr int pointers = (R + 2) / 3;
  const T* rows[pointers];
  TENON_UNROLL
  for (int i = 0; i < pointers; ++i) rows[i] = a + 3 * i * a_step;
  for (std::int64_t p = 0; p < k; ++p, b += line_step, ahead += ahead_step) {
    if constexpr (!indirect) {
      TENON_UNROLL
      for (int i = 0; i < pointers; ++i) __asm__("" : "+r"(rows[i]));  // or the compiler makes 14 pointers of them again
    }
    hn::Vec<Wide<T>> line[V];
    __builtin_prefetch(ahead, 0, strided ? 3 : 2);
    TENON_UNROLL
    for (int v = 0; v < V; ++v) {
      line[v] = strided ? hn::LoadU(d, b + v * n) : hn::Load(d, b + v * n);
      hwy::Prefetch((strided ? fetched_line : b + lines_ahead * panel_width<T>)+v * n);
    }
    if constexpr (strided) {
      hwy::Prefetch(fetched_line + V * n - 1);  // the end of a line that is not aligned
      fetched_line += line_step;
      if (packed != nullptr) {
        TENON_UNROLL
        for (int v = 0; v < V; ++v) hn::Store(line[v], d, packed + v * n);
        packed += panel_width<T>;
      }
    }
    const T* const column = indirect ? a + left.offsets[p] : nullptr;
    TENON_UNROLL
    for (int r = 0; r < R; ++r) {
      const auto x = hn::Set(d, indirect ? column[r * a_step] : rows[r / 3][r % 3 * a_step]);
      TENON_UNROLL
      for (int v = 0; v < V; ++v) sum[r][v] = hn::MulAdd(x, line[v], sum[r][v]);
    }
    TENON_UNROLL
    for (int i = 0; i < pointers; ++i) rows[i] += inner_step;
  }
  // store the partial sums, or apply the epilogue and store the results
  if (out.sums_out != nullptr) {
    TENON_UNROLL
    for (int r = 0; r < R; ++r) {
      TENON_UNROLL
      for (int v = 0; v < V; ++v) hn::Store(sum[r][v], d, out.sums_out + r * panel_width<T> + v * n);
    }
    return;
  }
  const std::int64_t* const offsets = out.y_offsets;
  if (out.columns >= V * n) {
    if (out.bias != nullptr) {
      TENON_UNROLL
      for (int v = 0; v < V; ++v) {
        const auto bias = hn::LoadU(d, out.bias + v * n);
        TENON_UNROLL
        for (int r = 0; r < R; ++r) sum[r][v] = hn::Add(sum[r][v], bias);
      }
    }
    if (out.residual != nullptr) {
      TENON_UNROLL
      for (int r = 0; r < R; ++r) {
        const T* const from = out.residual + (offsets == nullptr ? r * out.y_step : offsets[r]);
        TENON_UNROLL
        for (int v = 0; v < V; ++v) sum[r][v] = hn::Add(sum[r][v], hn::LoadU(d, from + v * n));
      }
    }
    if (out.bounds != nullptr) {
      TENON_UNROLL
      for (int r = 0; r < R; ++r) {
        TENON_UNROLL
        for (int v = 0; v < V; ++v) sum[r][v] = (*out.bounds)(d, sum[r][v]);
      }
    }
    if (out.relu_result != nullptr) {
      TENON_UNROLL
      for (int r = 0; r < R; ++r) {
        const T* const from = out.relu_result + (offsets == nullptr ? r * out.y_step : offsets[r]);
        TENON_UNROLL
        for (int v = 0; v < V; ++v) sum[r][v] = ReluGrad{}(d, sum[r][v], hn::LoadU(d, from + v * n));
      }
    }
    TENON_UNROLL
    for (int r = 0; r < R; ++r) {
      T* const to = out.y + (offsets == nullptr ? r * out.y_step : offsets[r]);
      TENON_UNROLL
      for (int v = 0; v < V; ++v) hn::StoreU(sum[r][v], d, to + v * n);
    }
    return;
  }
  HWY_ALIGN T sums[R * V * HWY_MAX_BYTES / sizeof(T)];
  TENON_UNROLL
  for (int r = 0; r < R; ++r) {
    TENON_UNROLL
    for (int v = 0; v < V; ++v) hn::Store(sum[r][v], d, sums + (r * V + v) * n);
  }
  for (std::int64_t r = 0; r < R; ++r) write_row(out, offsets == nullptr ? r * out.y_step : offsets[r], sums + r * V * n);
}

template <class T>
using TileFunction = void (*)(const TileRows<T>&, const T*, std::int64_t, const T*, std::int64_t, const TileOutput<T>&);

/// tile<1, V, access> ... tile<tile_rows, V, access>
template <int V, Access access, class T, int... R>
TileFunction<T> choose_tile(std::int64_t rows, std::integer_sequence<int, R...>) {
  static constexpr TileFunction<T> tiles[] = {&tile<R + 1, V, access, T>...};
  return tiles[rows - 1];
}
template <Access access, class T>
TileFunction<T> choose_tile(std::int64_t rows, bool two) {
  constexpr auto heights = std::make_integer_sequence<int, tile_rows>();
  return two ? choose_tile<2, access, T>(rows, heights) : choose_tile<1, access, T>(rows, heights);
}
template <class T>
TileFunction<T> choose_tile(std::int64_t rows, bool two, Access access) {
  if constexpr (std::is_same_v<T, float>) {
    if (access == Access::indirect) return choose_tile<Access::indirect, T>(rows, two);
  }
  return access == Access::strided ? choose_tile<Access::strided, T>(rows, two) : choose_tile<Access::plain, T>(rows, two);
}

/// Whether tiles apply the activation. The others need too many registers.
bool is_of_tiles(const sdk::Activation& activation) {
  return activation == sdk::Activation::none || activation == sdk::Activation::relu || activation == sdk::Activation::clip;
}

/// Applies the activation, and the gradient of a relu after it, to n elements of rows [row, row + rows), which the tiles have just written.
template <class T>
HWY_NOINLINE void activate_rows(const PanelProduct<T>& p, std::int64_t column, std::int64_t n, std::int64_t row, std::int64_t rows) {
  with_activation<T>(p.activation, [&](const auto& activate) {
    for (std::int64_t r = row; r < row + rows; ++r) {
      const std::int64_t at = (p.y_offsets == nullptr ? r * p.y_step : p.y_offsets[r]) + column;
      map(activate, p.y + at, p.y + at, n);
      if (p.relu_result != nullptr) map(ReluGrad{}, p.y + at, p.relu_result + at, p.y + at, n);
    }
  });
}

/// Packs lines [line, line + count) of the panel whose first column is `first`.
template <class T>
void pack_lines(const PanelSource<T>& from, std::int64_t first, std::int64_t line, std::int64_t count, T* HWY_RESTRICT out) {
  constexpr std::int64_t width = panel_width<T>;
  const Wide<T> d;
  const std::int64_t columns = std::min(width, from.columns - first);
  const T* const corner = from.data + line * from.inner_step + first * from.column_step;
  if (from.column_step != 1 && columns < width) std::fill_n(out, count * width, T(0));
  if (from.column_step == 1 && columns == width) {
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t j = 0; j < width; j += lanes(d)) hn::Store(hn::LoadU(d, corner + i * from.inner_step + j), d, out + i * width + j);
    }
  } else if (from.column_step == 1) {
    for (std::int64_t j = 0; j < width; j += lanes(d)) {
      const std::int64_t left = columns - j;
      for (std::int64_t i = 0; i < count; ++i) {
        const T* const at = corner + i * from.inner_step + j;
        hn::Store(left >= lanes(d) ? hn::LoadU(d, at) : left > 0 ? load_first(d, at, left) : hn::Zero(d), d, out + i * width + j);
      }
    }
  } else if (from.inner_step == 1) {
    transpose_block(corner, from.column_step, out, width, count, columns);
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) out[i * width + j] = corner[i * from.inner_step + j * from.column_step];
    }
  }
}

/// The number of blocks into which k is divided, to the nearest.
std::int64_t k_blocks_of(std::int64_t k) {
  return std::max<std::int64_t>(1, (k + k_block_lines / 2) / k_block_lines);
}

/// Multiplies rows [row, row + rows), at most max_partial_rows if there are several k blocks, by one panel, k block by k block, in tiles of
/// nearly equal heights. Each k block fetches the next one, and the last one `next_memory`.
template <class T>
void multiply_panel(const PanelProduct<T>& p, std::int64_t panel, std::int64_t row, std::int64_t rows,
                    const PrefetchCursor<T>& next_memory) {
  const std::int64_t n = lanes(Wide<T>());
  const std::int64_t first = panel * panel_width<T>;
  const std::int64_t columns = p.wide_last_panel ? panel_width<T> : std::min(panel_width<T>, p.columns - first);
  const std::int64_t tiles = (rows + tile_rows - 1) / tile_rows;
  const std::int64_t tiles_of_all_columns = tiles * ((columns + 2 * n - 1) / (2 * n));
  static_assert(max_indirect_k <= k_block_lines, "indirect rows have one k block");
  const std::int64_t k_blocks = k_blocks_of(p.k);
  HWY_ALIGN T packed_lines[max_block_lines * panel_width<T>];
  const T* const panel_lines = p.panels == nullptr ? nullptr : p.panels + panel * panel_width<T> * p.k;
  // Contiguous lines of b that is not packed are read by the first tile where they are, which packs them for the others.
  const bool packs_in_tile = panel_lines == nullptr && p.unpacked->column_step == 1 && columns == panel_width<T>;
  const bool clips = p.activation == sdk::Activation::clip;
  const Clip<T> bounds{clips ? T(p.activation.low) : T(0), clips ? T(p.activation.high) : std::numeric_limits<T>::infinity()};
  HWY_ALIGN T partial_sums[max_partial_rows * panel_width<T>];
  for (std::int64_t s = 0; s < k_blocks; ++s) {
    const std::int64_t line = s * p.k / k_blocks;
    const std::int64_t next = (s + 1) * p.k / k_blocks;
    const std::int64_t after = (s + 2) * p.k / k_blocks;
    const T* lines = packed_lines;
    PrefetchCursor<T> ahead = s + 1 == k_blocks ? next_memory : PrefetchCursor<T>{};
    if (panel_lines == nullptr) {
      if (!packs_in_tile) pack_lines(*p.unpacked, first, line, next - line, packed_lines);
    } else {
      lines = panel_lines + line * panel_width<T>;
      if (s + 1 < k_blocks) ahead = {panel_lines + next * panel_width<T>, (after - next) * panel_width<T>};
    }
    const T* next_lines = nullptr;  // of b, if it is not packed
    if (packs_in_tile) {
      if (s + 1 < k_blocks) {
        next_lines = p.unpacked->data + next * p.unpacked->inner_step;
      } else if (p.fetches_next_columns) {
        next_lines = p.unpacked->data + panel_width<T>;
      }
    }
    const std::int64_t pieces = std::max<std::int64_t>(1, tiles_of_all_columns * (next - line));
    const std::int64_t piece = std::max(smallest_piece<T>, (ahead.elements + pieces - 1) / pieces);
    for (std::int64_t column = 0; column < columns; column += 2 * n) {
      const bool two = columns - column > n;
      TileOutput<T> out{};
      out.y_step = p.y_step;
      out.bias = p.bias == nullptr ? nullptr : p.bias + first + column;
      out.columns = columns - column;
      out.bounds = p.activation == sdk::Activation::relu || p.activation == sdk::Activation::clip ? &bounds : nullptr;
      for (std::int64_t t = 0; t < tiles; ++t) {
        const std::int64_t offset = t * rows / tiles;
        const std::int64_t height = (t + 1) * rows / tiles - offset;
        const std::int64_t begin = row + offset;
        const std::int64_t at = (p.y_offsets == nullptr ? begin * p.y_step : 0) + first + column;
        T* const sums = k_blocks == 1 ? nullptr : partial_sums + offset * panel_width<T> + column;
        out.sums_in = s == 0 ? nullptr : sums;
        out.sums_out = s + 1 == k_blocks ? nullptr : sums;
        out.y = p.y + at;
        out.y_offsets = p.y_offsets == nullptr ? nullptr : p.y_offsets + begin;
        out.residual = p.residual == nullptr ? nullptr : p.residual + at;
        out.relu_result = p.relu_result == nullptr || !is_of_tiles(p.activation) ? nullptr : p.relu_result + at;
        TileRows<T> from{p.a + begin * p.a_step + line * p.a_inner_step, p.a_step, p.a_offsets, p.a_inner_step, panel_width<T>, nullptr};
        const T* b = lines + column;
        Access access = p.a_offsets != nullptr ? Access::indirect : p.a_inner_step != 1 ? Access::strided : Access::plain;
        if (packs_in_tile && t == 0) {
          b = p.unpacked->data + line * p.unpacked->inner_step + first + column;
          access = Access::strided;
          from.line_step = p.unpacked->inner_step;
          if (tiles > 1) from.packed = packed_lines + column;
        }
        const T* fetched = from.a;
        std::int64_t fetched_step = 0;
        if (ahead.elements > 0) {
          fetched = ahead.from;
          fetched_step = piece;
        } else if (next_lines != nullptr && t > 0 && t <= 3) {  // the two lines of the cache, or three, of each line of b
          fetched = next_lines + (t - 1) * ((panel_width<T> - 1) / 2);
          fetched_step = p.unpacked->inner_step;
        } else if (p.a_inner_step != 1) {  // the next tile's rows
          fetched = from.a + height * p.a_step;
          fetched_step = p.a_inner_step;
        }
        choose_tile<T>(height, two, access)(from, b, next - line, fetched, fetched_step, out);
        ahead.from += (next - line) * piece;
        ahead.elements -= (next - line) * piece;
      }
    }
  }
  if (!is_of_tiles(p.activation)) activate_rows(p, first, columns, row, rows);
}

template <class T>
void multiply_all(const PanelProduct<T>& p) {
  const std::int64_t panels = panel_count<T>(p.columns);
  // If all panels stay in L2, a few rows of y are written from end to end before the next ones.
  const bool few =
      p.panels != nullptr && panels > 1 && panel_elements<T>(p.k, p.columns) * static_cast<std::int64_t>(sizeof(T)) <= resident_bytes;
  // Rows that use all of b at once pack it once.
  const std::int64_t max_rows = few ? 2 * tile_rows : p.panels == nullptr && k_blocks_of(p.k) == 1 ? p.rows : max_partial_rows;
  const std::int64_t groups = p.rows == 0 ? 0 : (p.rows + max_rows - 1) / max_rows;
  const auto first_row = [&](std::int64_t g) { return g * p.rows / groups; };
  const std::int64_t panel_size = panel_step<T>(p.k);
  const std::int64_t fetched_size = std::min(panel_size, k_block_lines * panel_width<T>);
  // The first rows fetch the next panel. If panels stay in L2, the last panel fetches the next rows, and the last rows fetch the next
  // panels.
  const auto next_memory = [&](std::int64_t panel, std::int64_t g) -> PrefetchCursor<T> {
    const bool last_panel = panel + 1 == panels, last_rows = g + 1 == groups;
    if (p.panels != nullptr && g == 0 && !last_panel) return {p.panels + (panel + 1) * panel_size, fetched_size};
    if (few && last_panel && !last_rows) return {p.a + first_row(g + 1) * p.a_step, (first_row(g + 2) - first_row(g + 1)) * p.a_step};
    if (p.next_panels == nullptr || !last_rows || !(few || last_panel)) return {};
    return {p.next_panels + (few && groups > 1 ? panel * panel_size : 0), fetched_size};
  };
  const auto multiply_group = [&](std::int64_t panel, std::int64_t g) {
    multiply_panel(p, panel, first_row(g), first_row(g + 1) - first_row(g), next_memory(panel, g));
  };
  if (few) {
    for (std::int64_t g = 0; g < groups; ++g) {
      for (std::int64_t panel = 0; panel < panels; ++panel) multiply_group(panel, g);
    }
    return;
  }
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    for (std::int64_t g = 0; g < groups; ++g) multiply_group(panel, g);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

template <class T>
void pack_panel(const PanelSource<T>& from, std::int64_t panel, T* out_panels) {
  if (from.taps_high * from.taps_wide != 1) return pack_panel_by_elements(from, panel, out_panels);
  TENON_DISPATCH(pack_lines<T>)(from, panel * panel_width<T>, 0, from.inner, out_panels + panel * panel_step<T>(from.inner));
}
TENON_INSTANTIATE_FLOATS(pack_panel)

template <class T>
void multiply_panels(const PanelProduct<T>& product) {
  TENON_DISPATCH(multiply_all<T>)(product);
}
TENON_INSTANTIATE_FLOATS(multiply_panels)

}  // namespace tenon::openblas
#endif
