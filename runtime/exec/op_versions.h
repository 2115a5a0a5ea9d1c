// exec/op_versions.h - which version of an op a backend is sent: the graph's own, or an older one that says the same.
#pragma once

#include <span>
#include <string>

#include <tenon/sdk/op_versions.h>

#include "exec/lower.h"
#include "loader/loader.h"

namespace tenon::exec {

/// The version of the node's op that the backend is sent. Its own, unless the backend lacks that and has an older one, and the attributes
/// which came later are at their defaults.
std::uint32_t spoken_version(const loader::Backend& backend, const NodeInfo& node,
                             std::span<const sdk::OlderVersion> older = sdk::older_versions());

/// Brings each node to the version it is sent in. Where an older version cannot say what the node says, the node stays as it is, for the
/// backend to refuse.
void speak_versions_of(const loader::Backend& backend, const Graph& graph, WireGraph& wire,
                       std::span<const sdk::OlderVersion> older = sdk::older_versions());

/// Why no older version would do, as a sentence; empty if there is none that the backend has.
std::string why_not_older(const loader::Backend& backend, const NodeInfo& node,
                          std::span<const sdk::OlderVersion> older = sdk::older_versions());

}  // namespace tenon::exec
