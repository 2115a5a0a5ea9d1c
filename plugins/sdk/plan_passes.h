// SPDX-License-Identifier: Apache-2.0
// plan_passes.h - the passes of arrange(), each in a file of its own, and what they share.
#pragma once

#include <cstdint>

#include "graph_model.h"

namespace tenon::sdk {

inline constexpr std::uint32_t none = TENON_NO_INDEX;

/// Inserts conversions around the nodes that compute in f32 what is stored in 16 bits.
void widen(GraphModel& graph, const KernelRow* rows);
/// Transposes images to channels last where kernels need it, and keeps them so from one such kernel to the next.
void put_channels_last(GraphModel& graph, const KernelRow* rows);
/// Replaces each chain of elementwise nodes by one node, which runs them piece by piece in the L1 cache.
void fuse_elementwise(GraphModel& graph);

/// True for a Cast of 16 bits to f32.
bool is_widening(const GraphModel& graph, const Node& node);

}  // namespace tenon::sdk
