// SPDX-License-Identifier: Apache-2.0
// exec/op_versions.h - selects the op version for a backend: the graph's own, or an equivalent older one.
#pragma once

#include <span>
#include <string>

#include <tenon/sdk/op_versions.h>

#include "exec/lower.h"
#include "loader/loader.h"

namespace tenon::exec {

/// The version of the node's op to use with the backend: its own, unless the backend lacks it, supports an older one, and the attributes
/// that were added later have their defaults.
std::uint32_t supported_version(const loader::Backend& backend, const NodeInfo& node,
                                std::span<const sdk::OlderVersion> older = sdk::older_versions());

/// Lowers each node to a version that the backend supports. A node that no older version can express stays unchanged, for the backend to
/// reject.
void lower_to_supported_versions(const loader::Backend& backend, const Graph& graph, AbiGraph& lowered,
                                 std::span<const sdk::OlderVersion> older = sdk::older_versions());

/// Explains why no older version can be used; empty if the backend has none.
std::string why_not_older(const loader::Backend& backend, const NodeInfo& node,
                          std::span<const sdk::OlderVersion> older = sdk::older_versions());

}  // namespace tenon::exec
