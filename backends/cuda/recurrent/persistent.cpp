// SPDX-License-Identifier: Apache-2.0
#include "recurrent/persistent.h"

#include <algorithm>
#include <limits>

namespace tenon::cuda {
namespace {

// The cost of a time step, in clocks of a multiprocessor. Per chunk, 16 bytes of the state, a warp
//
//   reads   its weights, 512 bytes of each gate (256 of 16-bit weights) at 128 bytes a clock: 4 clocks (2) a gate; and the chunks of each
//           row's state, `rows` chunks next to each other that several threads share: 4 clocks a row, as many as for 512 bytes that
//           nobody shares, or 2 with the 2 chunks of 2 rows. A gradient multiplies gates instead of states: that much a row and gate.
//   sums    rows x gates x 4 multiplications and additions a thread, 32 threads at 128 a clock; in f64 2 at 64
//
// and the reads overlap with the sums, so that the longer one counts. With few warps the latency of both counts instead, which is
// `iteration_clocks`: that is why a block of 2 rows is not the fastest for a small batch of a layer with few units.
//
// Weights in registers are not read: a block of few threads has registers for some, so that 128 units of lstm fit, too.
//
// The floor of a step is to read the weights once: gates x units^2 elements at 128 bytes a clock, 512 clocks for 64 units of lstm in f32,
// 0.3 us at 1.75 GHz. `step_clocks` is the rest: shuffles, the cell, one barrier (two in gru, if its reset state is multiplied), and the
// latency of loads. All numbers are derived from NVIDIA's tables for Hopper or estimated, none was measured.
constexpr double step_clocks = 800, iteration_clocks = 100;
constexpr double read_bytes_per_clock = 128, warp = 32;

// What a step takes by a product and a kernel, which is mostly launches: estimated as 7 to 8 us on an H200.
constexpr double launched_step_clocks = 12'000;

/// The elements of a chunk.
std::int64_t chunk_of(const PersistentProblem& p) {
  return static_cast<std::int64_t>(16 / p.state_bytes);
}

/// The elements of a row of a vector. The threads of a warp write `warp / rows` units of each row at once. Shared memory has 32 banks of 4
/// bytes: lines that begin that many elements apart, modulo the banks, put all of these into different ones. Elements of 8 bytes are
/// written by 16 threads at a time. A line is still a multiple of 16 bytes.
int padded_line(const PersistentProblem& p, const PersistentPlan& plan) {
  const int banks = static_cast<int>(128 / p.state_bytes), least = plan.iterations * plan.rows * static_cast<int>(chunk_of(p));
  const int wanted = banks / plan.rows;
  return least + (wanted - least % banks + banks) % banks;
}

double clocks_of_step(const PersistentProblem& p, const PersistentPlan& plan, int multiprocessors) {
  const auto chunk = static_cast<double>(chunk_of(p)), gates = static_cast<double>(p.gates);
  const double from_shared = 1 - static_cast<double>(plan.kept) / plan.iterations;
  const double weights = gates * chunk * static_cast<double>(p.weight_bytes) * warp / read_bytes_per_clock;
  const double state_read = plan.rows == 2 ? 2 : 4;
  const double reads = from_shared * weights + (p.gradient ? gates : 1) * plan.rows * state_read;
  const double sums = gates * plan.rows * chunk * warp / (p.state_bytes == 8 ? 64 : 128);
  const std::int64_t blocks = p.directions * plan.groups;
  const auto waves = static_cast<double>((blocks + multiprocessors - 1) / multiprocessors);
  return step_clocks + waves * plan.iterations * std::max(plan.threads / warp * std::max(reads, sums), iteration_clocks);
}

}  // namespace

PersistentPlan plan_persistent(const PersistentProblem& p, int multiprocessors, std::size_t shared_limit) {
  PersistentPlan best;
  if (p.steps < 2 || p.steps > std::numeric_limits<int>::max() || p.batch < 1 || p.units < 1 || p.units > max_persistent_threads(0))
    return best;
  double best_clocks = launched_step_clocks;
  const std::int64_t chunk = chunk_of(p);
  struct Form {
    int rows, kept;
  };
  for (const auto [rows, kept] : {Form{2, 0}, Form{4, 0}, Form{8, 0}, Form{2, kept_iterations}}) {
    PersistentPlan plan;
    plan.rows = rows;
    plan.kept = kept;
    plan.threads = static_cast<int>((p.units * rows + 31) / 32 * 32);
    if (plan.threads > max_persistent_threads(kept)) continue;
    plan.iterations = static_cast<int>((p.units + rows * chunk - 1) / (rows * chunk));
    if (plan.iterations < kept) continue;
    plan.groups = (p.batch + rows - 1) / rows;
    plan.line = padded_line(p, plan);
    plan.vectors_at = static_cast<std::size_t>((plan.iterations - kept) * p.gates * chunk * plan.threads) * p.weight_bytes;
    plan.shared_bytes = plan.vectors_at + static_cast<std::size_t>(std::int64_t{p.vectors} * rows * plan.line) * p.state_bytes;
    if (plan.shared_bytes > shared_limit) continue;
    const double clocks = clocks_of_step(p, plan, multiprocessors);
    if (clocks >= best_clocks) continue;
    best = plan;
    best_clocks = clocks;
  }
  return best;
}

}  // namespace tenon::cuda
