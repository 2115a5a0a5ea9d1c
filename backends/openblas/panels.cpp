#include "panels.h"

#include "finish.h"
#include "instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "panels.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>
#include <utility>

#include "simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

// Rows of a register tile two vectors wide: 28 sums, two vectors of b and one element of a of AVX-512's 32 registers; 12 sums of 16
// registers elsewhere.
#if HWY_TARGET == HWY_AVX3
constexpr int tile_rows = 14;
#else
constexpr int tile_rows = 6;
#endif
// Lines of a panel that are fetched ahead: the second cache's latency at one line in 14 clocks, and a little.
constexpr std::int64_t lines_ahead = 16;

// Lines of a panel that all rows go over before the next ones: with a tile's part of them they fit the first cache, while the next ones
// come into the second.
constexpr std::int64_t stretch_lines = 512;
// Rows whose sums wait for the next stretch, 28 KiB.
constexpr std::int64_t waiting_rows = 16 * tile_rows;

// Panels that stay in the second cache beside the rows.
constexpr std::int64_t near_bytes = 512 * 1024;

/// What is read after this stretch: its tiles share in asking for it.
template <class T>
struct Ahead {
  const T* from;
  std::int64_t step;  ///< elements per line
};

// A sum that is reached by a variable index would live in memory: loops over the sums are unrolled however long they are.
#if HWY_COMPILER_CLANG
#define TENON_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TENON_UNROLL _Pragma("GCC unroll 16")
#endif

/// What one tile writes: columns [0, columns) of `y`, `columns` <= V lanes.
template <class T>
struct TileEnd {
  T* y;
  std::int64_t y_step;
  const std::int64_t* y_offsets;
  const T* bias;
  const T* residual;
  std::int64_t columns;
  bool relu;
  const T* before;  ///< the sums so far, lines of panel_width; NULL: 0
  T* after;         ///< where they wait for the next stretch; NULL: this is the last one
};

/// A row of the last columns, of which some lanes are not there.
template <class T>
void end_row(const TileEnd<T>& end, std::int64_t at, const T* sums) {
  const Wide<T> d;
  for (std::int64_t column = 0; column < end.columns; column += lanes(d)) {
    const std::int64_t left = end.columns - column;
    const bool whole = left >= lanes(d);
    auto value = hn::Load(d, sums + column);
    if (end.bias != nullptr) value = hn::Add(value, whole ? hn::LoadU(d, end.bias + column) : load_first(d, end.bias + column, left));
    if (end.residual != nullptr) {
      const T* const from = end.residual + at + column;
      value = hn::Add(value, whole ? hn::LoadU(d, from) : load_first(d, from, left));
    }
    if (end.relu) value = Relu{}(d, value);
    if (whole) {
      hn::StoreU(value, d, end.y + at + column);
    } else {
      store_first(value, d, end.y + at + column, left);
    }
  }
}

template <int R, int V, class T>
HWY_NOINLINE void tile(const T* HWY_RESTRICT a, std::int64_t a_step, const T* HWY_RESTRICT b, std::int64_t k, Ahead<T> ahead,
                       const TileEnd<T>& end) {
  const Wide<T> d;
  const std::int64_t n = lanes(d);
  hn::Vec<Wide<T>> sum[R][V];
  TENON_UNROLL
  for (int r = 0; r < R; ++r) {
    TENON_UNROLL
    for (int v = 0; v < V; ++v) sum[r][v] = end.before == nullptr ? hn::Zero(d) : hn::Load(d, end.before + r * panel_width<T> + v * n);
  }
  for (std::int64_t p = 0; p < k; ++p, b += panel_width<T>, ahead.from += ahead.step) {
    hn::Vec<Wide<T>> line[V];
    __builtin_prefetch(ahead.from, 0, 2);
    TENON_UNROLL
    for (int v = 0; v < V; ++v) {
      line[v] = hn::Load(d, b + v * n);
      hwy::Prefetch(b + lines_ahead * panel_width<T> + v * n);
    }
    TENON_UNROLL
    for (int r = 0; r < R; ++r) {
      const auto x = hn::Set(d, a[r * a_step + p]);
      TENON_UNROLL
      for (int v = 0; v < V; ++v) sum[r][v] = hn::MulAdd(x, line[v], sum[r][v]);
    }
  }
  if (end.after != nullptr) {
    TENON_UNROLL
    for (int r = 0; r < R; ++r) {
      TENON_UNROLL
      for (int v = 0; v < V; ++v) hn::Store(sum[r][v], d, end.after + r * panel_width<T> + v * n);
    }
    return;
  }
  const std::int64_t* const offsets = end.y_offsets;
  if (end.columns >= V * n) {
    if (end.bias != nullptr) {
      TENON_UNROLL
      for (int v = 0; v < V; ++v) {
        const auto bias = hn::LoadU(d, end.bias + v * n);
        TENON_UNROLL
        for (int r = 0; r < R; ++r) sum[r][v] = hn::Add(sum[r][v], bias);
      }
    }
    if (end.residual != nullptr) {
      TENON_UNROLL
      for (int r = 0; r < R; ++r) {
        const T* const from = end.residual + (offsets == nullptr ? r * end.y_step : offsets[r]);
        TENON_UNROLL
        for (int v = 0; v < V; ++v) sum[r][v] = hn::Add(sum[r][v], hn::LoadU(d, from + v * n));
      }
    }
    if (end.relu) {
      TENON_UNROLL
      for (int r = 0; r < R; ++r) {
        TENON_UNROLL
        for (int v = 0; v < V; ++v) sum[r][v] = Relu{}(d, sum[r][v]);
      }
    }
    TENON_UNROLL
    for (int r = 0; r < R; ++r) {
      T* const to = end.y + (offsets == nullptr ? r * end.y_step : offsets[r]);
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
  for (std::int64_t r = 0; r < R; ++r) end_row(end, offsets == nullptr ? r * end.y_step : offsets[r], sums + r * V * n);
}

template <class T>
using TileFunction = void (*)(const T*, std::int64_t, const T*, std::int64_t, Ahead<T>, const TileEnd<T>&);

/// tile<1, V> ... tile<tile_rows, V>
template <int V, class T, int... R>
TileFunction<T> choose_tile(std::int64_t rows, std::integer_sequence<int, R...>) {
  static constexpr TileFunction<T> tiles[] = {&tile<R + 1, V, T>...};
  return tiles[rows - 1];
}

/// Rows [row, row + rows) of one panel, at most waiting_rows, stretch by stretch, as tiles of nearly equal heights.
template <class T>
void multiply_panel(const PanelProduct<T>& p, std::int64_t panel, std::int64_t row, std::int64_t rows) {
  constexpr auto heights = std::make_integer_sequence<int, tile_rows>();
  const std::int64_t n = lanes(Wide<T>());
  const std::int64_t first = panel * panel_width<T>;
  const std::int64_t columns = p.wide_last_panel ? panel_width<T> : std::min(panel_width<T>, p.columns - first);
  const std::int64_t tiles = (rows + tile_rows - 1) / tile_rows;
  const std::int64_t tiles_of_all_columns = tiles * ((columns + 2 * n - 1) / (2 * n));
  const std::int64_t stretches = std::max<std::int64_t>(1, (p.k + stretch_lines / 2) / stretch_lines);
  const T* const lines = p.panels + panel * panel_width<T> * p.k;
  HWY_ALIGN T waiting[waiting_rows * panel_width<T>];
  for (std::int64_t s = 0; s < stretches; ++s) {
    const std::int64_t line = s * p.k / stretches;
    const std::int64_t next = (s + 1) * p.k / stretches;
    Ahead<T> ahead{lines + next * panel_width<T>, (panel_width<T> + tiles_of_all_columns - 1) / tiles_of_all_columns};
    for (std::int64_t column = 0; column < columns; column += 2 * n) {
      const bool two = columns - column > n;
      TileEnd<T> end{};
      end.y_step = p.y_step;
      end.bias = p.bias == nullptr ? nullptr : p.bias + first + column;
      end.columns = columns - column;
      end.relu = p.activation == sdk::Activation::relu;
      for (std::int64_t t = 0; t < tiles; ++t) {
        const std::int64_t offset = t * rows / tiles;
        const std::int64_t height = (t + 1) * rows / tiles - offset;
        const std::int64_t begin = row + offset;
        const std::int64_t at = (p.y_offsets == nullptr ? begin * p.y_step : 0) + first + column;
        T* const sums = waiting + offset * panel_width<T> + column;
        end.before = s == 0 ? nullptr : sums;
        end.after = s + 1 == stretches ? nullptr : sums;
        end.y = p.y + at;
        end.y_offsets = p.y_offsets == nullptr ? nullptr : p.y_offsets + begin;
        end.residual = p.residual == nullptr ? nullptr : p.residual + at;
        const TileFunction<T> function = two ? choose_tile<2, T>(height, heights) : choose_tile<1, T>(height, heights);
        function(p.a + begin * p.a_step + line, p.a_step, lines + line * panel_width<T> + column, next - line, ahead, end);
        ahead.from += (next - line) * ahead.step;
      }
    }
  }
}

template <class T>
void multiply_all(const PanelProduct<T>& p) {
  const std::int64_t panels = panel_count<T>(p.columns);
  // Of few weights all panels stay in the second cache: a few rows of y are then written from end to end.
  const bool few = panel_elements<T>(p.k, p.columns) * static_cast<std::int64_t>(sizeof(T)) <= near_bytes;
  const std::int64_t most = few ? 2 * tile_rows : waiting_rows;
  const std::int64_t groups = (p.rows + most - 1) / most;
  const auto multiply_group = [&](std::int64_t panel, std::int64_t g) {
    const std::int64_t row = g * p.rows / groups;
    multiply_panel(p, panel, row, (g + 1) * p.rows / groups - row);
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

void multiply_panels_f32(const PanelProduct<float>& p) {
  multiply_all(p);
}
void multiply_panels_f64(const PanelProduct<double>& p) {
  multiply_all(p);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Sigmoid and tanh take a while: they go over the rows afterwards, where the loop over a row is long.
template <class T>
void finish_rows(const PanelProduct<T>& p) {
  if (p.activation == sdk::Activation::none || p.activation == sdk::Activation::relu) return;
  Finish<T> finish;
  finish.activation = p.activation;
  for (std::int64_t r = 0; r < p.rows; ++r) {
    finish_block(finish, p.y + (p.y_offsets == nullptr ? r * p.y_step : p.y_offsets[r]), 0, 0, 0, 1, p.columns);
  }
}

}  // namespace

void multiply_panels(const PanelProduct<float>& product) {
  TENON_BEST(multiply_panels_f32)(product);
  finish_rows(product);
}

void multiply_panels(const PanelProduct<double>& product) {
  TENON_BEST(multiply_panels_f64)(product);
  finish_rows(product);
}

}  // namespace tenon::openblas
#endif
