// SPDX-License-Identifier: Apache-2.0
// The host side of recurrent layers on GPUs: the order of time steps, and the scratch memory of a call.
#include "backends/cuda/recurrent/recurrent.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>

namespace tenon::cuda {
namespace {

/// A call of rnn with shapes only: x (steps, 2, 3), w (directions, 4, 3), r (directions, 4, 4).
struct LayerCall {
  std::array<std::int64_t, 3> x, w, r;
  std::array<sdk::Operand, 3> inputs{};
  tenon_attributes_recurrent attributes{};
  sdk::Call call;

  LayerCall(std::int64_t steps, std::uint32_t direction)
      : x{steps, 2, 3}, w{direction == TENON_DIRECTION_BOTH ? 2 : 1, 4, 3}, r{w[0], 4, 4} {
    attributes.direction = direction;
    const std::array<const std::int64_t*, 3> shapes{x.data(), w.data(), r.data()};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i].shape = shapes[i];
      inputs[i].rank = 3;
      inputs[i].dtype = TENON_DTYPE_F32;
    }
    call.inputs = inputs.data();
    call.input_count = 3;
    call.attributes = &attributes;
  }
  LayerCall(const LayerCall&) = delete;
  LayerCall& operator=(const LayerCall&) = delete;
};

TEST_CASE("cuda recurrent: a forward layer goes through time steps in order, a reverse one from the end") {
  const LayerCall forward(5, TENON_DIRECTION_FORWARD), reverse(5, TENON_DIRECTION_REVERSE);
  for (std::int64_t s = 0; s < 5; ++s) {
    CHECK(Recurrent(forward.call, 0, 1).step(s).time[0] == s);
    CHECK(Recurrent(reverse.call, 0, 1).step(s).time[0] == 4 - s);
  }
}

TEST_CASE("cuda recurrent: both directions visit every time step once, and the previous step is the one visited before") {
  const LayerCall both(5, TENON_DIRECTION_BOTH);
  const Recurrent layer(both.call, 0, 1);
  REQUIRE(layer.directions == 2);
  for (std::int64_t s = 0; s < 5; ++s) {
    const Step step = layer.step(s);
    CHECK(step.time[0] == s);
    CHECK(step.time[1] == 4 - s);
    CHECK(step.elements == 2 * 2 * 4);
    if (s == 0) continue;
    for (int d = 0; d < 2; ++d) CHECK(step.before[d] == layer.step(s - 1).time[d]);
  }
}

TEST_CASE("cuda recurrent: parts of scratch memory are aligned for products, disjoint, and within the requested size") {
  ScratchArena counted(nullptr);
  const auto allocate_all = [](ScratchArena& arena) {
    return std::array<char*, 3>{arena.allocate<char>(1), arena.allocate<char>(300), arena.allocate<char>(0)};
  };
  for (const char* const part : allocate_all(counted)) CHECK(part == nullptr);
  alignas(64) static std::array<char, 2048> memory;
  REQUIRE(counted.required_bytes() + 64 <= memory.size());
  for (const std::size_t start : {std::size_t{0}, std::size_t{64}}) {
    ScratchArena arena(memory.data() + start);
    const std::array<char*, 3> at = allocate_all(arena);
    for (const char* const part : at) CHECK(reinterpret_cast<std::uintptr_t>(part) % 256 == 0);
    CHECK(at[1] >= at[0] + 1);
    CHECK(at[2] >= at[1] + 300);
    CHECK(static_cast<char*>(arena.rest()) <= memory.data() + start + counted.required_bytes());
  }
}

TEST_CASE("cuda recurrent: the workspace serves every product of a layer, larger ones and smaller ones") {
  const LayerCall both(5, TENON_DIRECTION_BOTH);
  const Recurrent layer(both.call, 0, 1);
  CHECK(layer.forward_workspace() >= product_workspace_bytes(layer.rows() * layer.all_columns()));
  CHECK(layer.forward_workspace() >= product_workspace_bytes(layer.state_elements()));
  CHECK(layer.backward_workspace() >= product_workspace_bytes(layer.rows() * layer.features));
  CHECK(layer.backward_workspace() >= product_workspace_bytes(layer.columns() * layer.units));
}

// An H200, for groups of blocks and for single ones, and a device whose kernels have no more shared memory than every one has.
constexpr int multiprocessors = 132;
constexpr std::size_t large_shared = 227 << 10, small_shared = 48 << 10;
constexpr PersistentLimits groups{multiprocessors, large_shared, true}, single_blocks{multiprocessors, large_shared, false};
constexpr PersistentLimits small_blocks{multiprocessors, small_shared, false};

/// A forward layer: of lstm with 4 gates, of gru with 3, of rnn with 1.
PersistentProblem layer_of(std::int64_t gates, std::int64_t units, std::int64_t batch, std::size_t weight_bytes = 4) {
  return {.steps = 32,
          .batch = batch,
          .directions = 1,
          .units = units,
          .gates = gates,
          .weight_bytes = weight_bytes,
          .state_bytes = weight_bytes == 8 ? std::size_t{8} : std::size_t{4},
          .vectors = gates == 3 ? 3 : 2,
          .exchanges = 1,
          .gradient = false};
}
PersistentProblem gradient_of(PersistentProblem layer) {
  layer.gradient = true;
  layer.vectors = static_cast<int>(2 * layer.gates);
  return layer;
}
std::int64_t max_units(std::int64_t gates, std::int64_t batch, std::size_t weight_bytes, const PersistentLimits& limits) {
  std::int64_t units = 0;
  while (plan_persistent(layer_of(gates, units + 1, batch, weight_bytes), limits)) ++units;
  return units;
}

TEST_CASE("cuda recurrent: layers whose weights fit into the shared memory of a block run in one kernel") {
  CHECK(max_units(4, 128, 4, single_blocks) == 128);  // with some weights in registers
  CHECK(max_units(3, 128, 4, single_blocks) == 128);
  CHECK(max_units(1, 128, 4, single_blocks) == 232);
  CHECK(max_units(4, 128, 2, single_blocks) == 160);
  CHECK(max_units(3, 128, 2, single_blocks) == 192);
  CHECK(max_units(1, 128, 2, single_blocks) == 256);
  CHECK(max_units(4, 128, 4, small_blocks) == 64);
}

TEST_CASE("cuda recurrent: a persistent kernel stays within the limits of a block, and its threads have all terms of a sum") {
  for (const std::size_t bytes : {2, 4, 8}) {
    for (const std::int64_t gates : {1, 3, 4}) {
      for (std::int64_t units = 1; units <= 300; ++units) {
        for (const std::int64_t batch : {1, 128, 600, 3000}) {
          for (const bool gradient : {false, true}) {
            const PersistentProblem forward = layer_of(gates, units, batch, bytes), problem = gradient ? gradient_of(forward) : forward;
            for (const PersistentLimits& limits : {single_blocks, groups}) {
              const PersistentPlan plan = plan_persistent(problem, limits);
              if (!plan) continue;
              const auto chunk = std::int64_t{bytes == 8 ? 2 : 4};
              const bool right = plan.shared_bytes <= large_shared && plan.threads <= max_persistent_threads(plan.kept, plan.members > 1) &&
                                 plan.iterations >= plan.kept && plan.threads % 32 == 0 && plan.threads >= plan.block_units * plan.rows &&
                                 plan.members * plan.block_units >= units && (plan.members - 1) * plan.block_units < units &&
                                 plan.iterations * plan.rows * plan.tile * chunk >= units && plan.groups * plan.rows >= batch &&
                                 (plan.groups - 1) * plan.rows < batch && (plan.members > 1) == limits.groups &&
                                 (plan.members == 1 || plan.block_units % plan.tile == 0);
              REQUIRE(right);
            }
          }
        }
      }
    }
  }
}

/// Whether the writes of each warp of a block, of an element of `bytes` by thread unit * rows + part, use every bank once.
bool without_conflicts(const PersistentPlan& plan, std::size_t bytes) {
  const int at_once = bytes == 8 ? 16 : 32;  // threads whose elements are as long as the banks together
  for (int first = 0; first < plan.threads; first += at_once) {
    unsigned banks = 0;
    for (int thread = first; thread < first + at_once; ++thread) {
      const int place = thread % plan.rows * plan.line + thread / plan.rows;
      banks |= 1u << place % at_once;
    }
    if (banks != (bytes == 8 ? 0xffffu : 0xffffffffu)) return false;
  }
  return true;
}

TEST_CASE("cuda recurrent: vectors are in shared memory after the weights, their lines are aligned, and writes have no bank conflicts") {
  bool of_rows[9] = {}, kept = false;
  for (const std::size_t bytes : {2, 4, 8}) {
    for (const std::int64_t gates : {1, 4}) {
      for (std::int64_t units = 1; units <= 256; ++units) {
        for (const std::int64_t batch : {1, 500, 1000}) {
          const PersistentProblem problem = layer_of(gates, units, batch, bytes);
          const PersistentPlan plan = plan_persistent(problem, single_blocks);
          if (!plan) continue;
          of_rows[plan.rows] = true;
          kept = kept || plan.kept != 0;
          const auto line = static_cast<std::size_t>(plan.line), state = problem.state_bytes;
          const bool right = plan.vectors_at % 16 == 0 && line * state % 16 == 0 &&
                             line * state >= static_cast<std::size_t>(plan.iterations * plan.rows * plan.tile) * 16 &&
                             without_conflicts(plan, state) &&
                             plan.shared_bytes == plan.vectors_at + static_cast<std::size_t>(problem.vectors * plan.rows) * line * state;
          REQUIRE(right);
        }
      }
    }
  }
  CHECK((of_rows[2] && of_rows[4] && of_rows[8] && kept));
}

TEST_CASE("cuda recurrent: blocks have more rows where there are more of them than multiprocessors") {
  const auto rows = [](std::int64_t units, std::int64_t batch) { return plan_persistent(layer_of(4, units, batch), single_blocks).rows; };
  CHECK(rows(32, 1) == 4);  // there are few warps
  CHECK(rows(64, 2 * multiprocessors) == 2);
  CHECK(rows(64, 2 * multiprocessors + 1) == 4);
  CHECK(rows(64, 4 * multiprocessors) == 4);
  CHECK(rows(64, 4 * multiprocessors + 1) == 8);
  CHECK(rows(96, 8 * multiprocessors) == 4);  // 8 rows of so many units are too many threads
  CHECK(plan_persistent(layer_of(1, 140, 128), single_blocks).rows == 2);
}

TEST_CASE("cuda recurrent: steps are launched where that is faster, and where there is only one or nothing to compute") {
  CHECK_FALSE(plan_persistent(layer_of(4, 112, 1 << 16), single_blocks));
  PersistentProblem one_step = layer_of(4, 32, 128);
  one_step.steps = 1;
  CHECK_FALSE(plan_persistent(one_step, single_blocks));
  CHECK_FALSE(plan_persistent(layer_of(4, 32, 0), single_blocks));
  CHECK_FALSE(plan_persistent(layer_of(4, 0, 128), single_blocks));
  CHECK_FALSE(plan_persistent(layer_of(4, 256, 128), single_blocks));
}

TEST_CASE("cuda recurrent: the first read of the weights counts, which over few steps takes longer than launches") {
  const auto plan = [](const PersistentProblem& layer, std::int64_t steps, const PersistentLimits& limits) {
    PersistentProblem problem = layer;
    problem.steps = steps;
    return plan_persistent(problem, limits);
  };
  const PersistentProblem wide = layer_of(4, 1024, 8), large = layer_of(1, 250, 1, 2), small = layer_of(4, 64, 32);
  CHECK_FALSE(plan(wide, 2, groups));  // 128 blocks; each thread reads 32 chunks of each gate, one after the other
  CHECK(plan(wide, 8, groups).members == 128);
  CHECK_FALSE(plan(large, 2, single_blocks));
  CHECK(plan(large, 8, single_blocks));
  // Blocks of more rows have more threads, of which each reads less; steps are faster with fewer rows.
  CHECK(plan(small, 2, single_blocks).rows == 4);
  CHECK(plan(small, 100, single_blocks).rows == 2);
}

TEST_CASE("cuda recurrent: the blocks of groups have whole tiles of units, and a group has at least two blocks") {
  const auto gradient_plan = [](std::int64_t units) { return plan_persistent(gradient_of(layer_of(4, units, 8)), groups); };
  CHECK_FALSE(gradient_plan(4));
  CHECK(gradient_plan(5).block_units == 4);
  CHECK(gradient_plan(5).members == 2);
  CHECK(plan_persistent(layer_of(4, 2, 8), groups).block_units == 1);
  CHECK_FALSE(plan_persistent(layer_of(4, 1, 8), groups));
}

TEST_CASE("cuda recurrent: larger layers have their units in several blocks, if the device can run all blocks at once") {
  const PersistentProblem layer = layer_of(4, 256, 128), gradient = gradient_of(layer);
  for (const PersistentProblem& problem : {layer, gradient}) {  // the layers of lstm_32
    CHECK_FALSE(plan_persistent(problem, single_blocks));
    const PersistentPlan plan = plan_persistent(problem, groups);
    REQUIRE(plan.rows == 8);
    CHECK(plan.members == 8);
    CHECK(plan.block_units == 32);
    CHECK(plan.groups * plan.members <= multiprocessors);
    CHECK(plan.exchanged == plan.groups * problem.vectors * plan.rows * plan.line);
    CHECK_FALSE(plan_persistent(problem, {127, large_shared, true}));  // 16 groups of 8 blocks
    PersistentProblem both = problem;
    both.directions = 2;
    CHECK_FALSE(plan_persistent(both, groups));
  }
  CHECK(plan_persistent(layer_of(4, 512, 32), groups));
  CHECK(plan_persistent(layer_of(4, 1024, 8), groups));
  const PersistentPlan uneven = plan_persistent(layer_of(4, 250, 128), groups);
  CHECK(uneven.members * uneven.block_units >= 250);
  CHECK((uneven.members - 1) * uneven.block_units < 250);
}

TEST_CASE("cuda recurrent: single blocks have no memory to exchange vectors, groups have it for layers that fit into one block, too") {
  CHECK(plan_persistent(layer_of(4, 96, 128), groups).exchanged > 0);
  const PersistentPlan plan = plan_persistent(layer_of(4, 96, 128), single_blocks);
  CHECK(plan.members == 1);
  CHECK(plan.block_units == 96);
  CHECK(plan.exchanged == 0);
}

}  // namespace
}  // namespace tenon::cuda
