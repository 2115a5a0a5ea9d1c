// SPDX-License-Identifier: Apache-2.0
// persistent.h - whether all time steps of a layer run in one kernel, and with which blocks (ADR 88). The kernels are in persistent.cuh.
//
// A block computes some rows of the batch in one direction, from the first time step to the last. It keeps the recurrent weights in shared
// memory, each thread its own, and the state too, so that a step waits for nothing but the block's own threads.
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
  bool gradient;             ///< a unit sums over all gates of all units, not each of its gates over all units
};

struct PersistentPlan {
  int rows = 0;                ///< of the batch, computed by a block: 2, 4, 8. 0: there is no such kernel for this layer
  int threads = 0;             ///< of a block: `rows` threads share the sums of a unit, and each then computes the unit of one row
  int kept = 0;                ///< iterations whose weights a thread keeps in registers, not in shared memory
  int iterations = 0;          ///< chunks of weights of each gate that a thread has; a chunk is what 16 bytes of a state are multiplied by
  std::int64_t groups = 0;     ///< blocks of a direction
  int line = 0;                ///< elements of a row of a vector, with padding
  std::size_t vectors_at = 0;  ///< bytes of shared memory before the vectors
  std::size_t shared_bytes = 0;  ///< all of it
  explicit operator bool() const { return rows != 0; }
};

inline constexpr int kept_iterations = 4;  ///< of PersistentPlan::kept, if any are
/// The threads of a block: of a multiprocessor's registers each has as many as its sums, and the weights that it keeps, need.
constexpr int max_persistent_threads(int kept) {
  return kept == 0 ? 512 : 256;
}

/// The one place that says which layers have a persistent kernel. Of any direction, activation and cell it is every layer
/// - of at least two time steps and with results,
/// - whose recurrent weights of one direction, and a few vectors, fit into `shared_limit` bytes and registers: for 227 KB up to 128 units
///   of lstm and gru and 232 of rnn with f32 weights; with weights of 16 bits 160, 192 and 256,
/// - whose batch is not so large that the blocks of a step, one after the other, take longer than launches.
PersistentPlan plan_persistent(const PersistentProblem& problem, int multiprocessors, std::size_t shared_limit);

}  // namespace tenon::cuda
