// SPDX-License-Identifier: Apache-2.0
#include "exec/op_versions.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "graph/op.h"

namespace tenon::exec {
namespace {

bool offers(const loader::Backend& backend, tenon_op op, std::uint32_t version) {
  const std::span list(backend.info().capabilities, backend.info().capability_count);
  return backend.find_switched_off(op, version) == nullptr &&
         std::any_of(list.begin(), list.end(), [&](const tenon_capability& c) { return c.op == op && c.version == version; });
}

struct Choice {
  const sdk::OlderVersion* version = nullptr;  ///< NULL: the node's own version
  sdk::AttributeBytes attributes;
  const sdk::OlderVersion* short_of = nullptr;  ///< a version that the backend has but that cannot express the node
};

Choice choose(const loader::Backend& backend, const NodeInfo& node, std::span<const sdk::OlderVersion> older) {
  Choice choice;
  for (const sdk::OlderVersion& candidate : older) {
    if (candidate.op != node.op || candidate.newest != node.version) continue;
    if (offers(backend, node.op, node.version)) return {};
    if (!offers(backend, node.op, candidate.version)) continue;
    if (auto attributes = sdk::lowered(candidate, node.attributes.data())) return {&candidate, std::move(*attributes), nullptr};
    if (choice.short_of == nullptr) choice.short_of = &candidate;
  }
  return choice;
}

}  // namespace

std::uint32_t supported_version(const loader::Backend& backend, const NodeInfo& node, std::span<const sdk::OlderVersion> older) {
  const sdk::OlderVersion* const version = choose(backend, node, older).version;
  return version == nullptr ? node.version : version->version;
}

void lower_to_supported_versions(const loader::Backend& backend, const Graph& graph, AbiGraph& lowered,
                                 std::span<const sdk::OlderVersion> older) {
  if (older.empty()) return;
  for (std::size_t i = 0; i < lowered.nodes.size(); ++i) {
    Choice choice = choose(backend, graph.nodes()[lowered.node_ids[i]], older);
    if (choice.version == nullptr) continue;
    lowered.nodes[i].version = choice.version->version;
    lowered.nodes[i].attributes = lowered.attributes.emplace_back(std::move(choice.attributes)).data();
  }
}

std::string why_not_older(const loader::Backend& backend, const NodeInfo& node, std::span<const sdk::OlderVersion> older) {
  const sdk::OlderVersion* const short_of = choose(backend, node, older).short_of;
  if (short_of == nullptr) return {};
  return fmt::format("the backend has {0}-{1} and not {0}-{2}, and only the latter has attributes for this node", op_name(node.op),
                     short_of->version, node.version);
}

}  // namespace tenon::exec
