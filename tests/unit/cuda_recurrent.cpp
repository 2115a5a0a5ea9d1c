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

}  // namespace
}  // namespace tenon::cuda
