// reduction_plan.h - which threads make which results of a reduction. Host-side logic: reduction.cuh does what it says.
//
// A plan depends on shapes, on strides and on whether packs can be read, not on how many multiprocessors there are; the order of a sum
// depends on its plan alone. So the same graph gives the same bits on every GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout.h"

namespace tenon::cuda {

inline constexpr int reduction_threads = 256;  ///< of a block
inline constexpr int batch = 4;                ///< packs that a thread reads before it looks at the first of them

/// y[line] = the terms x[line, ...] made one.
///
/// Lines    (columns is false) `lanes` neighbouring threads walk along one line, so that neighbours read neighbouring packs.
/// Columns  neighbouring lines are neighbours in memory: each of `lanes` threads has `width` lines of its own, and the terms of those are
///          shared by reduction_threads / lanes rows of such threads.
struct ReductionPlan {
  Layout<1> kept;            ///< the lines; where columns are read, packs of them
  Layout<1> reduced;         ///< the terms of a line; where lines are read, packs of them
  std::int64_t results = 1;  ///< lines
  std::int64_t terms = 1;    ///< of a line
  std::int64_t tail = 0;     ///< terms behind the last pack of a line
  std::int64_t tiles = 0;    ///< sets of lines that a block makes at once
  std::int64_t part = 0;     ///< how much of `reduced` one block looks at
  int splits = 1;            ///< blocks that share a line: more than one leave partial results, for a second kernel
  int width = 1;             ///< elements of a pack
  int lanes = 1;             ///< threads side by side, a power of two
  bool columns = false;

  /// Of the grid: every tile is somebody's, `splits` times.
  std::int64_t blocks() const;
  /// Partial results, if `splits` > 1.
  std::int64_t partials() const { return splits > 1 ? results * splits : 0; }
};

/// The plan of a reduction over the dimensions whose bits are set in `axes`; packs are of `widest` elements or of one.
ReductionPlan plan_reduction(const std::int64_t* shape, const std::int64_t* strides, std::uint32_t rank, std::uint32_t axes, int widest);

/// How rows of n elements are held in registers: `lanes` neighbouring threads, `elements` of each. elements = 0: the row is too long.
struct RowPlan {
  int lanes = 1, elements = 0;
};
RowPlan plan_rows(std::int64_t n);

}  // namespace tenon::cuda
