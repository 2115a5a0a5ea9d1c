// SPDX-License-Identifier: Apache-2.0
#include "exec/program_layout.h"

#include <algorithm>
#include <utility>

#include "graph/collectives.h"
#include "graph/passes.h"

namespace tenon::exec {

ProgramLayout::ProgramLayout(const Graph& g, std::vector<Partition> sets, bool updates_last) : graph(g), partitions(std::move(sets)) {
  if (updates_last) {
    last = graph::only_update(graph);
    for (Partition& set : partitions) {
      std::stable_partition(set.nodes.begin(), set.nodes.end(), [&](NodeId n) { return !last[n]; });
    }
  }
  part_of.resize(g.nodes().size());
  readers.resize(g.values().size());
  for (std::uint32_t p = 0; p < partitions.size(); ++p) {
    for (const NodeId n : partitions[p].nodes) {
      part_of[n] = p;
      for (const ValueId v : g.nodes()[n].inputs) {
        if (v != no_id && (readers[v].empty() || readers[v].back() != p)) readers[v].push_back(p);
      }
    }
  }
}

std::vector<bool> ProgramLayout::donatable(const std::map<ValueId, std::shared_ptr<DeviceState>>& home,
                                           const std::set<ValueId>& sent) const {
  std::set<ValueId> kept_old, taken;
  for (const GraphOutput& output : graph.outputs()) kept_old.insert(output.value);
  for (const GraphUpdate& update : graph.updates()) kept_old.insert(update.value);
  kept_old.insert(sent.begin(), sent.end());
  std::vector<bool> result;
  for (const GraphUpdate& update : graph.updates()) {
    const bool yes = computed(update.value) && graph.nodes()[graph.info(update.value).producer].op != graph::op_all_reduce &&
                     (last.empty() || last[graph.info(update.value).producer]) && !kept_old.contains(update.parameter) &&
                     !taken.contains(update.value) && home.at(update.parameter) == partitions[producer(update.value)].device &&
                     (readers[update.parameter].empty() || readers[update.parameter].back() <= producer(update.value));
    if (yes) taken.insert(update.value);
    result.push_back(yes);
  }
  return result;
}

}  // namespace tenon::exec
