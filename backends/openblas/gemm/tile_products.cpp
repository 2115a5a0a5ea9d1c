// SPDX-License-Identifier: Apache-2.0
#include "gemm/tile_products.h"

#include <algorithm>

#include <tenon/sdk/rounding.h>

#include "gemm/panels.h"
#include "simd/instruction_set.h"

namespace tenon::openblas {
namespace {

/// Multiply-adds worth a second thread, about 10 us, and those of the smallest piece of a thread's work.
constexpr std::int64_t smallest_shared = 1'500'000, grain = 100'000;
/// Rows of a task, at most: two register tiles of AVX-512.
constexpr std::int64_t task_rows = 28;
/// Most rows for which a block of b is packed once.
constexpr std::int64_t max_rows = 168;
/// Bytes of a that stay in L2 while all panels pass.
constexpr std::int64_t resident_bytes = 400 * 1024;

/// The shapes for which the tiles won or drew on one and on two threads (docs/adr/0058): sums are long enough for the tiles, and OpenBLAS,
/// which packs a too, does not have enough columns to make up for that.
struct Shapes {
  std::int64_t rows, columns, terms, terms_if_transposed;  ///< at least; the last if b is transposed
  std::int64_t columns_if_a_transposed;                    ///< at least; 0: a is not transposed
  std::int64_t bytes_of_a, bytes_if_transposed;            ///< at most; the latter if b is transposed, which each block of rows packs again
};
/// Tiles of AVX-512 have 14 rows, and are faster than OpenBLAS's kernels once b is packed; those of the others have 6.
constexpr Shapes avx512_shapes{16, 96, 64, 64, 128, 8 << 20, 800 * 1024};
constexpr Shapes other_shapes{16, 128, 128, 64, 0, 800 * 1024, 800 * 1024};

/// How the rows of a product are divided: into blocks of which a's rows stay in L2, and these into tasks.
struct RowDivision {
  RowDivision(std::int64_t m, std::int64_t row_bytes) : rows(m) {
    const std::int64_t block_rows = std::max(max_rows, resident_bytes / row_bytes);
    blocks = sdk::ceil_div(m, block_rows);
    tasks = sdk::ceil_div(sdk::ceil_div(m, blocks), task_rows);
  }
  /// The first row of a task of a block, tasks as in all blocks together.
  std::int64_t begin(std::int64_t task) const { return task * rows / (blocks * tasks); }

  std::int64_t rows;
  std::int64_t blocks;  ///< of all rows
  std::int64_t tasks;   ///< of a block
};

/// The product of rows [row, row + rows) of an entry of the batch with the panel whose first column is `column`.
template <class T>
void multiply_part(const Product<T>& p, const std::array<std::int64_t, 2>& at, T* y, std::int64_t row, std::int64_t rows,
                   std::int64_t column) {
  const std::int64_t n = p.b_view.columns;
  const Epilogue<T> epilogue = p.epilogue.of_entry(y - p.y);
  const bool in_tiles = epilogue.c == nullptr;
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
  part.a_inner_step = p.a_view.column_stride;
  part.unpacked = &b;
  part.fetches_next_columns = column + b.columns < n;
  part.y = y + row * n + column;
  part.y_step = n;
  if (in_tiles) {
    if (epilogue.bias != nullptr) part.bias = epilogue.bias + column;
    if (epilogue.residual != nullptr) part.residual = epilogue.residual + row * n + column;
    part.activation = epilogue.activation;
  }
  multiply_panels(part);
  if (!in_tiles) apply_epilogue(epilogue, y, n, row, column, rows, b.columns);
}

}  // namespace

template <class T>
bool suits_tiles(const Product<T>& p) {
  const Shapes& shapes = instruction_set() >= InstructionSet::avx512 ? avx512_shapes : other_shapes;
  const std::int64_t m = p.a_view.rows, n = p.b_view.columns, k = p.a_view.columns;
  const bool a_transposed = p.a_view.column_stride != 1;
  const bool a_fits =
      !a_transposed || (p.a_view.row_stride == 1 && shapes.columns_if_a_transposed > 0 && n >= shapes.columns_if_a_transposed);
  const bool transposed = p.b_view.row_stride == 1 && p.b_view.column_stride != 1;
  const std::int64_t max_elements = (transposed ? shapes.bytes_if_transposed : shapes.bytes_of_a) / static_cast<std::int64_t>(sizeof(T));
  return p.alpha == T(1) && a_fits && m >= shapes.rows && n >= shapes.columns &&
         k >= (transposed ? shapes.terms_if_transposed : shapes.terms) && m <= max_elements / k;
}

template <class T>
void multiply_by_tiles(const sdk::Host& host, const Product<T>& p, const StridedLoop<2>& batch) {
  const std::int64_t m = p.a_view.rows, n = p.b_view.columns, k = p.a_view.columns;
  const std::int64_t panels = panel_count<T>(n);
  const RowDivision division(m, k * static_cast<std::int64_t>(sizeof(T)));
  const std::int64_t tasks = batch.count * division.blocks * panels * division.tasks;
  const std::int64_t task_size = sdk::ceil_div(m, division.blocks * division.tasks) * k * panel_width<T>;
  const bool shared = task_size * tasks >= smallest_shared;
  host.parallel_for(tasks, shared ? std::max<std::int64_t>(1, grain / task_size) : tasks, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {  // the tasks of one panel, as far as one block of b goes
      const std::int64_t task = begin % division.tasks, column = begin / division.tasks % panels * panel_width<T>;
      const std::int64_t block = begin / (division.tasks * panels) % division.blocks;
      const std::int64_t entry = begin / (division.tasks * panels * division.blocks);
      const std::int64_t count = std::min({end - begin, division.tasks - task, max_rows / task_rows});
      const std::int64_t first = block * division.tasks + task;
      const std::int64_t row = division.begin(first);
      multiply_part(p, batch.offsets(entry), p.y + entry * m * n, row, division.begin(first + count) - row, column);
      begin += count;
    }
  });
}

template bool suits_tiles(const Product<float>&);
template bool suits_tiles(const Product<double>&);
template void multiply_by_tiles(const sdk::Host&, const Product<float>&, const StridedLoop<2>&);
template void multiply_by_tiles(const sdk::Host&, const Product<double>&, const StridedLoop<2>&);

}  // namespace tenon::openblas
