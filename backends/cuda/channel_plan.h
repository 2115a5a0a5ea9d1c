// channel_plan.h - operands seen as (outer, channels, inner), and which threads make one number of each channel. Host-side logic:
// channels.cuh does what it says.
//
// A plan depends on the shape and on whether packs can be read, so that the order of a sum is the same on every GPU.
#pragma once

#include <cstdint>

#include <tenon/sdk/kernel.h>

namespace tenon::cuda {

/// Dense: element (o, c, i) lies at (o channels + c) inner + i.
struct Channels {
  std::int64_t outer = 1, count = 1, inner = 1;

  constexpr std::int64_t elements() const { return outer * count * inner; }
  constexpr std::int64_t of_each() const { return outer * inner; }
};

/// Around the axis that an op on batches of channels names, as the operand lies.
Channels channels_around(const sdk::Call& call, const sdk::Operand& x, std::int64_t axis);
/// The lines from `axis` on, each as a channel.
Channels lines_from(const sdk::Operand& x, std::int64_t axis);

/// Packs of a channel are its units, counted from its first to its last; where channels come last, its rows are.
///
/// Lines    (columns is false) `lanes` neighbouring threads walk along one channel: over packs of a run of `inner` elements, and on to
///          the next run.
/// Columns  (inner = 1) each of `lanes` threads has `width` channels of its own, and their rows are shared by `groups` such sets of
/// threads.
struct ChannelPlan {
  Channels at;
  std::int64_t units = 0;  ///< of a channel
  std::int64_t part = 0;   ///< units that one block looks at
  std::int64_t tiles = 0;  ///< sets of channels that a block has at once
  std::int64_t run = 1;    ///< lines: units of a run
  int splits = 1;          ///< blocks that share a channel
  int width = 1;           ///< elements of a pack
  int lanes = 1;           ///< lines: a power of two
  int groups = 1;          ///< lanes * groups threads of a block have work
  bool columns = false;

  std::int64_t blocks() const { return tiles * splits; }
  /// What blocks leave for each other lies as (split, channel).
  std::int64_t partials() const { return splits > 1 ? splits * at.count : 0; }
};

/// For packs of `widest` elements or of one.
ChannelPlan plan_channels(const Channels& at, int widest);

/// The larger of the numbers of partial results with packs and without.
std::int64_t partials_of(const Channels& at, int widest);

/// How many threads of a block share what `splits` blocks have left for a channel: a power of two.
int groups_for(std::int64_t splits);

}  // namespace tenon::cuda
