// SPDX-License-Identifier: Apache-2.0
#include "recurrent/persistent.h"

#include <algorithm>
#include <limits>

namespace tenon::cuda {
namespace {

// The cost of a kernel, in clocks of a multiprocessor: that of a time step for each of them, and the first read of the weights. In a step,
// per chunk, 16 bytes of the state, a warp
//
//   reads   its weights, 512 bytes of each gate (256 of 16-bit weights) at 128 bytes a clock: 4 clocks (2) a gate; and the chunks of each
//           row's state, `rows` chunks next to each other that several threads share: 4 clocks a row, as many as for 512 bytes that
//           nobody shares, or 2 with the 2 chunks of 2 rows. A gradient multiplies gates instead of states: that much a row and gate,
//           which is why its threads may have tiles of units: these share what is read of a row.
//   sums    rows x gates x tile x 4 multiplications and additions a thread, 32 threads at 128 a clock; in f64 2 at 64
//
// and the reads overlap with the sums, so that the longer one counts. With few warps the latency of both counts instead, which is
// `iteration_clocks`: that is why a block of 2 rows is not the fastest for a small batch of a layer with few units.
//
// Weights in registers are not read: a block of few threads has registers for some, so that 128 units of lstm fit, too.
//
// Members of a group also exchange vectors: they store, are counted by an atomic addition, see the last one counted and read, each of which
// goes to the L2 cache and back, about 500 clocks, and then copy a line of each row from there at 64 bytes a clock. The cache counts one
// member after the other.
//
// Before the first step each block reads its weights from global memory: from the L2 cache, except the first block to do so. A thread is
// charged as if it had the loads of one iteration in flight, and waits `cache_clocks` for them; and since all blocks read at once, a
// multiprocessor gets its share of what the cache delivers, estimated as 32 bytes a clock. The longer of both counts. With few steps it may
// be more than one kernel saves.
//
// The lower bound of a step is to read the weights once: gates x units^2 elements at 128 bytes a clock, 512 clocks for 64 units of lstm in
// f32, 0.3 us at 1.75 GHz. `step_clocks` is the rest: shuffles, the cell, one barrier (two in gru, if its reset state is multiplied), and
// the latency of loads. All numbers are derived from NVIDIA's tables for Hopper or estimated, none was measured.
constexpr double step_clocks = 800, iteration_clocks = 100;
constexpr double cache_clocks = 500, exchange_clocks = 4 * cache_clocks, member_clocks = 10, exchange_bytes_per_clock = 64;
constexpr double first_read_bytes_per_clock = 32;
constexpr double read_bytes_per_clock = 128, warp = 32;

// What a step takes by a product and a kernel, which is mostly launches, and includes that they read the weights: estimated as 7 to 8 us on
// an H200.
constexpr double launched_step_clocks = 12'000;

/// The elements of a chunk.
std::int64_t chunk_of(const PersistentProblem& p) {
  return static_cast<std::int64_t>(16 / p.state_bytes);
}

/// The elements of a vector that the chunks of an iteration have, next to each other.
std::int64_t iteration_of(const PersistentProblem& p, const PersistentPlan& plan) {
  return plan.rows * plan.tile * chunk_of(p);
}

/// The elements of a row of a vector. The threads of a warp write `warp / rows` units of each row at once. Shared memory has 32 banks of 4
/// bytes: lines that begin that many elements apart, modulo the banks, put all of these into different ones. Elements of 8 bytes are
/// written by 16 threads at a time. A line is still a multiple of 16 bytes.
int padded_line(const PersistentProblem& p, const PersistentPlan& plan) {
  const int banks = static_cast<int>(128 / p.state_bytes), least = plan.iterations * static_cast<int>(iteration_of(p, plan));
  const int wanted = banks / plan.rows;
  return least + (wanted - least % banks + banks) % banks;
}

std::int64_t blocks_of(const PersistentProblem& p, const PersistentPlan& plan) {
  return p.directions * plan.groups * plan.members;
}

double clocks_of_exchanges(const PersistentProblem& p, const PersistentPlan& plan) {
  if (plan.members == 1) return 0;
  const std::int64_t elements = (p.gradient ? p.gates : p.exchanges) * plan.rows * plan.line;
  return p.exchanges * (exchange_clocks + plan.members * member_clocks) +
         static_cast<double>(elements) * static_cast<double>(p.state_bytes) / exchange_bytes_per_clock;
}

/// The waves of the grid, if a multiprocessor runs one block at a time.
double waves_of(const PersistentProblem& p, const PersistentPlan& plan, int multiprocessors) {
  return static_cast<double>((blocks_of(p, plan) + multiprocessors - 1) / multiprocessors);
}

double clocks_of_step(const PersistentProblem& p, const PersistentPlan& plan, int multiprocessors) {
  const auto chunk = static_cast<double>(chunk_of(p)), gates = static_cast<double>(p.gates);
  const double from_shared = 1 - static_cast<double>(plan.kept) / plan.iterations;
  const double weights = plan.tile * gates * chunk * static_cast<double>(p.weight_bytes) * warp / read_bytes_per_clock;
  const double state_read = plan.rows == 2 ? 2 : 4;
  const double reads = from_shared * weights + (p.gradient ? gates : 1) * plan.rows * state_read;
  const double sums = gates * plan.rows * plan.tile * chunk * warp / (p.state_bytes == 8 ? 64 : 128);
  return step_clocks + clocks_of_exchanges(p, plan) +
         waves_of(p, plan, multiprocessors) * plan.iterations * std::max(plan.threads / warp * std::max(reads, sums), iteration_clocks);
}

double clocks_of_first_read(const PersistentProblem& p, const PersistentPlan& plan, int multiprocessors) {
  const double bytes = static_cast<double>(p.gates * plan.block_units * p.units) * static_cast<double>(p.weight_bytes);
  return waves_of(p, plan, multiprocessors) * std::max(plan.iterations * cache_clocks, bytes / first_read_bytes_per_clock);
}

double clocks_of(const PersistentProblem& p, const PersistentPlan& plan, int multiprocessors) {
  return clocks_of_first_read(p, plan, multiprocessors) + static_cast<double>(p.steps) * clocks_of_step(p, plan, multiprocessors);
}

struct Form {
  int rows, tile, kept;
};

/// The plan with so many rows, units of a tile and kept iterations, whose blocks have so many units. None if it is not possible.
PersistentPlan plan_of(const PersistentProblem& p, const PersistentLimits& limits, Form form, std::int64_t block_units) {
  PersistentPlan plan;
  const auto [rows, tile, kept] = form;
  const std::int64_t tiles = (block_units + tile - 1) / tile;
  plan.rows = rows;
  plan.tile = tile;
  plan.kept = kept;
  plan.block_units = static_cast<int>(block_units);
  plan.members = static_cast<int>((p.units + block_units - 1) / block_units);
  plan.threads = static_cast<int>((tiles * tile * rows + 31) / 32 * 32);
  if (plan.threads > max_persistent_threads(kept, plan.members > 1)) return {};
  plan.iterations = static_cast<int>((p.units + iteration_of(p, plan) - 1) / iteration_of(p, plan));
  if (plan.iterations < kept) return {};
  plan.groups = (p.batch + rows - 1) / rows;
  if (plan.members > 1 && blocks_of(p, plan) > limits.multiprocessors) return {};
  plan.line = padded_line(p, plan);
  plan.vectors_at = static_cast<std::size_t>((plan.iterations - kept) * p.gates * tile * chunk_of(p) * plan.threads) * p.weight_bytes;
  const std::int64_t vectors = std::int64_t{p.vectors} * rows * plan.line;
  plan.shared_bytes = plan.vectors_at + static_cast<std::size_t>(vectors) * p.state_bytes;
  if (plan.shared_bytes > limits.shared_bytes) return {};
  if (plan.members > 1) plan.exchanged = p.directions * plan.groups * vectors;
  return plan;
}

}  // namespace

PersistentPlan plan_persistent(const PersistentProblem& p, const PersistentLimits& limits) {
  PersistentPlan best;
  if (p.steps < 2 || p.steps > std::numeric_limits<int>::max() || p.batch < 1 || p.units < 1) return best;
  double best_clocks = static_cast<double>(p.steps) * launched_step_clocks;
  const auto compare = [&](Form form, std::int64_t block_units) {
    const PersistentPlan plan = plan_of(p, limits, form, block_units);
    if (!plan) return;
    const double clocks = clocks_of(p, plan, limits.multiprocessors);
    if (clocks >= best_clocks) return;
    best = plan;
    best_clocks = clocks;
  };
  if (!limits.groups) {
    if (p.units > max_persistent_threads(0, false)) return best;
    for (const Form form : {Form{2, 1, 0}, Form{4, 1, 0}, Form{8, 1, 0}, Form{2, 1, kept_iterations}}) compare(form, p.units);
    return best;
  }
  const Form form{group_rows, p.gradient ? group_gradient_tile : 1, 0};
  for (std::int64_t members = 2; members <= std::min<std::int64_t>(p.units, limits.multiprocessors); members *= 2) {
    // Whole tiles: threads without a unit would read weights and sum for nothing.
    const std::int64_t block_units = ((p.units + members - 1) / members + form.tile - 1) / form.tile * form.tile;
    if (block_units < p.units && block_units <= max_persistent_threads(0, true)) compare(form, block_units);
  }
  return best;
}

}  // namespace tenon::cuda
