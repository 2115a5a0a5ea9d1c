// SPDX-License-Identifier: Apache-2.0
// channel_plan.h - operands viewed as (outer, channels, inner), and how threads are assigned to the reduction of each channel. Host side;
// channels.cuh holds the kernels.
//
// A plan depends on the shape and on whether packs can be read, so that the order of a sum is the same on every GPU.
#pragma once

#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "kernel/divisor.h"

namespace tenon::cuda {

/// Dense: element (o, c, i) is at (o channels + c) inner + i.
struct Channels {
  std::int64_t outer = 1, count = 1, inner = 1;

  constexpr std::int64_t elements() const { return outer * count * inner; }
  constexpr std::int64_t of_each() const { return outer * inner; }
};

/// The view around the channel axis of an op, for the layout of the operand.
Channels channels_around(const sdk::Call& call, const sdk::Operand& x, std::int64_t axis);
/// Treats each line from `axis` on as a channel.
Channels lines_from(const sdk::Operand& x, std::int64_t axis);

/// The units of a channel are its packs, in order; with channels last, they are its rows.
///
/// Lines    (columns is false) `lanes` neighbouring threads traverse one channel: the packs of a run of `inner` elements, then the
///          next run.
/// Columns  (inner = 1) each of `lanes` threads has `width` channels of its own; `groups` such sets of threads share the rows.
struct ChannelPlan {
  Channels at;
  std::int64_t units = 0;  ///< of a channel
  std::int64_t part = 0;   ///< units that one block reads
  std::int64_t tiles = 0;  ///< blocks side by side over the channels
  std::int64_t run = 1;    ///< lines: units of a run
  Divisor by_run;
  int splits = 1;  ///< blocks that share a channel
  int width = 1;   ///< elements of a pack
  int lanes = 1;   ///< lines: a power of two
  int groups = 1;  ///< lanes * groups threads of a block are active
  bool columns = false;

  std::int64_t blocks() const { return tiles * splits; }
  /// Partial results, stored as (split, channel).
  std::int64_t partials() const { return splits > 1 ? splits * at.count : 0; }
};

/// The kinds of plans that an op can get, so that only their kernels are instantiated.
enum class Traversal { any, lines, columns };

/// Plans for packs of `widest` elements, or of one where those do not fit.
ChannelPlan plan_channels(const Channels& at, int widest);

/// The number of partial results to allocate: the larger of those with and without packs.
std::int64_t partials_of(const Channels& at, int widest);

/// How many threads of a block combine the `splits` partial results of a channel: a power of two.
int groups_for(std::int64_t splits);

}  // namespace tenon::cuda
