// SPDX-License-Identifier: Apache-2.0
// reduction_plan.h - how the threads of a reduction are assigned to results. Host side; reduction.cuh holds the kernels.
//
// A plan depends on shapes, strides and whether packs can be read, not on the number of multiprocessors, and the order of a sum depends
// only on its plan. So the same graph gives the same bits on every GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/layout.h"

namespace tenon::cuda {

inline constexpr int reduction_threads = 256;  ///< threads of a block
inline constexpr int batch = 4;                ///< packs that a thread loads before it uses the first

/// y[line] = reduction of the terms x[line, ...].
///
/// Lines    (columns is false) `lanes` neighbouring threads traverse one line, so that neighbours read neighbouring packs.
/// Columns  neighbouring lines are neighbours in memory: each of `lanes` threads has `width` lines of its own;
///          reduction_threads / lanes rows of such threads share their terms.
struct ReductionPlan {
  DividedLayout kept;        ///< the lines; for columns, packs of lines
  DividedLayout reduced;     ///< the terms of a line; for lines, packs of terms
  std::int64_t results = 1;  ///< lines
  std::int64_t terms = 1;    ///< of a line
  std::int64_t tail = 0;     ///< terms after the last pack of a line
  std::int64_t tiles = 0;    ///< sets of lines that one block computes at once
  std::int64_t part = 0;     ///< elements of `reduced` that one block reads
  int splits = 1;            ///< blocks that share a line: of several, the last or a second kernel combines the partial results
  int width = 1;             ///< elements of a pack
  int lanes = 1;             ///< neighbouring threads, a power of two
  bool columns = false;

  /// Blocks of the grid; each tile is processed by `splits` blocks.
  std::int64_t blocks() const;
  /// The number of partial results; 0 if `splits` is 1.
  std::int64_t partials() const { return splits > 1 ? results * splits : 0; }
};

/// The plan of a reduction over the dimensions whose bits are set in `axes`; packs have `widest` elements or one.
ReductionPlan plan_reduction(const std::int64_t* shape, const std::int64_t* strides, std::uint32_t rank, std::uint32_t axes, int widest);

/// How rows of n elements are held in registers: `elements` in each of `lanes` neighbouring threads. elements = 0: the row is too long.
struct RowPlan {
  int lanes = 1, elements = 0;
};
RowPlan plan_rows(std::int64_t n);

}  // namespace tenon::cuda
