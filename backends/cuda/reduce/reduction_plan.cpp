// SPDX-License-Identifier: Apache-2.0
#include "reduce/reduction_plan.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace tenon::cuda {
namespace {

/// Blocks that keep the memory of a large GPU busy: four on each of 132 multiprocessors, with 64 bytes in flight per thread.
constexpr std::int64_t enough_blocks = 528;
/// Long lines are split over up to four times as many blocks, of at least so many batches a thread: as blocks end one after another, the
/// last ones leave less of the memory idle (4 % of the time for 2^28 elements).
constexpr std::int64_t blocks_of_long_lines = 4 * enough_blocks, batches_of_long_lines = 8;
/// Above this, a block processes several tiles in sequence: starting a block costs as much as a few loads.
constexpr std::int64_t max_blocks = 16 * enough_blocks;
constexpr int warp = 32;

std::int64_t up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
/// The smallest power of two >= x, at most `max`.
int power_of_two(std::int64_t x, int max) {
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(x, 1, max))));
}

Layout<1> part_of(const std::int64_t* shape, const std::int64_t* strides, std::uint32_t rank, std::uint32_t axes) {
  std::int64_t sizes[TENON_MAX_RANK];
  sdk::Strides steps{};
  std::uint32_t count = 0;
  for (std::uint32_t d = 0; d < rank; ++d) {
    if ((axes >> d & 1u) == 0) continue;
    sizes[count] = shape[d];
    steps[count++] = strides[d];
  }
  return collapse<1>(sizes, count, {steps});
}

/// The absolute stride of the innermost dimension; 0 if there is none.
std::int64_t inner_stride(const Layout<1>& layout) {
  return layout.rank == 0 ? 0 : std::abs(layout.strides[0][layout.rank - 1]);
}
bool outer_strides_divide(const Layout<1>& layout, int dimensions, int width) {
  for (int d = 0; d < dimensions; ++d) {
    if (layout.strides[0][d] % width != 0) return false;
  }
  return true;
}
/// True if the innermost dimension divides into packs that start at multiples of their size; the other operand's strides do not matter yet.
bool packs_inner(const Layout<1>& layout, int width, bool tail_allowed) {
  if (layout.rank == 0 || layout.strides[0][layout.rank - 1] != 1) return false;
  const std::int64_t size = layout.sizes[layout.rank - 1];
  return size >= width && (tail_allowed || size % width == 0) && outer_strides_divide(layout, layout.rank - 1, width);
}
void pack_inner(Layout<1>& layout, int width) {
  const int inner = layout.rank - 1;
  layout.count = layout.count / layout.sizes[inner] * (layout.sizes[inner] / width);
  layout.sizes[inner] /= width;
  layout.strides[0][inner] *= width;
}

void choose_lines(ReductionPlan& plan) {
  const std::int64_t packs = plan.reduced.count;
  plan.lanes = power_of_two(packs, warp);
  // A long line takes a whole block; so does a shorter one if there are too few lines.
  while (plan.lanes < reduction_threads && (packs >= reduction_threads * batch ||
                                            (plan.results * plan.lanes < enough_blocks * reduction_threads && packs >= 2 * plan.lanes))) {
    plan.lanes *= 2;
  }
  plan.tiles = up(plan.results, reduction_threads / plan.lanes);
}

void choose_columns(ReductionPlan& plan) {
  const std::int64_t terms = plan.reduced.count;
  int groups = power_of_two(up(terms, batch), reduction_threads / warp);
  // Threads beyond the innermost dimension would not read neighbouring elements, so they share the terms instead.
  const std::int64_t inner = plan.kept.sizes[plan.kept.rank - 1];
  while (reduction_threads / groups / 2 >= inner && groups < terms && groups < reduction_threads) groups *= 2;
  plan.lanes = reduction_threads / groups;
  plan.tiles = up(plan.kept.count, plan.lanes);
}

}  // namespace

std::int64_t ReductionPlan::blocks() const {
  return splits > 1 ? tiles * splits : std::min(tiles, max_blocks);
}

ReductionPlan plan_reduction(const std::int64_t* shape, const std::int64_t* strides, std::uint32_t rank, std::uint32_t axes, int widest) {
  ReductionPlan plan;
  plan.kept = {part_of(shape, strides, rank, ~axes), {}};
  plan.reduced = {part_of(shape, strides, rank, axes), {}};
  plan.results = plan.kept.count;
  plan.terms = plan.reduced.count;
  if (plan.results == 0 || plan.terms == 0) {  // there is nothing to read
    plan.lanes = 1;
    plan.tiles = up(plan.results, reduction_threads);
    return plan;
  }
  plan.columns = plan.kept.rank > 0 && (plan.reduced.rank == 0 || inner_stride(plan.kept) < inner_stride(plan.reduced));
  Layout<1>& packed = plan.columns ? plan.kept : plan.reduced;
  const Layout<1>& other = plan.columns ? plan.reduced : plan.kept;
  if (packs_inner(packed, widest, !plan.columns && packed.rank == 1) && outer_strides_divide(other, other.rank, widest)) {
    plan.width = widest;
    plan.tail = packed.sizes[packed.rank - 1] % widest;
    pack_inner(packed, widest);
  }
  plan.kept.settle();
  plan.reduced.settle();
  if (plan.columns) {
    choose_columns(plan);
  } else {
    choose_lines(plan);
  }
  const std::int64_t sharing = plan.columns ? reduction_threads / plan.lanes : plan.lanes;  // threads that share a line
  const std::int64_t batches = plan.reduced.count / (sharing * batch);
  const std::int64_t few = std::min(batches, enough_blocks / plan.tiles);
  const std::int64_t many = std::min(batches / batches_of_long_lines, blocks_of_long_lines / plan.tiles);
  const std::int64_t splits = std::max<std::int64_t>({few, enough_blocks / plan.tiles > 1 ? many : 1, 1});
  plan.part = up(plan.reduced.count, splits);
  plan.splits = static_cast<int>(up(plan.reduced.count, plan.part));
  return plan;
}

RowPlan plan_rows(std::int64_t n) {
  RowPlan plan;
  if (n > reduction_threads * 32) return plan;
  plan.lanes = power_of_two(up(n, 4), warp);
  while (up(n, plan.lanes) > 16 && plan.lanes < reduction_threads) plan.lanes *= 2;
  plan.elements = std::max(4, power_of_two(up(n, plan.lanes), 32));
  return plan;
}

}  // namespace tenon::cuda
