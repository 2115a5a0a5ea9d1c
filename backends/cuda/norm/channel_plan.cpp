// SPDX-License-Identifier: Apache-2.0
#include "norm/channel_plan.h"

#include <algorithm>
#include <bit>

#include "reduce/reduction_plan.h"

namespace tenon::cuda {
namespace {

/// Blocks that keep the memory of a large GPU busy: eight for each of 132 multiprocessors, which hold two to four of them at once.
constexpr std::int64_t enough_blocks = 1056;
constexpr int warp = 32;

std::int64_t up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
int power_of_two(std::int64_t x, int max) {
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(x, 1, max))));
}

}  // namespace

Channels channels_around(const sdk::Call& call, const sdk::Operand& x, std::int64_t axis) {
  if (call.channels_last) axis = axis == 0 ? 0 : axis == 1 ? std::int64_t{x.rank} - 1 : axis - 1;
  const sdk::AxisView view = sdk::around_axis(x, axis);
  if (view.n == 1) return {1, 1, view.outer * view.inner};
  return {view.outer, view.n, view.inner};
}

Channels lines_from(const sdk::Operand& x, std::int64_t axis) {
  const sdk::AxisView view = sdk::around_axis(x, axis);
  return {1, view.outer, view.n * view.inner};
}

ChannelPlan plan_channels(const Channels& at, int widest) {
  ChannelPlan plan;
  plan.at = at;
  plan.columns = at.inner == 1;
  plan.width = (plan.columns ? at.count : at.inner) % widest == 0 ? widest : 1;
  std::int64_t sharing = 0;  // threads that share a channel
  if (plan.columns) {
    const std::int64_t packs = at.count / plan.width;
    plan.units = at.outer;
    // A warp across neighbouring columns reads whole cache lines. With fewer columns, neighbouring threads read the next row.
    plan.lanes = static_cast<int>(std::clamp<std::int64_t>(packs, 1, warp));
    plan.groups = reduction_threads / plan.lanes;
    plan.tiles = up(packs, plan.lanes);
    sharing = plan.groups;
  } else {
    plan.run = at.inner / plan.width;
    plan.by_run = Divisor(plan.run);
    plan.units = at.outer * plan.run;
    plan.lanes = power_of_two(up(plan.units, batch), reduction_threads);
    plan.groups = reduction_threads / plan.lanes;
    plan.tiles = up(at.count, plan.groups);
    sharing = plan.lanes;
  }
  const std::int64_t max_splits = std::max<std::int64_t>(enough_blocks / std::max<std::int64_t>(plan.tiles, 1), 1);
  const std::int64_t splits = std::clamp<std::int64_t>(plan.units / (sharing * batch * 2), 1, max_splits);
  plan.part = up(plan.units, splits);
  plan.splits = plan.part == 0 ? 1 : static_cast<int>(up(plan.units, plan.part));
  return plan;
}

std::int64_t partials_of(const Channels& at, int widest) {
  return std::max(plan_channels(at, widest).partials(), plan_channels(at, 1).partials());
}

int groups_for(std::int64_t splits) {
  return power_of_two(up(splits, batch), reduction_threads);
}

}  // namespace tenon::cuda
