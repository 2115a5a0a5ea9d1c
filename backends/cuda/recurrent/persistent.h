// SPDX-License-Identifier: Apache-2.0
// persistent.h - whether all time steps of a layer run in one kernel, and with which blocks (ADR 88). The kernels are in persistent.cuh.
//
// A block computes some rows of the batch in one direction, from the first time step to the last. It keeps the recurrent weights in shared
// memory, each thread its own, and the state too, so that a step waits for nothing but the block's own threads.
//
// With `recurrent: cooperative`, for weights that may be larger, a group of blocks shares the units of the same rows. Each keeps the
// weights of its own units, and a copy of the whole state: in each step these blocks exchange their parts of it through global memory, and
// wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::cuda {

/// What the kernel of a layer, or of its gradient, computes.
struct PersistentProblem {
  std::int64_t steps, batch, directions, units, gates;
  std::size_t weight_bytes;  ///< of an element of the weights
  std::size_t state_bytes;   ///< of an element of states and sums: 4, 8 for f64
  int vectors;               ///< of `units` elements, that a row has in shared memory
  int exchanges;             ///< times in a step that a unit waits for what others have computed
  bool gradient;             ///< a unit sums over all gates of all units, not each of its gates over all units
};

/// What is to be launched on a device.
struct PersistentLimits {
  int multiprocessors;
  std::size_t shared_bytes;  ///< of a block
  bool groups;               ///< of at least two blocks, by cooperative launches; false: single blocks, by others
};

struct PersistentPlan {
  int rows = 0;                ///< of the batch, computed by a block: 2, 4, 8. 0: there is no such kernel for this layer
  int members = 1;             ///< blocks that share the units of the same rows, by a cooperative launch; 1: a block has all units
  int block_units = 0;         ///< of a block; the last member may have fewer
  int tile = 1;                ///< units whose sums the same threads share
  int threads = 0;             ///< of a block: rows x tile threads share the sums of a tile, and each then computes one unit of one row
  int kept = 0;                ///< iterations whose weights a thread keeps in registers, not in shared memory
  int iterations = 0;          ///< chunks of weights of each gate that a thread has; a chunk is what 16 bytes of a state are multiplied by
  std::int64_t groups = 0;     ///< sets of rows of a direction, each with `members` blocks
  int line = 0;                ///< elements of a row of a vector, with padding
  std::size_t vectors_at = 0;  ///< bytes of shared memory before the vectors
  std::size_t shared_bytes = 0;  ///< all of it
  std::int64_t exchanged = 0;    ///< elements in global memory by which members exchange vectors
  explicit operator bool() const { return rows != 0; }
};

inline constexpr int kept_iterations = 4;  ///< of PersistentPlan::kept, if any are
/// Of plans with several members.
inline constexpr int group_rows = 8, group_gradient_tile = 4;
/// The threads of a block: of a multiprocessor's registers each has as many as its sums, and the weights that it keeps, need.
constexpr int max_persistent_threads(int kept, bool grouped) {
  return kept == 0 && !grouped ? 512 : 256;
}

/// The one place that says which layers have a persistent kernel. Of any direction, activation and cell it is every layer
/// - of at least two time steps and with results,
/// - whose recurrent weights of one direction, and a few vectors, fit into the shared memory and registers of a block: for 227 KB up to 128
///   units of lstm and gru and 232 of rnn with f32 weights; with weights of 16 bits 160, 192 and 256,
/// - or, if groups are wanted, into those of several blocks, where each set of rows has so many and all of them run at once: launch
///   bounds and `shared_bytes` make sure that a multiprocessor holds one,
/// - for which the cost formula of persistent.cpp, with the first read of the weights, gives less time than launches of each step take: it
///   gives more for large batches, and for 2 or 3 steps of some layers with many units.
PersistentPlan plan_persistent(const PersistentProblem& problem, const PersistentLimits& limits);

}  // namespace tenon::cuda
