// SPDX-License-Identifier: Apache-2.0
// train/program/parallel.h - data parallelism: what the program of one rank computes for a batch that several ranks share.
#pragma once

#include <cstdint>
#include <vector>

#include "layers/forward.h"
#include "train/program/builder.h"
#include "train/program/loss_scale.h"
#include "train/program/objective.h"

namespace tenon::train {

/// The samples [begin, end) of a batch that a rank gets.
struct BatchPart {
  std::int64_t begin = 0, end = 0;
  layers::BatchShare share;  ///< a rank without samples gets one that does not count
  std::int64_t size() const { return end - begin; }
};
/// The part of rank `rank` of `ranks`. `shares`: as in ParallelOptions. batch >= 1.
BatchPart part_of(std::int64_t batch, int rank, int ranks, const std::vector<double>& shares);

/// What a step needs of a batch, on a rank: sums over all of them.
struct Gradients {
  std::vector<Value> of;  ///< of each parameter
  Value weight;           ///< of `of` in the mean over several batches: a scalar of the parameters' dtype
};

/// Owners of these parameters among `ranks` ranks, balanced by bytes: the largest first, each to the rank that has least.
std::vector<int> balanced_owners(const std::vector<ParameterSpec>& parameters, int ranks);

/// Appends broadcasts of the parameters by their owners, after the updates that build_step has added: updates of the others.
void broadcast_updates(Graph& graph, const Forward& forward, const Shards& shards);

/// The sums of the values over the ranks, in buckets of values of one dtype of at least `bucket_size_bytes` (0: one for each dtype), in the
/// order in which they are computed.
std::vector<Value> sum_over_ranks(const std::vector<Value>& values, std::uint64_t bucket_size_bytes);

/// Turns the loss, the metrics and the next states of this rank's part into those of the whole batch, each rank with its weight, and
/// returns the gradients: `summed`, or as a step of several batches adds them up before the ranks do.
Gradients build_rank_gradients(Graph& graph, const layers::BatchShare& share, Forward& forward, Objective& objective,
                               const LossScale& scale, bool summed, std::uint64_t bucket_size_bytes);

}  // namespace tenon::train
