// SPDX-License-Identifier: Apache-2.0
#include "gemm/tile_products.h"

#include <algorithm>

#include <tenon/sdk/rounding.h>

#include "gemm/panels.h"

namespace tenon::openblas {
namespace {

/// Multiply-adds worth a thread: about 15 us.
constexpr std::int64_t grain = 1'500'000;
/// Rows of a task: a multiple of the register tiles of all instruction sets.
constexpr std::int64_t row_unit = 42;
/// Most rows for which a block of b is packed once: packing then costs about a fiftieth of the multiply-adds.
constexpr std::int64_t max_rows = 4 * row_unit;

/// The shapes for which the tiles won or drew on one and on two threads (docs/adr/0058): a stays in L2 while all panels pass, sums are long
/// enough for the tiles, and OpenBLAS, which packs a too, does not have enough columns to make up for that.
constexpr std::int64_t max_bytes_of_a = 800 * 1024;
constexpr std::int64_t min_rows = 16, min_columns = 128, min_terms = 128, min_terms_if_transposed = 64;

/// Rows of a task: fewer where there are not enough panels to divide among the threads.
std::int64_t rows_of_task(std::int64_t m, std::int64_t panels, std::int64_t threads) {
  std::int64_t rows = max_rows;
  if (threads > 1 && panels < 4 * threads) {
    rows = std::min(rows, std::max(row_unit, sdk::ceil_div(m, sdk::ceil_div(4 * threads, panels))));
  }
  return sdk::ceil_div(m, sdk::ceil_div(m, rows));  // blocks of nearly equal heights
}

/// The product of rows [row, row + rows) of an entry of the batch with the panel whose first column is `column`.
template <class T>
void multiply_part(const Product<T>& p, const std::array<std::int64_t, 2>& at, T* y, std::int64_t row, std::int64_t rows,
                   std::int64_t column) {
  const std::int64_t n = p.b_view.columns;
  PanelSource<T> b;
  b.data = p.b + at[1] + column * p.b_view.column_stride;
  b.inner = p.b_view.rows;
  b.inner_step = p.b_view.row_stride;
  b.columns = std::min(panel_width<T>, n - column);
  b.column_step = p.b_view.column_stride;
  PanelProduct<T> part;
  part.rows = rows;
  part.k = b.inner;
  part.columns = b.columns;
  part.a = p.a + at[0] + row * p.a_view.row_stride;
  part.a_step = p.a_view.row_stride;
  part.unpacked = &b;
  part.y = y + row * n + column;
  part.y_step = n;
  multiply_panels(part);
  apply_epilogue(p.epilogue.of_entry(y - p.y), y, n, row, column, rows, b.columns);
}

}  // namespace

template <class T>
bool suits_tiles(const Product<T>& p) {
  const std::int64_t m = p.a_view.rows, n = p.b_view.columns, k = p.a_view.columns;
  const bool transposed = p.b_view.row_stride == 1 && p.b_view.column_stride != 1;
  return p.alpha == T(1) && p.a_view.column_stride == 1 && m >= min_rows && n >= min_columns &&
         k >= (transposed ? min_terms_if_transposed : min_terms) && m <= max_bytes_of_a / static_cast<std::int64_t>(sizeof(T)) / k;
}

template <class T>
void multiply_by_tiles(const sdk::Host& host, const Product<T>& p, const StridedLoop<2>& batch) {
  const std::int64_t m = p.a_view.rows, n = p.b_view.columns;
  const std::int64_t panels = panel_count<T>(n);
  const std::int64_t rows = rows_of_task(m, panels, batch.count >= 2 * host.thread_count() ? 1 : host.thread_count());
  const std::int64_t row_blocks = sdk::ceil_div(m, rows);
  const std::int64_t tasks_of_grain = std::max<std::int64_t>(1, grain / (rows * p.a_view.columns * panel_width<T>));
  host.parallel_for(batch.count * row_blocks * panels, tasks_of_grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t entry = task / (row_blocks * panels);
      const std::int64_t row = task / panels % row_blocks * rows;
      multiply_part(p, batch.offsets(entry), p.y + entry * m * n, row, std::min(rows, m - row), task % panels * panel_width<T>);
    }
  });
}

template bool suits_tiles(const Product<float>&);
template bool suits_tiles(const Product<double>&);
template void multiply_by_tiles(const sdk::Host&, const Product<float>&, const StridedLoop<2>&);
template void multiply_by_tiles(const sdk::Host&, const Product<double>&, const StridedLoop<2>&);

}  // namespace tenon::openblas
