// SPDX-License-Identifier: Apache-2.0
#include "gemm/tile_products.h"

#include <algorithm>
#include <array>
#include <atomic>

#include <tenon/sdk/rounding.h>

#include "gemm/panels.h"
#include "simd/instruction_set.h"

namespace tenon::openblas {
namespace {

/// Multiply-adds worth a second thread, about 10 us, and those of the smallest piece of a thread's work.
constexpr std::int64_t smallest_shared = 1'500'000, grain = 100'000;
/// Rows of a task, at most: a register tile of AVX-512, or two of the others.
constexpr std::int64_t avx512_task_rows = 14, other_task_rows = 12;
/// The time of a task of a whole panel, and of one with at most half the columns: its tiles wait for loads.
constexpr std::int64_t whole_cost = 8, half_cost = 5;
/// Most rows for which a block of b is packed once: with sums of several blocks, and with one.
constexpr std::int64_t max_rows = 168, max_rows_of_one_block = 392;
/// The longest sum of one block.
constexpr std::int64_t one_block = 512;
/// Bytes of a that stay in L2 while all panels pass, or of b while all rows pass.
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

/// How a product is divided: its rows into blocks, and these into tasks, each of one panel. All panels pass a block before the next one. A
/// block is small if b stays in L2, so that a thread writes rows from end to end: kernels that divide elements find most of them in the
/// cache of the thread that wrote them, and no other core has to give them up when they are written again. Else a block is as large as a
/// may be to stay in L2.
struct Division {
  Division(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t element_size, std::int64_t panel_columns)
      : rows(m), panels(sdk::ceil_div(n, panel_columns)) {
    const std::int64_t resident_rows = std::max(max_rows, resident_bytes / (k * element_size));
    const std::int64_t call_rows = k <= one_block ? std::min(resident_rows, max_rows_of_one_block) : max_rows;
    const std::int64_t block_rows = k * n * element_size <= resident_bytes ? call_rows : resident_rows;
    const std::int64_t task_rows = instruction_set() >= InstructionSet::avx512 ? avx512_task_rows : other_task_rows;
    blocks = sdk::ceil_div(m, block_rows);
    tasks = sdk::ceil_div(sdk::ceil_div(m, blocks), task_rows);
    max_count = call_rows / task_rows;
    last_cost = n - (panels - 1) * panel_columns > panel_columns / 2 ? whole_cost : half_cost;
  }
  std::int64_t tasks_of_block() const { return panels * tasks; }
  std::int64_t cost_of_block() const { return ((panels - 1) * whole_cost + last_cost) * tasks; }
  /// The first row of a task of a block, tasks as in all blocks together.
  std::int64_t begin(std::int64_t task) const { return task * rows / (blocks * tasks); }
  /// The first task that begins at this cost or later.
  std::int64_t task_at(std::int64_t cost) const {
    const std::int64_t block = cost / cost_of_block(), rest = cost % cost_of_block(), whole = (panels - 1) * tasks;
    const std::int64_t task =
        rest <= whole * whole_cost ? sdk::ceil_div(rest, whole_cost) : whole + sdk::ceil_div(rest - whole * whole_cost, last_cost);
    return block * tasks_of_block() + task;
  }

  std::int64_t rows, panels;
  std::int64_t blocks;     ///< of all rows
  std::int64_t tasks;      ///< of a block and a panel
  std::int64_t max_count;  ///< of tasks for which lines of b are packed once
  std::int64_t last_cost;  ///< of a task of the last panel
};

/// The tasks that a thread takes first; the others take what is left of them when they have finished theirs.
struct alignas(64) Share {
  std::atomic<std::int64_t> next{0};
  std::int64_t end = 0;
};

/// Takes some tasks of one panel: all, or half of the share where that is less, but at least `smallest` unless there are fewer. Since each
/// call packs b again, there are few; the last ones are short, so that threads end at the same time. False if there are none left.
bool take(Share& share, const Division& division, std::int64_t smallest, std::int64_t& out_begin, std::int64_t& out_count) {
  std::int64_t begin = share.next.load(std::memory_order_relaxed), count = 0;
  do {
    if (begin >= share.end) return false;
    const std::int64_t left = share.end - begin;
    const std::int64_t of_panel = std::min({left, division.tasks - begin % division.tasks, division.max_count});
    const std::int64_t wanted = std::max(smallest, (left + 1) / 2);
    count = wanted + smallest >= of_panel ? of_panel : wanted;
  } while (!share.next.compare_exchange_weak(begin, begin + count, std::memory_order_relaxed));
  out_begin = begin;
  out_count = count;
  return true;
}

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
    if (epilogue.relu_result != nullptr) part.relu_result = epilogue.relu_result + row * n + column;
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
  const Division division(m, n, k, sizeof(T), panel_width<T>);
  const std::int64_t blocks = batch.count * division.blocks, tasks = blocks * division.tasks_of_block();
  const std::int64_t task_size = sdk::ceil_div(m, division.blocks * division.tasks) * k * panel_width<T>;
  const std::int64_t smallest = std::max<std::int64_t>(1, grain / task_size);
  const auto multiply_tasks = [&](std::int64_t begin, std::int64_t count) {
    const std::int64_t task = begin % division.tasks, column = begin / division.tasks % division.panels * panel_width<T>;
    const std::int64_t block = begin / division.tasks_of_block() % division.blocks;
    const std::int64_t entry = begin / (division.tasks_of_block() * division.blocks);
    const std::int64_t first = block * division.tasks + task;
    const std::int64_t row = division.begin(first);
    multiply_part(p, batch.offsets(entry), p.y + entry * m * n, row, division.begin(first + count) - row, column);
  };
  constexpr std::int64_t max_shares = 64;
  const std::int64_t threads = task_size * tasks < smallest_shared
                                   ? 1
                                   : std::clamp<std::int64_t>(tasks / smallest, 1, std::max<std::int64_t>(1, host.thread_count()));
  const std::int64_t shares = std::min(threads, max_shares);
  std::array<Share, max_shares> share_of;
  for (std::int64_t i = 0; i < shares; ++i) {
    Share& share = share_of[static_cast<std::size_t>(i)];
    share.next.store(division.task_at(i * blocks * division.cost_of_block() / shares), std::memory_order_relaxed);
    share.end = division.task_at((i + 1) * blocks * division.cost_of_block() / shares);
  }
  host.parallel_for(threads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t own = begin; own < end; ++own) {
      for (std::int64_t i = 0, first = 0, count = 0; i < shares; ++i) {
        while (take(share_of[static_cast<std::size_t>((own + i) % shares)], division, smallest, first, count)) multiply_tasks(first, count);
      }
    }
  });
}

template bool suits_tiles(const Product<float>&);
template bool suits_tiles(const Product<double>&);
template void multiply_by_tiles(const sdk::Host&, const Product<float>&, const StridedLoop<2>&);
template void multiply_by_tiles(const sdk::Host&, const Product<double>&, const StridedLoop<2>&);

}  // namespace tenon::openblas
